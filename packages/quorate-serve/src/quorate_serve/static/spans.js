// <quorate-spans>: a text in which people mark spans, with a mouse, a finger or keys alone.
//
//   const text = document.querySelector("quorate-spans");
//   Object.assign(text, { text: "Ada met Bob", tokens: [[0, 3], [4, 7], [8, 11]], labels: [{ name: "PER" }], spans: [] });
//   text.addEventListener("change", ({ detail }) => save(detail.spans));
//
// All offsets that go in or come out are Unicode code points, end exclusive. Spans may nest and overlap, unless `overlaps` is "none", or
// "nested": then a span that must not be there is offered in place of those that are.

import { Bar } from "./spans/bar.js";
import { h } from "./spans/dom.js";
import { helpDialog } from "./spans/help.js";
import { commandOf } from "./spans/keyboard.js";
import { labelOfKey, withKeys } from "./spans/labels.js";
import { CLASHES, inOrder, stack } from "./spans/layout.js";
import { Offsets, Units } from "./spans/offsets.js";
import { followPointer } from "./spans/pointer.js";
import { TextView, sameMark } from "./spans/view.js";

/**
 * @typedef {{start: number, end: number, label: string}} Span in code points
 * @typedef {import("./spans/layout.js").Mark} Mark a span in UTF-16 units, as it is drawn
 */

const MOST_UNDO = 500;
const PROPERTIES = ["text", "tokens", "labels", "spans", "suggestions", "overlaps", "mode", "readonly"];
const NOT_HERE = { none: ["overlap", "Spans may not overlap here."], nested: ["cross", "Spans may only lie inside one another here."] };
const SELECTED = "quorate-selected"; // the highlight's name in spans.css
const same = (one, other) => one.start === other.start && one.end === other.end && one.label === other.label;

/** The selections of all texts of a page; without this, the browser's own selection shows it. */
const selections = typeof Highlight === "undefined" ? null : new Highlight();
if (selections) CSS.highlights.set(SELECTED, selections);

export class QuorateSpans extends HTMLElement {
  #text = "";
  /** @type {[number, number][]} */ #tokens = [];
  /** @type {import("./spans/labels.js").Label[]} */ #labels = [];
  /** @type {Span[]} */ #spans = [];
  /** @type {Span[]} */ #suggestions = [];
  /** @type {"words" | "characters"} */ #mode = "words";
  /** @type {"none" | "nested" | "any"} */ #overlaps = "any";
  /** @type {Span | null} a span that is offered in place of others */ #offered = null;
  /** @type {Span[][]} */ #past = [];
  /** @type {Span[][]} */ #future = [];
  /** @type {Mark[]} */ #marks = [];
  /** @type {Mark | null} the span that is selected */ #current = null;
  /** @type {string | null} the label that every selection gets at once */ #brush = null;
  // The selection reaches from the unit `anchor` to the unit `head`, at which the cursor is; it counts only while `selecting`.
  #anchor = 0;
  #head = 0;
  #selecting = false;
  #leaving = false;
  #stale = true;
  /** @type {AbstractRange | null} */ #shown = null;
  #view; #bar; #status; #units; #offsets;

  constructor() {
    super();
    this.#bar = new Bar((name) => this.#labelClicked(name), (tool) => this.#toolClicked(tool));
    this.#status = h("div", { class: "unseen", role: "status", "aria-live": "polite" });
    this.#view = new TextView(h("div", { class: "text", role: "application", tabindex: "0", dir: "auto", "aria-roledescription": "text with spans" }));
    followPointer(this.#view.element, {
      hit: (x, y) => this.#hit(x, y),
      preview: (from, to) => this.#highlight(from === null ? this.#selected() : this.#range(from, to)),
      stroke: (from, to) => this.#choose(from, to),
      previewEdge: (edge, unit) => this.#highlight(this.#withEdge(edge, unit)),
      dragEdge: (edge, unit) => this.#reshape(this.#withEdge(edge, unit)),
      tap: (target, hit) => this.#tap(target, hit),
    });
    this.#view.element.addEventListener("click", (event) => { if (event.detail === 0) this.#tap(event.target, null); }); // a screen reader's click
    this.#view.element.addEventListener("copy", (event) => this.#copy(event));
    this.addEventListener("keydown", (event) => this.#key(event));
  }

