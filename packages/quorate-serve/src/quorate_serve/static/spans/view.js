// The text, drawn line by line, and the way from a place on the screen to a place in the text and back.

import { h } from "./dom.js";
import { pieces } from "./layout.js";

/** @typedef {import("./layout.js").Mark} Mark */

const MANY_LINES = 150; // from here on, the browser lays out only lines that are near the window

export class TextView {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    /** @type {{start: number, end: number, element: HTMLElement, nodes: Text[], look: string}[]} */
    this.lines = [];
    /** @type {WeakMap<Node, number>} */
    this.starts = new WeakMap();
    /** @type {WeakMap<Element, Mark>} */
    this.marks = new WeakMap();
  }

  /** Show another text. @param {string} text */
  show(text) {
    let start = 0;
    this.text = text;
    this.lines = text.split("\n").map((line) => {
      const made = { start, end: start + line.length, element: h("p", { class: "line", dir: "auto" }), nodes: [], look: "none" };
      start = made.end + 1;
      return made;
    });
    this.element.classList.toggle("many", this.lines.length > MANY_LINES);
    this.element.replaceChildren(...this.lines.map(({ element }) => element));
  }

  /**
   * Draw anew what looks different now.
   * @param {Mark[]} marks
   * @param {Mark | null} current the one that is selected
   * @param {(label: string) => string} colours
   * @param {boolean} grips whether the ends of the selected one can be dragged
   */
  draw(marks, current, colours, grips) {
    const inLine = new Map();
    for (const mark of marks) {
      for (let n = this.lineAt(mark.start); n < this.lines.length && this.lines[n].start < mark.end; n++) {
        if (!inLine.has(n)) inLine.set(n, []);
        inLine.get(n).push(mark);
      }
    }
    this.lines.forEach((line, n) => {
      const here = inLine.get(n) || [];
      const look = here.map((mark) => [mark.start, mark.end, mark.level, mark.suggested, mark === current && grips, mark === current, colours(mark.label), mark.label].join()).join("|");
      if (look !== line.look) this.drawLine(line, here, current, colours, grips);
      line.look = look;
    });
  }

  drawLine(line, marks, current, colours, grips) {
    const depth = marks.length ? 1 + Math.max(...marks.map(({ level }) => level)) : 0;
    line.nodes = [];
    line.element.style.setProperty("--depth", String(depth));
    const underlined = (element, here) => underline(element, here, current, colours, depth);
    const children = pieces(line.start, line.end, marks).flatMap(({ start, end, marks: here, names }) => {
      const node = document.createTextNode(this.text.slice(start, end));
      this.starts.set(node, start);
      line.nodes.push(node);
      const grip = (edge) => (grips && here.includes(current) && current[edge] === (edge === "start" ? start : end) ? [h("span", { class: `grip ${edge}`, "data-edge": edge })] : []);
      const name = (mark, n) => {
        const tag = h("span", {
          class: `name${mark.suggested ? " suggested" : ""}${mark === current ? " current" : ""}`, role: "button", tabindex: "-1", dir: "auto",
          "aria-label": `${mark.label}${mark.suggested ? ", suggested" : ""}: ${this.text.slice(mark.start, mark.end)}`,
          "aria-pressed": String(mark === current),
        }, mark.label);
        tag.style.setProperty("--k", colours(mark.label));
        this.marks.set(tag, mark);
        return underlined(h("span", { class: "after" }, tag), here.filter((other) => !names.includes(other) || names.indexOf(other) >= n));
      };
      return [...grip("start"), here.length ? underlined(h("span", { class: "piece" }, node), here) : node, ...grip("end"), ...names.map(name)];
    });
    line.element.replaceChildren(...children);
  }

  /** The number of the line that holds a place. */
  lineAt(place) {
    let low = 0, high = this.lines.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.lines[middle].start <= place) low = middle; else high = middle - 1;
    }
    return low;
  }

  /** Whether the line of a place is written from right to left. */
  isRightToLeft(place) {
    return getComputedStyle(this.lines[this.lineAt(place)].element).direction === "rtl";
  }

  /** @returns {Range} */
  range(start, end) {
    const range = document.createRange();
    const at = (place, last) => {
      const line = this.lines[this.lineAt(last ? Math.max(place - 1, 0) : place)];
      let node = line.nodes[0];
      for (const other of line.nodes) if (this.starts.get(other) < place || (!last && this.starts.get(other) === place)) node = other;
      return [node, Math.min(Math.max(place - this.starts.get(node), 0), node.length)];
    };
    range.setStart(...at(start, false));
    range.setEnd(...at(end, true));
    return range;
  }

  /** Whether a point of the window lies on a part of the text; the space between lines belongs to the nearer one. */
  covers(start, end, x, y) {
    return [...this.range(start, end).getClientRects()].some((box) =>
      x >= box.left - 3 && x <= box.right + 3 && y >= box.top - box.height / 3 && y <= box.bottom + box.height / 3);
  }

  /** The place between two characters that is nearest to a point of the window; null if there is none. */
  placeAt(x, y) {
    const found = document.caretPositionFromPoint ? document.caretPositionFromPoint(x, y) : document.caretRangeFromPoint(x, y);
    if (!found) return null;
    const node = found.offsetNode || found.startContainer, offset = found.offset ?? found.startOffset;
    if (this.starts.has(node)) return this.starts.get(node) + offset;
    if (!this.element.contains(node)) return null;
    const line = this.lines.find(({ element }) => element === node || element.contains(node));
    if (!line) return null;
    const before = node === line.element ? line.element.childNodes[offset] : node; // a name, or the margin
    const after = line.nodes.find((text) => before && before.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING);
    return after ? this.starts.get(after) : line.end;
  }
}

/** Whether two marks are the same but for who made them. */
export const sameMark = (one, other) =>
  Boolean(one && other) && one.start === other.start && one.end === other.end && one.label === other.label && one.suggested === other.suggested;

function underline(element, marks, current, colours, depth) {
  if (!marks.length) return element;
  const stroke = (mark) => {
    const colour = colours(mark.label);
    return mark.suggested ? `repeating-linear-gradient(90deg, ${colour} 0 .3rem, transparent .3rem .5rem)` : `linear-gradient(${colour}, ${colour})`;
  };
  const shade = marks.includes(current) ? current : marks.find(({ suggested }) => !suggested);
  const below = `${depth - 1} * var(--step)`, raised = (level) => `calc(${below} - ${level} * var(--step))`;
  const tint = `color-mix(in srgb, ${shade ? colours(shade.label) : "transparent"} ${shade === current ? "var(--strong)" : "var(--light)"}, transparent)`;
  element.style.setProperty("background-image", [...marks.map(stroke), `linear-gradient(${tint}, ${tint})`].join());
  element.style.setProperty("background-position", [...marks.map(({ level }) => `0 calc(100% - ${raised(level)})`), "0 0"].join());
  element.style.setProperty("background-size", [...marks.map((mark) => `100% ${mark === current ? "var(--bold)" : "var(--stroke)"}`),
    `100% calc(100% - ${raised(Math.max(...marks.map(({ level }) => level)))})`].join());
  return element;
}
