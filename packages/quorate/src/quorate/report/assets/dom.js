// Elements, numbers and tags: what every part of the page uses. Text reaches the page as text nodes only.

const D = JSON.parse(document.getElementById("data").textContent);
const PLAIN = D.scheme === "plain";

function fill(node, props, kids) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, text] of Object.entries(value)) node.style.setProperty(key, text);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const kid of kids.flat(9)) {
    if (kid === null || kid === undefined || kid === false) continue;
    node.append(kid instanceof Node ? kid : document.createTextNode(String(kid)));
  }
  return node;
}
const h = (tag, props, ...kids) => fill(document.createElement(tag), props, kids);
const s = (tag, props, ...kids) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, kids);

const grouped = new Intl.NumberFormat("en");
const int = (n) => (n === null || n === undefined ? "–" : grouped.format(Math.round(n)));
const fixed = (x, digits) => (x === null || x === undefined ? "–" : x.toFixed(digits));
function pct(x, digits = 0) {
  if (x === null || x === undefined) return "–";
  const text = (100 * x).toFixed(digits);
  if (digits === 0 && x < 1 && text === "100") return ">99%";
  if (digits === 0 && x > 0 && text === "0") return "<1%";
  return text + "%";
}
// An annotator in a sentence, where a name that is nothing but a number would be read as one.
const person = (name) => (/^[0-9]+$/.test(name) ? `annotator “${name}”` : name);
const many = (n, one, more) => `${int(n)} ${n === 1 ? one : more || one + "s"}`;
const announce = (text) => { document.getElementById("announcer").textContent = text; };

// Tags: a code is a place in D.tags; -1 is "not seen". A plain tag is a span of one token.
const PARTS = D.tags.map((tag) =>
  !PLAIN && tag.length > 2 && tag[1] === "-" && "BIES".includes(tag[0]) ? [tag[0], tag.slice(2)] : ["", tag]);
const OUTSIDE = PLAIN ? -2 : D.tags.indexOf("O");
const TYPES = [...new Set([...D.types, ...PARTS.filter(([prefix]) => prefix || PLAIN).map(([, kind]) => kind)])];
// A later piece of a discontinuous span has its label with "…" after it, and its colour.
const hue = (kind) => { const at = TYPES.indexOf(kind.replace(/(.)…$/, "$1")); return at < 0 ? "kx" : "k" + (at % 8); };

function spansOf(codes) {
  const spans = [];
  let start = -1, open = "";
  const close = (end) => { if (start >= 0) spans.push([start, end, open]); start = -1; };
  codes.forEach((code, at) => {
    if (PLAIN) { if (code >= 0) spans.push([at, at + 1, D.tags[code]]); return; }
    if (code < 0 || code === OUTSIDE) { close(at); return; }
    const [prefix, kind] = PARTS[code];
    if (!("IE".includes(prefix) && start >= 0 && kind === open)) { close(at); start = at; open = kind; }
    if ("ES".includes(prefix)) close(at + 1);
  });
  close(codes.length);
  return spans;
}

function tagsOf(spans, length) {
  const tags = Array(length).fill("O");
  for (const [start, end, kind] of spans) {
    if (PLAIN) { for (let at = start; at < end; at++) tags[at] = kind; continue; }
    for (let at = start; at < end; at++) tags[at] = "I-" + kind;
    if (D.scheme !== "io") tags[start] = "B-" + kind;
    if (D.scheme === "bioes") tags[end - 1] = (end - start > 1 ? "E-" : "S-") + kind;
  }
  return tags;
}

const sameSpan = (a, b) => a[0] === b[0] && a[1] === b[1] && a[2] === b[2];
const words = (doc, start, end) =>
  doc.tokens.slice(start, end).map((token, n) => (n && doc.gaps ? doc.gaps[start + n] : n ? " " : "") + token).join("");

