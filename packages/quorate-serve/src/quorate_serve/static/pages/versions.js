// What several people say of a text, side by side, in words: span by span, or person by person.

import { h } from "../spans/dom.js";

/** @typedef {{start: number, end: number, label: string}} Span in code points */

const words = (letters, span) => letters.slice(span.start, span.end).join("");
const chip = (letters, span) => h("li", {}, h("span", { class: "badge" }, span.label), " ", h("span", { dir: "auto" }, words(letters, span)));

/**
 * Everybody's version, with a button that takes it over.
 * @param {string} text
 * @param {{name: string, spans: Span[], note?: string}[]} versions
 * @param {(spans: Span[]) => void} takeOver
 */
export function versionList(text, versions, takeOver) {
  const letters = Array.from(text);
  return h("ul", { class: "versions" }, ...versions.map(({ name, spans, note }) => h("li", { class: "card" },
    h("div", { class: "head" }, h("h3", {}, name), h("button", { type: "button", class: "button small", onclick: () => takeOver(spans) }, `Begin with ${name}`)),
    spans.length ? h("ul", { class: "chips" }, ...spans.map((span) => chip(letters, span))) : h("p", { class: "soft" }, "Nothing is marked."),
    note ? h("p", { class: "soft small" }, note) : null)));
}

/**
 * Why the consensus says what it says: every span, who is for it, and how sure it is.
 * @param {string} text
 * @param {(Span & {votes: string[], confidence: number | null})[]} candidates
 * @param {number} voters
 */
export function candidateTable(text, candidates, voters) {
  const letters = Array.from(text);
  const row = (one) => h("tr", {},
    h("th", { scope: "row" }, h("span", { class: "badge" }, one.label), " ", h("span", { dir: "auto" }, words(letters, one))),
    h("td", {}, one.votes.length ? `${one.votes.join(", ")} (${one.votes.length} of ${voters})` : "nobody"),
    h("td", { class: "num" }, one.confidence === null ? "not in it" : `${Math.round(100 * one.confidence)} %`));
  return h("div", { class: "scroll" }, h("table", {}, h("caption", {}, "Every span that somebody marked"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Span"), h("th", { scope: "col" }, "Marked by"), h("th", { scope: "col", class: "num" }, "Consensus"))),
    h("tbody", {}, ...candidates.map(row))));
}

const key = ({ start, end, label }) => `${start} ${end} ${label}`;

/** Whether two lists have the same spans. @param {Span[]} one @param {Span[]} other */
export function sameSpans(one, other) {
  const there = new Set(other.map(key));
  return one.length === there.size && one.every((span) => there.has(key(span)));
}
