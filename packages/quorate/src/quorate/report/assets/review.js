// Review: corrections made in the page, kept in this browser, exported as known labels.

// Those of an audit are in the page too, whether or not they are among the least certain.
const EVERY_DOC = [...D.documents.list, ...D.documents.of_audit];
const DOC_BY_ID = new Map(EVERY_DOC.map((doc) => [doc.id, doc]));
const STORE = "quorate-review-" + D.digest;
const NOTES_STORE = "quorate-notes-" + D.digest;
const REVIEWER_STORE = "quorate-reviewer"; // one name for all reports
const review = new Map();
const notes = new Map();
const selections = new Map();
let reviewer = "";

try {
  reviewer = localStorage.getItem(REVIEWER_STORE) || "";
  const kept = JSON.parse(localStorage.getItem(STORE) || "[]");
  for (const [id, tags, time] of kept) {
    const doc = DOC_BY_ID.get(id);
    if (doc && Array.isArray(tags) && tags.length === doc.tokens.length) review.set(id, checkedOf(tags, time));
  }
  for (const [id, note] of JSON.parse(localStorage.getItem(NOTES_STORE) || "[]")) if (DOC_BY_ID.has(id)) notes.set(id, String(note));
} catch { /* a page without storage still reviews, for as long as it is open */ }

function checkedOf(tags, time) { return { tags, time, spans: spansOf(tags.map((tag) => D.tags.indexOf(tag))) }; }

function store(name, value) { try { localStorage.setItem(name, value); } catch { /* as above */ } }

function keep() { store(STORE, JSON.stringify([...review].map(([id, { tags, time }]) => [id, tags, time]))); }

function keepNotes() { store(NOTES_STORE, JSON.stringify([...notes])); }

function settle(doc, tags, done) {
  review.set(doc.id, checkedOf(tags, new Date().toISOString()));
  keep();
  redraw(doc);
  drawReviewBar();
  announce(`${doc.id}: ${done}`);
}

const takeVersion = (doc, codes) => settle(doc, tagsOf(spansOf(codes), doc.tokens.length).map((tag, at) =>
  PLAIN && codes[at] < 0 ? D.tags[doc.tags[at]] : tag), "version taken");
const selectionOf = (doc) => selections.get(doc.id) || [0, 0];

function select(doc, at, extend, focus = at) {
  const [start, end, anchor] = selections.get(doc.id) || [at, at, at];
  const from = extend && end > start ? anchor : at;
  selections.set(doc.id, [Math.min(from, at), Math.max(from, at) + 1, from]);
  redraw(doc);
  focusIn(doc, `button.token[data-at="${focus}"]`);
}

function moveSelection(doc, at, event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step) {
    const to = at + step;
    if (to < 0 || to >= doc.tokens.length) return;
    event.preventDefault();
    if (event.shiftKey) {
      if (selectionOf(doc)[1] === 0) selections.set(doc.id, [at, at + 1, at]);
      select(doc, to, true);
    } else focusIn(doc, `button.token[data-at="${to}"]`);
    return;
  }
  const digit = "123456789".indexOf(event.key);
  if (digit >= 0 && digit < TYPES.length) { event.preventDefault(); assign(doc, TYPES[digit]); }
  if ((event.key === "0" || event.key === "Delete") && !PLAIN) { event.preventDefault(); assign(doc, null); }
}

// Give the selected tokens one label, as one span; what it overlaps gives way.
function assign(doc, kind) {
  const [start, end] = selectionOf(doc);
  if (end <= start) { announce("Select tokens first"); return; }
  const now = review.get(doc.id) || { spans: consensusSpans(doc) };
  const rest = now.spans.flatMap(([from, to, label]) =>
    [[from, Math.min(to, start), label], [Math.max(from, end), to, label]].filter(([a, b]) => b > a));
  if (kind !== null) rest.push([start, end, kind]);
  rest.sort((a, b) => a[0] - b[0]);
  const text = words(doc, start, end);
  settle(doc, tagsOf(rest, doc.tokens.length), kind === null ? `“${text}” unmarked` : `“${text}” marked ${kind}`);
  focusIn(doc, `button.token[data-at="${start}"]`);
}