function markOf(kind, sure, ...inside) {
  const level = sure === undefined || sure >= 0.9 ? "" : sure >= 0.6 ? "fair" : "weak";
  return h("mark", { class: `${hue(kind)} ${level}`.trim(), style: { "--c": sure === undefined ? 1 : sure } },
    ...inside, h("span", { class: "tag" }, kind, sure === undefined ? null : h("b", {}, pct(sure))));
}

// The text of a document with spans marked; a span is [start, end, type, confidence?].
function markedText(doc, spans) {
  const out = [];
  const gap = (at) => (doc.gaps ? doc.gaps[at] : at === 0 || at === doc.tokens.length ? "" : " ");
  const starts = new Map(spans.map((span) => [span[0], span]));
  let at = 0;
  while (at < doc.tokens.length) {
    out.push(gap(at));
    const span = starts.get(at);
    if (span) { out.push(markOf(span[2], span[3], words(doc, span[0], span[1]))); at = span[1]; }
    else { out.push(doc.tokens[at]); at += 1; }
  }
  out.push(gap(at));
  return out;
}

// A table whose columns sort. A column: {key, label, title, num, value(row), cell(row), first: "ascending"}.
function sortableTable({ caption, columns, rows, sort, descending, detail, limit, label, className }) {
  const state = { key: sort, down: descending, shown: limit || rows.length };
  const body = h("tbody");
  const heads = columns.map((column) => h("th", { scope: "col", class: column.num ? "num" : null, title: column.title },
    h("button", { type: "button", class: "sort", onclick: () => by(column) }, column.label)));
  const more = h("button", { type: "button", class: "button more-button", onclick: () => { state.shown = Infinity; draw(); } });
  const open = new Set();
  let kept = rows;

  function by(column) {
    state.down = state.key === column.key ? !state.down : Boolean(column.num);
    state.key = column.key;
    draw();
    announce(`Sorted by ${column.label}, ${state.down ? "descending" : "ascending"}`);
  }
  function compare(column) {
    const sign = state.down ? -1 : 1;
    return (one, other) => {
      const a = column.value(one), b = column.value(other);
      const none = (x) => x === null || x === undefined;
      if (none(a) || none(b)) return none(a) - none(b);
      return sign * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
    };
  }
  function draw() {
    const column = columns.find(({ key }) => key === state.key);
    const ordered = column ? [...kept].sort(compare(column)) : kept;
    columns.forEach(({ key }, n) =>
      heads[n].setAttribute("aria-sort", key === state.key ? (state.down ? "descending" : "ascending") : "none"));
    body.replaceChildren(...ordered.slice(0, state.shown).flatMap(rowOf));
    more.hidden = ordered.length <= state.shown;
    more.textContent = `Show all ${int(ordered.length)}`;
  }
  function rowOf(row) {
    const cells = columns.map((column, n) => {
      const inside = column.cell ? column.cell(row) : column.value(row);
      if (n) return h("td", { class: column.num ? "num" : null }, inside);
      if (!detail || !detail.can(row)) return h("th", { scope: "row", class: "who" }, inside);
      const toggle = () => { if (!open.delete(row)) open.add(row); draw(); focusRow(row); };
      return h("th", { scope: "row" }, h("button", {
        type: "button", class: "who", "aria-expanded": String(open.has(row)), "data-row": detail.key(row), onclick: toggle,
      }, inside));
    });
    const lines = [h("tr", {}, cells)];
    if (detail && open.has(row)) {
      lines.push(h("tr", { class: "detail" }, h("td", { colspan: columns.length }, h("div", { class: "panel" }, detail.draw(row)))));
    }
    return lines;
  }
  function focusRow(row) {
    const button = [...body.querySelectorAll("button.who")].find((one) => one.dataset.row === String(detail.key(row)));
    if (button) button.focus();
  }
  const element = h("div", {}, h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label || caption },
    h("table", { class: className }, caption ? h("caption", {}, caption) : null,
      h("thead", {}, h("tr", {}, heads)), body)), more);
  draw();
  return {
    element,
    filter(keep) { kept = rows.filter(keep); draw(); return kept.length; },
    open(row) { state.shown = Infinity; open.add(row); draw(); focusRow(row); },
  };
}
