// No acknowledged label is ever lost, and none that was made here either.
//
//   import { outbox } from "./outbox.js";
//   await outbox.save("/api/v1/annotations", { document: 12, spans, seconds: 41.2 });
//
// Pages say who is logged in with <meta name="person" content="p_…">, and show <quorate-outbox login="/login"></quorate-outbox>.

import { Outbox } from "./outbox/queue.js";
import { h } from "./spans/dom.js";

/** The saves of the person who is logged in. */
export const outbox = new Outbox(document.querySelector('meta[name="person"]')?.content || "");

const kept = (count) => `${count} kept here`;
const WORDS = {
  unknown: () => "",
  saved: () => "Saved",
  saving: () => "Saving…",
  offline: (count) => `Offline: ${kept(count)}`,
  away: (count) => `Not reachable: ${kept(count)}, trying again`,
  unkept: () => "Not saved yet: leave this page open",
  login: (count) => `Log in again: ${kept(count)}`,
};

/** Says whether everything is saved, and what was refused. */
export class OutboxState extends HTMLElement {
  #state = h("span", { class: "state", role: "status" });
  #more = h("div");
  /** @type {Set<string>} saves to be discarded, if the person says so once more */ #doomed = new Set();
  #draw = () => this.draw();

  connectedCallback() {
    this.append(this.#state, this.#more);
    outbox.addEventListener("state", this.#draw);
    this.draw();
  }

  disconnectedCallback() {
    outbox.removeEventListener("state", this.#draw);
  }

  draw() {
    const { name, waiting, refused } = outbox.state;
    this.setAttribute("state", name);
    const words = name === "refused" ? `Refused: ${refused.at(-1).refused.message}` : WORDS[name](waiting.length);
    if (this.#state.textContent !== words) this.#state.textContent = words;
    this.#more.replaceChildren(...(name === "login" ? [this.#login()] : []), ...(refused.length ? [this.#refusals(refused)] : []));
  }

  #login() {
    const next = encodeURIComponent(location.pathname + location.search);
    return h("a", { class: "button small", href: `${this.getAttribute("login") || "/login"}?next=${next}` }, "Log in");
  }

  #refusals(refused) {
    return h("details", { open: this.querySelector("details")?.open ?? false },
      h("summary", {}, refused.length === 1 ? "What was refused" : `What was refused (${refused.length})`),
      h("ul", { class: "refusals" }, ...refused.map((save) => this.#refusal(save))));
  }

  #refusal({ id, body, refused }) {
    const spans = Array.isArray(body.spans) ? `, ${body.spans.length} ${body.spans.length === 1 ? "span" : "spans"}` : "";
    const discard = () => {
      if (this.#doomed.has(id)) { outbox.discard(id); return; }
      this.#doomed.add(id);
      this.draw();
      this.querySelector(`[data-discard="${id}"]`)?.focus();
    };
    return h("li", {}, h("p", {}, h("b", {}, `Document ${body.document ?? "?"}${spans}: `), refused.message),
      h("button", { type: "button", class: "button small", onclick: () => outbox.retry(id) }, "Try again"),
      h("button", { type: "button", class: "button small danger", "data-discard": id, onclick: discard }, this.#doomed.has(id) ? "Really discard it?" : "Discard"));
  }
}

customElements.define("quorate-outbox", OutboxState);
