// The bar: labels to mark with, and what can be done with the span that is selected.

import { h, icon } from "./dom.js";

const TOOLS = [
  ["start-back", "Begin one earlier", "M10 4 6 8l4 4M3 3v10"],
  ["start-on", "Begin one later", "M7 4l4 4-4 4M3 3v10"],
  ["end-back", "End one earlier", "M9 4 5 8l4 4M13 3v10"],
  ["end-on", "End one later", "M6 4l4 4-4 4M13 3v10"],
  ["remove", "Remove the span", "M3 4.5h10M6.5 4V2.5h3V4M4.5 4.5l.6 9h5.8l.6-9M6.8 7v4M9.2 7v4"],
  ["undo", "Undo", "M6 3 3 6l3 3M3 6h6.5a3.5 3.5 0 0 1 0 7H6"],
  ["redo", "Redo", "M10 3l3 3-3 3M13 6H6.5a3.5 3.5 0 0 0 0 7H10"],
  ["help", "Help: all keys", "M5.5 6a2.5 2.5 0 1 1 3.7 2.2C8.3 8.7 8 9.2 8 10M8 12.3v.2"],
];

export class Bar {
  /** @param {(name: string) => void} label @param {(tool: string) => void} act */
  constructor(label, act) {
    this.label = label;
    this.what = h("p", { class: "what" });
    this.labels = h("div", { class: "labels", role: "group", "aria-label": "Labels" });
    this.tools = new Map(TOOLS.map(([name, title, path]) =>
      [name, h("button", { type: "button", class: `tool ${name}`, title, "aria-label": title, onclick: () => act(name) }, icon(path))]));
    this.question = h("p", { class: "offer", hidden: true });
    this.element = h("div", { class: "bar" }, this.labels, this.question,
      h("div", { class: "tools" }, this.what, h("div", { class: "buttons", role: "group", "aria-label": "Tools" }, ...this.tools.values())));
    // The text keeps the focus, so that keys go on working after a click.
    this.element.addEventListener("mousedown", (event) => { if (event.target.closest("button")) event.preventDefault(); });
  }

  /** @param {import("./labels.js").Label[]} labels */
  show(labels) {
    this.buttons = new Map(labels.map(({ name, key, colour }) => {
      const button = h("button", { type: "button", class: "label", "aria-pressed": "false", "aria-keyshortcuts": key || null, onclick: () => this.label(name) },
        key ? h("kbd", { "aria-hidden": "true" }, key.toUpperCase()) : null, h("span", { dir: "auto" }, name));
      button.style.setProperty("--k", colour);
      return [name, button];
    }));
    this.labels.replaceChildren(...this.buttons.values());
  }

  /**
   * Ask something that a click on a button answers; without a text, the question is gone.
   * @param {string} text @param {[string, () => void][]} answers
   */
  ask(text = "", answers = []) {
    this.question.hidden = !text;
    this.question.replaceChildren(text, ...answers.map(([name, act]) => h("button", { type: "button", class: "button small", onclick: act }, name)));
  }

  /** @param {{what: string, pressed: string | null, brush: boolean, able: Set<string>}} state */
  update({ what, pressed, brush, able }) {
    this.what.textContent = what;
    for (const [name, button] of this.buttons) {
      button.setAttribute("aria-pressed", String(name === pressed));
      button.classList.toggle("brush", brush && name === pressed);
    }
    // Not `disabled`, which would take the focus away from a button in use.
    for (const [name, button] of this.tools) button.setAttribute("aria-disabled", String(!able.has(name)));
  }
}
