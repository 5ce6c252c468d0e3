// All keys, in a dialog.

import { h } from "./dom.js";

const KEYS = [
  ["← →", "to the word before, to the word after"],
  ["↑ ↓", "to the line above, to the line below"],
  ["Home End", "to the first and last word of the line; with Ctrl, of the text"],
  ["Shift + arrows", "select more, or less"],
  ["Enter", "select the span at the cursor, then the one around it; accept a suggestion"],
  ["Tab, Shift + Tab", "to the next span, to the span before"],
  ["[ ]", "begin a word earlier, end a word later"],
  ["{ }", "begin a word later, end a word earlier"],
  ["Alt + ← →", "move the end; with Shift, the beginning"],
  ["Delete", "remove the span, or dismiss the suggestion"],
  ["Ctrl + Z", "undo; with Shift, or Ctrl + Y, redo"],
  ["Esc", "leave the span, then the selection, then (with Tab) the text"],
  ["?", "this help"],
];

/** @param {import("./labels.js").Label[]} labels @param {boolean} readonly */
export function helpDialog(labels, readonly) {
  const row = ([keys, meaning]) => h("tr", {}, h("th", { scope: "row" }, h("kbd", {}, keys)), h("td", {}, meaning));
  const marking = readonly ? [] : labels.filter(({ key }) => key).map(({ name, key }) => [key.toUpperCase(), `mark as ${name}; on a span, make it ${name}`]);
  const dialog = h("dialog", { "aria-label": "Keys" },
    h("form", { method: "dialog" }, h("h2", {}, "Keys"), h("button", { class: "button" }, "Close")),
    h("p", {}, "With a mouse or a finger: select words, then a label. With nothing selected, a label stays chosen, and each selection is marked with it at once. ",
      "Click on a span to select it: drag its ends, choose another label, or remove it. Click again for the span around it, and for the word itself."),
    h("div", { class: "keys", tabindex: "0", role: "group", "aria-label": "List of keys" }, h("table", {}, h("tbody", {}, ...[...marking, ...KEYS].map(row)))));
  dialog.addEventListener("close", () => dialog.remove());
  return dialog;
}