function editor(doc) {
  const [start, end] = selectionOf(doc), none = end <= start, checked = review.has(doc.id);
  const label = (kind, n) => h("button", { type: "button", class: "button", disabled: none, onclick: () => assign(doc, kind) },
    kind === null ? "No span" : kind, n < 10 ? h("span", { class: "faint" }, ` ${n}`) : null);
  return h("div", { class: "edit no-print", role: "group", "aria-label": "Correct this document" },
    checking.on ? (checking.done.has(doc.id) ? null : checkButton(doc))
      : h("button", { type: "button", class: "button main", onclick: () => settle(doc, asGiven(doc), "accepted") }, "Accept the consensus"),
    TYPES.slice(0, 24).map((kind, n) => label(kind, n + 1)), PLAIN ? null : label(null, 0),
    checked ? h("button", { type: "button", class: "quiet", onclick: () => undo(doc) }, "Undo the review") : null,
    noteField(doc),
    h("span", { class: "hint" }, none ? "To correct: click a word above (Shift-click for more, or Shift and the arrow keys), then choose a label or press its number."
      : ["Selected: ", h("b", {}, words(doc, start, end)), ". Choose a label, or press its number."]));
}

// A note goes with the review of its document; alone it is only kept here.
function noteField(doc) {
  const field = h("input", { type: "text", class: "note-field", value: notes.get(doc.id) || null, placeholder: "why, for whoever settles disputes", oninput: () => {
    if (field.value.trim()) notes.set(doc.id, field.value.trim());
    else notes.delete(doc.id);
    keepNotes();
  } });
  return h("label", { class: "note-line" }, "Note ", field);
}

function reviewerField() {
  const field = h("input", { type: "text", id: "reviewer", value: reviewer || null, placeholder: "if you like", autocomplete: "name", oninput: () => {
    reviewer = field.value.trim();
    store(REVIEWER_STORE, reviewer);
  } });
  return h("label", { class: "reviewer" }, "Your name ", field);
}

function undo(doc) {
  review.delete(doc.id);
  keep();
  if (checking.done.delete(doc.id)) keepChecked();
  redraw(doc);
  drawReviewBar();
  focusIn(doc, "button.who");
}

function drawReviewBar() {
  const bar = document.getElementById("review-bar");
  bar.hidden = review.size === 0 && !checking.on;
  if (checking.on) {
    drawProgress();
    bar.replaceChildren(h("div", { class: "wide" }, checkedBar()));
    return;
  }
  const fixed_ = [...review.keys()].filter((id) => isCorrected(DOC_BY_ID.get(id))).length;
  bar.replaceChildren(h("div", { class: "wide" },
    h("p", {}, h("b", {}, `${many(review.size, "document")} checked`), `, ${fixed_} corrected. Export, then: quorate aggregate … ${D.layer ? "--layers auto " : ""}--known review.jsonl`),
    reviewerField(),
    h("button", { type: "button", class: "button", onclick: forget }, "Forget all"),
    h("button", { type: "button", class: "button main", id: "export", onclick: exportReview }, "Export review")));
}

function forget() {
  if (!confirm(`Forget the review of ${many(review.size, "document")}?`)) return;
  const docs = [...review.keys()].map((id) => DOC_BY_ID.get(id));
  review.clear();
  notes.clear();
  keep();
  keepNotes();
  checking.done.clear();
  keepChecked();
  docs.forEach(redraw);
  drawReviewBar();
}

function exportReview() { download("review.jsonl", [...review.keys()].map((id) => DOC_BY_ID.get(id))); }

// Who, when, why and of which version: what is not known is left out.
function decisionOn(doc) {
  const { tags, time } = review.get(doc.id);
  const about = { reviewer, time, note: notes.get(doc.id), version: D.of_version, layer: D.layer };
  return { id: doc.id, tokens: doc.tokens, tags, ...Object.fromEntries(Object.entries(about).filter(([, value]) => value !== undefined && value !== null && value !== "")) };
}

function download(name, checked) {
  const lines = checked.map((doc) => JSON.stringify(decisionOn(doc)));
  const link = h("a", { download: name, href: URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "application/x-ndjson" })) });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  announce(`${many(checked.length, "document")} exported`);
}