  connectedCallback() {
    for (const name of PROPERTIES) { // set before this element was known
      if (!Object.hasOwn(this, name)) continue;
      const value = this[name];
      delete this[name];
      this[name] = value;
    }
    if (!this.#view.element.isConnected) this.append(this.#view.element, this.#bar.element, this.#status);
    this.#refresh();
  }

  disconnectedCallback() {
    if (this.#shown) selections?.delete(this.#shown);
  }

  get text() { return this.#text; }
  set text(text) { this.#text = String(text ?? ""); this.#invalid(); }

  get tokens() { return this.#tokens; }
  set tokens(tokens) { this.#tokens = tokens || []; this.#invalid(); }

  get labels() { return this.#labels; }
  set labels(labels) { this.#labels = withKeys(labels || []); this.#invalid(); }

  /** What is marked. Setting it begins a new history. */
  get spans() { return this.#spans.map((span) => ({ ...span })); }
  set spans(spans) {
    this.#spans = (spans || []).map(({ start, end, label }) => ({ start, end, label })).sort(inOrder);
    this.#past = [];
    this.#future = [];
    this.#current = null;
    this.#invalid();
  }

  /** Spans to accept or not, drawn dashed. There are none unless somebody sets them. */
  get suggestions() { return this.#suggestions; }
  set suggestions(suggestions) { this.#suggestions = suggestions || []; this.#invalid(); }

  /** Which spans may overlap: "none", "nested" (one inside another) or "any". */
  get overlaps() { return this.#overlaps; }
  set overlaps(overlaps) { this.#overlaps = CLASHES[overlaps] ? overlaps : "any"; }

  get mode() { return this.#mode; }
  set mode(mode) { this.#mode = mode === "characters" ? "characters" : "words"; this.#invalid(); }

  get readonly() { return this.hasAttribute("readonly"); }
  set readonly(readonly) { this.toggleAttribute("readonly", Boolean(readonly)); this.#invalid(); }

  focus(options) { this.#view.element.focus(options); }

  undo() { this.#travel(this.#past, this.#future, "Undone"); }

  redo() { this.#travel(this.#future, this.#past, "Redone"); }

  /** Mark the selection, or give the selected span another label. @param {string} name */
  mark(name) {
    if (this.readonly) return this.#say("This text is read only");
    const old = this.#current;
    if (old && !old.suggested && old.label === name) return this.#say(`It is ${name} already`);
    const range = old || this.#selected();
    if (!range) return this.#say("Nothing is selected");
    const span = this.#span(range, name);
    const others = old && !old.suggested ? this.#spans.filter((other) => !same(other, this.#span(old))) : this.#spans;
    if (others.some((other) => same(other, span))) {
      this.#select({ ...range, label: name, suggested: false });
      return this.#say(`${this.#quote(range)} is ${name} already`);
    }
    const message = `${old && !old.suggested ? `${old.label} is now ${name}` : `Marked ${name}`}: ${this.#quote(range)}`;
    return this.#put(span, others, message, () => {
      this.#current = this.#brush && !old ? null : { ...range, label: name, suggested: false };
      this.#selecting = false;
    });
  }

  // ---- what is drawn

  #invalid() {
    this.#stale = true;
    if (this.isConnected) queueMicrotask(() => this.#refresh());
  }

  /** Take over what was set. */
  #refresh() {
    if (!this.#stale || !this.isConnected) return;
    this.#stale = false;
    if (this.#view.text !== this.#text) {
      this.#anchor = this.#head = 0;
      this.#selecting = false;
      this.#current = null;
      this.#view.show(this.#text);
    }
    this.#offsets = new Offsets(this.#text);
    this.#units = new Units(this.#text, this.#mode, this.#tokens.map(([start, end]) => [this.#offsets.toUnit(start), this.#offsets.toUnit(end)]));
    this.#head = Math.max(0, Math.min(this.#head, this.#units.count - 1));
    this.#anchor = Math.max(0, Math.min(this.#anchor, this.#units.count - 1));
    this.#view.element.setAttribute("aria-label", this.readonly ? "Text" : "Text to mark; press question mark for all keys");
    this.#bar.show(this.#labels);
    this.#draw();
  }

  #draw() {
    this.#offered = null;
    this.#bar.ask();
    const marks = [...this.#spans.map((span) => this.#mark(span, false)), ...this.#suggestions
      .filter((suggestion) => !this.#spans.some((span) => same(span, suggestion))).map((span) => this.#mark(span, true))];
    this.#marks = marks.filter(({ start, end }) => start < end).sort(inOrder);
    stack(this.#marks);
    this.#current = this.#marks.find((mark) => sameMark(mark, this.#current)) || null;
    const colours = new Map(this.#labels.map(({ name, colour }) => [name, colour]));
    this.#view.draw(this.#marks, this.#current, (label) => colours.get(label) || "var(--faint)", !this.readonly);
    this.#highlight(this.#selected());
    this.#updateBar();
  }

  #updateBar() {
    const able = new Set(["help"]);
    if (this.#past.length) able.add("undo");
    if (this.#future.length) able.add("redo");
    if (this.#current) able.add("remove");
    if (this.#current || this.#selecting) ["start-back", "start-on", "end-back", "end-on"].forEach((tool) => able.add(tool));
    const range = this.#current || this.#selected();
    const what = this.#current ? `${this.#current.label}${this.#current.suggested ? ", suggested" : ""}: ${this.#quote(range)}`
      : range ? this.#quote(range) : this.#brush ? `Each selection becomes ${this.#brush}` : "Select text, then a label";
    this.#bar.update({ what, pressed: this.#current ? this.#current.label : this.#brush, brush: !this.#current && Boolean(this.#brush), able });
  }

  #highlight(range) {
    if (this.#shown) selections?.delete(this.#shown);
    this.#shown = range && this.#units.count ? this.#view.range(range.start, range.end) : null;
    if (selections) { if (this.#shown) selections.add(this.#shown); return; }
    const own = document.getSelection();
    own.removeAllRanges();
    if (this.#shown) own.addRange(this.#shown);
  }

  #reveal({ start, end }) {
    const range = this.#view.range(start, end), box = range.getBoundingClientRect(), bar = this.#bar.element.getBoundingClientRect();
    const above = bar.height && bar.top < this.#view.element.getBoundingClientRect().top + bar.height;
    const top = above ? bar.height + 24 : 24, bottom = window.innerHeight - (above ? 24 : bar.height + 24);
    if (box.top < top || box.bottom > bottom) window.scrollBy({ top: box.top - (top + bottom) / 2, behavior: "instant" });
  }

  #say(text) { this.#status.textContent = text; }

  #quote({ start, end }) {
    const text = this.#text.slice(start, end).replace(/\s+/g, " "), letters = [...text];
    return `“${letters.length > 60 ? `${letters.slice(0, 30).join("")} … ${letters.slice(-24).join("")}` : text}”`;
  }

  // ---- between code points, UTF-16 units and words

  #mark({ start, end, label }, suggested) {
    return { start: this.#offsets.toUnit(start), end: this.#offsets.toUnit(end), label, suggested, level: 0 };
  }

  #span({ start, end, label }, name = label) {
    return { start: this.#offsets.toPoint(start), end: this.#offsets.toPoint(end), label: name };
  }

  #range(from, to) {
    return { start: this.#units.start(Math.min(from, to)), end: this.#units.end(Math.max(from, to)) };
  }

  #selected() { return this.#selecting && this.#units.count ? this.#range(this.#anchor, this.#head) : null; }

  #hit(x, y) {
    const place = this.#view.placeAt(x, y);
    if (place === null || !this.#units.count) return null;
    const near = [this.#units.near(Math.max(place - 1, 0)), this.#units.near(place)];
    const unit = near.find((n) => this.#view.covers(this.#units.start(n), this.#units.end(n), x, y));
    return unit === undefined ? { unit: near[1], on: false } : { unit, on: true };
  }

  // ---- selecting

  #choose(from, to) {
    this.#anchor = from;
    this.#head = to;
    this.#selecting = true;
    this.#current = null;
    this.#draw();
    if (this.#brush) this.mark(this.#brush);
    else this.#say(`Selected ${this.#quote(this.#selected())}`);
  }

  #select(mark) {
    this.#current = mark;
    this.#selecting = false;
    this.#reach(mark);
    this.#draw();
    if (!this.#current) return;
    const number = this.#marks.indexOf(this.#current) + 1;
    this.#say(`${mark.label}${mark.suggested ? ", suggested" : ""}: ${this.#quote(mark)}, ${number} of ${this.#marks.length}`);
  }

  /** A tap goes from the innermost span outwards, then to the word itself, then to the innermost again. */
  #tap(target, hit) {
    const named = this.#view.marks.get(target.closest(".name"));
    const mark = named && this.#marks.find((other) => sameMark(other, named));
    if (mark) return mark.suggested && !this.readonly ? this.#accept(mark) : this.#select(mark);
    if (!hit || !hit.on) { this.#clear(); return this.#draw(); }
    const here = this.#covering(hit.unit), next = here[here.indexOf(this.#current) + 1];
    if (next) return this.#select(next);
    return this.#choose(hit.unit, hit.unit);
  }

  #covering(unit) {
    const start = this.#units.start(unit), end = this.#units.end(unit);
    return this.#marks.filter((mark) => mark.start < end && mark.end > start).sort((a, b) => a.level - b.level);
  }

  /** Let the selection be what a range covers. */
  #reach({ start, end }) {
    if (!this.#units.count) return;
    this.#anchor = Math.min(this.#units.endsAfter(start), this.#units.count - 1);
    this.#head = Math.max(this.#units.startsFrom(end) - 1, this.#anchor);
  }

  #clear() {
    this.#current = null;
    this.#selecting = false;
  }

  // ---- editing

  /** Put a span beside others; where these must not overlap, offer it in their place: to be asked for once more. */
  #put(span, others, message, settle) {
    const against = others.filter((other) => CLASHES[this.#overlaps](span, other));
    const named = (one) => `${one.label} ${this.#quote(this.#mark(one, false))}`;
    const those = `${against.slice(0, 2).map(named).join(" and ")}${against.length > 2 ? " and others" : ""}`;
    if (against.length && !(this.#offered && same(this.#offered, span))) {
      const [verb, rule] = NOT_HERE[this.#overlaps], question = `${named(span)} would ${verb} ${those}. ${rule}`;
      this.#offered = span;
      this.#bar.ask(question, [
        [against.length > 1 ? "Replace them" : "Replace it", () => this.#put(span, others, message, settle)],
        ["Leave it", () => { this.#draw(); this.#say("Nothing was changed"); }],
      ]);
      return this.#say(`${question} The same once more replaces ${against.length > 1 ? "them" : "it"}.`);
    }
    settle();
    const rest = others.filter((other) => !against.includes(other));
    return this.#commit([...rest, span], against.length ? `${message}, in place of ${those}` : message);
  }

  #commit(spans, message) {
    this.#past.push(this.#spans);
    if (this.#past.length > MOST_UNDO) this.#past.shift();
    this.#future = [];
    this.#changed(spans, message);
  }

  #changed(spans, message) {
    this.#spans = [...spans].sort(inOrder);
    this.#draw();
    this.#say(message);
    this.dispatchEvent(new CustomEvent("change", { bubbles: true, detail: { spans: this.spans } }));
  }

  #travel(from, to, word) {
    if (this.readonly || !from.length) return this.#say(`Nothing to be ${word.toLowerCase()}`);
    to.push(this.#spans);
    this.#clear();
    const spans = from.pop();
    return this.#changed(spans, `${word}: ${spans.length} ${spans.length === 1 ? "span" : "spans"}`);
  }

  #accept(mark) {
    this.#current = mark;
    this.mark(mark.label);
  }

  #withEdge(edge, unit) {
    const { start, end } = this.#current;
    if (edge === "start") return { start: Math.min(this.#units.start(unit), this.#units.start(Math.max(this.#units.startsFrom(end) - 1, 0))), end };
    return { start, end: Math.max(this.#units.end(unit), this.#units.end(Math.min(this.#units.endsAfter(start), this.#units.count - 1))) };
  }

  /** Give the selected span another extent. */
  #reshape(range) {
    const old = this.#current, span = this.#span({ ...range, label: old.label });
    if (same(span, this.#span(old)) && !old.suggested) return;
    const others = this.#spans.filter((other) => !same(other, this.#span(old)));
    if (others.some((other) => same(other, span))) return void this.#say(`${this.#quote(range)} is ${old.label} already`);
    this.#put(span, others, `${old.label} is now ${this.#quote(range)}`, () => {
      this.#current = { ...range, label: old.label, suggested: false };
    });
  }

  // ---- the bar

  #labelClicked(name) {
    const free = !this.#selecting && (!this.#current || (!this.#current.suggested && this.#current.label === name));
    if (!free) return this.mark(name);
    this.#brush = this.#brush === name && !this.#current ? null : name;
    this.#current = null;
    this.#draw();
    return this.#say(this.#brush ? `Each selection becomes ${name}` : `${name} is put down`);
  }

  #toolClicked(tool) {
    const edges = { "start-back": ["start", false], "start-on": ["start", true], "end-back": ["end", false], "end-on": ["end", true] };
    if (edges[tool]) return this.#do("moveEdge", ...edges[tool]);
    return this.#do(tool);
  }

  // ---- keys

  #key(event) {
    if (event.defaultPrevented || event.isComposing || event.target.closest("dialog")) return;
    const inText = event.target === this.#view.element;
    const command = commandOf(event, this.#units.count > 0 && this.#view.isRightToLeft(this.#units.start(this.#head)));
    const label = event.ctrlKey || event.metaKey || event.altKey || command ? undefined : labelOfKey(this.#labels, event);
    if (label) this.mark(label.name);
    else if (!command || (!inText && ["enter", "walk"].includes(command[0])) || !this.#do(...command)) return;
    event.preventDefault();
  }

  /** Do what a key or a tool asks for; false if that was nothing, and the key is the browser's. */
  #do(command, ...how) {
    const leaving = this.#leaving;
    this.#leaving = false;
    if (command === "help") return this.#help();
    if (command === "undo" || command === "redo") { this[command](); return true; }
    if (command === "leave") return this.#leave();
    if (command === "remove") return this.#remove();
    if (command === "walk") return !leaving && this.#walk(...how);
    if (!this.#units.count) return false;
    if (command === "enter") return this.#enter();
    if (command === "moveEdge") return this.#moveEdge(...how);
    if (command === "move") return this.#moveTo(this.#head + (how[0] ? 1 : -1), how[1]);
    if (command === "moveLine") return this.#moveTo(this.#lineBeside(how[0]), how[1]);
    return this.#moveToEnd(...how);
  }

  #moveTo(unit, extend) {
    const fresh = !this.#selecting && !this.#current; // the cursor shows itself first
    const head = fresh ? this.#head : Math.max(0, Math.min(unit, this.#units.count - 1));
    this.#head = head;
    if (!extend) this.#anchor = head;
    this.#selecting = true;
    this.#current = null;
    this.#draw();
    this.#reveal(this.#range(head, head));
    const around = extend ? [] : this.#covering(head);
    this.#say(`${this.#text.slice(this.#selected().start, this.#selected().end)}${around.length ? `, in ${around.map(({ label }) => label).join(", ")}` : ""}`);
    return true;
  }

  #lineBeside(down) {
    const box = this.#view.range(this.#units.start(this.#head), this.#units.end(this.#head)).getBoundingClientRect();
    for (let step = 1; step <= 12; step++) {
      const hit = this.#hit((box.left + box.right) / 2, down ? box.bottom + step * 12 : box.top - step * 12);
      if (hit && (down ? hit.unit > this.#head : hit.unit < this.#head)) return hit.unit;
    }
    const line = this.#view.lineAt(this.#units.start(this.#head)) + (down ? 1 : -1); // not on the screen, or behind the bar
    if (line < 0 || line >= this.#view.lines.length) return this.#head;
    return down ? Math.max(this.#head, this.#units.near(this.#view.lines[line].start)) : Math.min(this.#head, this.#units.near(this.#view.lines[line].end));
  }

  #moveToEnd(last, ofText, extend) {
    const line = this.#view.lines[this.#view.lineAt(this.#units.start(this.#head))];
    const ofLine = last ? this.#units.startsFrom(line.end) - 1 : this.#units.endsAfter(line.start);
    this.#selecting = true;
    return this.#moveTo(ofText ? (last ? this.#units.count - 1 : 0) : ofLine, extend);
  }

  #walk(forward) {
    const at = this.#marks.indexOf(this.#current);
    const place = this.#units.count ? this.#units.start(this.#head) : 0;
    const found = at >= 0 ? this.#marks[at + (forward ? 1 : -1)]
      : forward ? this.#marks.find(({ start }) => start >= place) : this.#marks.findLast(({ start }) => start < place);
    if (!found) return false;
    this.#select(found);
    this.#reveal(found);
    return true;
  }

  #enter() {
    if (this.#current?.suggested && !this.readonly) { this.#accept(this.#current); return true; }
    const here = this.#covering(this.#head), next = here[here.indexOf(this.#current) + 1] || here[0];
    if (!next) return this.#walk(true) || true;
    const head = this.#head;
    this.#select(next);
    this.#head = head; // so that Enter goes on to what is around the same word
    return true;
  }

  #leave() {
    if (this.#offered) { this.#draw(); this.#say("Nothing was changed"); return true; }
    if (this.#current) {
      this.#reach(this.#current);
      this.#current = null;
      this.#selecting = this.#units.count > 0;
    } else if (this.#selecting) this.#selecting = false;
    else if (this.#brush) this.#brush = null;
    else { this.#leaving = true; this.#say("Tab leaves the text"); return true; }
    this.#draw();
    this.#say(this.#selecting ? `Selected ${this.#quote(this.#selected())}` : "Nothing is selected");
    return true;
  }

  #remove() {
    const old = this.#current;
    if (!old || this.readonly) { this.#say(this.readonly ? "This text is read only" : "No span is selected"); return true; }
    this.#reach(old);
    this.#current = null;
    this.#selecting = this.#units.count > 0;
    if (old.suggested) {
      this.#suggestions = this.#suggestions.filter((other) => !same(other, this.#span(old)));
      this.#draw();
      this.#say(`Dismissed: ${old.label}, ${this.#quote(old)}`);
    } else this.#commit(this.#spans.filter((other) => !same(other, this.#span(old))), `Removed ${old.label}: ${this.#quote(old)}`);
    return true;
  }

  #moveEdge(edge, forward) {
    const range = this.#current || this.#selected();
    if (!range) { this.#say("Nothing is selected"); return true; }
    const moved = this.#units.moved(range, edge, forward);
    if (this.#current) { if (!this.readonly) this.#reshape(moved); return true; }
    this.#reach(moved);
    this.#draw();
    this.#say(`Selected ${this.#quote(moved)}`);
    return true;
  }

  #help() {
    const dialog = helpDialog(this.#labels, this.readonly);
    dialog.addEventListener("close", () => this.focus({ preventScroll: true }));
    this.append(dialog);
    dialog.showModal();
    return true;
  }

  #copy(event) {
    const range = this.#current || this.#selected();
    if (!range) return;
    event.clipboardData.setData("text/plain", this.#text.slice(range.start, range.end));
    event.preventDefault();
  }
}

customElements.define("quorate-spans", QuorateSpans);
