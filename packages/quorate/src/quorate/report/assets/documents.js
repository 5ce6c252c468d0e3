// Documents: filter, read, open; everybody's version, and why the consensus is what it is.

const DOCS = D.documents.list;
const PAGE = 25;
const docView = { shown: PAGE, open: new Set(), unfolded: new Set(), kept: DOCS, list: null, count: null, more: null, ordinary: [] };

const consensusSpans = (doc) =>
  PLAIN ? doc.tags.map((code, at) => [at, at + 1, D.tags[code], doc.sure[at]]) : doc.spans;
const leastSpan = (doc) => Math.min(1, ...consensusSpans(doc).map((span) => span[3]));
const differs = (one, other) => one.some((code, at) => other[at] >= 0 && code !== other[at]);
const disagreement = (doc) =>
  doc.labels.length ? doc.labels.filter(([, codes]) => differs(doc.tags, codes)).length / doc.labels.length : 0;

EVERY_DOC.forEach((doc, rank) => {
  doc.rank = rank;
  doc.haystack = (doc.id + " " + words(doc, 0, doc.tokens.length)).toLowerCase();
  doc.kinds = new Set([doc.tags, ...doc.labels.map(([, codes]) => codes)].flatMap((codes) => spansOf(codes).map((span) => span[2])));
});

function documentsSection() {
  const field = (name, control) => h("label", { class: "field" }, name, control);
  const search = h("input", { type: "search", id: "doc-search", placeholder: "Words or id", oninput: refilter });
  const label = h("select", { id: "doc-label", onchange: refilter }, h("option", { value: "" }, "any"), TYPES.map((kind) => h("option", { value: kind }, kind)));
  const who = h("select", { id: "doc-who", onchange: refilter }, h("option", { value: "" }, "anyone"),
    PEOPLE.map((person, k) => h("option", { value: k }, person.name)));
  const out = h("output", { for: "doc-sure" }, "100%");
  const sure = h("input", { type: "range", id: "doc-sure", min: 0, max: 100, value: 100, step: 1, "aria-describedby": "doc-count",
    oninput: () => { out.textContent = sure.value + "%"; refilter(); } });
  const order = h("select", { id: "doc-order", onchange: refilter },
    [["rank", "least certain document"], ["span", "least certain span"], ["fight", "most disagreement"], ["id", "id"]].map(([value, text]) => h("option", { value }, text)));
  const box = (id, text) => h("label", { class: "check" }, h("input", { type: "checkbox", id, onchange: refilter }), text);
  const against = h("label", { class: "check", hidden: true }, h("input", { type: "checkbox", id: "doc-against", onchange: refilter }), "and disagrees");
  const boxes = [
    DOCS.some((doc) => doc.vote) ? box("doc-vote", "differs from the vote") : null,
    DOCS.some((doc) => doc.gold) ? box("doc-gold", "wrong by gold") : null,
    box("doc-todo", "not yet checked"),
  ];
  docView.controls = { search, label, who, sure, order, against };
  docView.count = h("p", { class: "small soft", id: "doc-count", role: "status" });
  docView.list = h("div", { id: "doc-list" });
  docView.more = h("button", { type: "button", class: "button more-button", onclick: () => { docView.shown += PAGE; drawDocuments(); } });
  refilter();
  const embedded = DOCS.length < D.documents.total
    ? `The ${int(DOCS.length)} least certain of ${many(D.documents.total, "document")} are in this file (--documents all takes in the rest).`
    : `All ${many(D.documents.total, "document")} are in this file.`;
  docView.ordinary = [
    h("p", { class: "intro" }, embedded, " A document's figure is the probability that all its tags are right; a span's, that exactly this span is. ",
      D.gold || D.audit ? null : "Annotators share mistakes, so these figures are on the high side: take them as a ranking."),
    h("div", { class: "toolbar", role: "search" }, h("label", { class: "field grow" }, "Search", search), field("Label", label),
      field(h("span", {}, "Confidence up to ", out), sure), field("Annotated by", who), against, field("Order", order), ...boxes),
  ];
  return [
    docView.ordinary[0], checkPanel(),
    h("div", { class: "legend", "aria-hidden": "true" }, "A span is shaded by its confidence, and underlined:",
      h("span", {}, markOf(TYPES[0], 0.95, "certain")), h("span", {}, markOf(TYPES[0], 0.72, "fairly")), h("span", {}, markOf(TYPES[0], 0.4, "hardly"))),
    docView.ordinary[1], docView.count, docView.list, docView.more,
  ];
}

function refilter() {
  if (checking.on) {
    docView.kept = PLAN;
    docView.shown = Infinity;
    drawDocuments();
    return;
  }
  const { search, label, who, sure, order, against } = docView.controls;
  const wanted = search.value.trim().toLowerCase(), k = who.value === "" ? null : Number(who.value);
  const on = (id) => { const box = document.getElementById(id); return Boolean(box && box.checked); };
  against.hidden = k === null;
  docView.kept = DOCS.filter((doc) => {
    if (wanted && !doc.haystack.includes(wanted)) return false;
    if (label.value && !doc.kinds.has(label.value)) return false;
    if (sure.value < 100 && doc.confidence > sure.value / 100) return false;
    if (k !== null) {
      const version = doc.labels.find(([who_]) => who_ === k);
      if (!version || (on("doc-against") && !differs(doc.tags, version[1]))) return false;
    }
    if (on("doc-vote") && !differs(doc.tags, doc.vote)) return false;
    if (on("doc-gold") && !(doc.gold && differs(doc.tags, doc.gold))) return false;
    return !(on("doc-todo") && review.has(doc.id));
  });
  const keys = { rank: (doc) => doc.rank, span: leastSpan, fight: (doc) => -disagreement(doc) };
  if (order.value === "id") docView.kept.sort((a, b) => a.id.localeCompare(b.id, "en", { numeric: true }));
  else docView.kept.sort((a, b) => keys[order.value](a) - keys[order.value](b) || a.rank - b.rank);
  docView.shown = PAGE;
  drawDocuments();
}

function drawDocuments() {
  const shown = docView.kept.slice(0, docView.shown);
  docView.list.replaceChildren(...shown.map(documentCard));
  docView.count.textContent = `${many(docView.kept.length, "document")}${shown.length < docView.kept.length ? `, ${shown.length} shown` : ""}`;
  docView.more.hidden = shown.length >= docView.kept.length;
  if (checking.on) drawProgress();
  docView.more.textContent = `Show ${Math.min(PAGE, docView.kept.length - shown.length)} more`;
}

function redraw(doc) {
  const old = [...docView.list.children].find((card) => card.dataset.id === doc.id);
  if (old) old.replaceWith(documentCard(doc));
}

function documentCard(doc) {
  const open = docView.open.has(doc.id), checked = review.get(doc.id);
  const toggle = () => {
    if (!docView.open.delete(doc.id)) docView.open.add(doc.id);
    redraw(doc);
    focusIn(doc, "button.who");
  };
  const spans = checked ? checked.spans : consensusSpans(doc);
  return h("article", { class: open ? "doc open" : "doc", "data-id": doc.id },
    h("div", { class: "sure" }, doc.known ? "known" : pct(doc.confidence), doc.known ? null : h("small", {}, "all tags right"),
      h("div", { class: doc.confidence < 0.5 ? "meter doubt" : "meter", "aria-hidden": "true" }, h("i", { style: { width: `${100 * Math.min(1, doc.confidence)}%` } }))),
    h("div", {},
      h("div", { class: doc.tokens.length > 110 ? "text long" : "text" }, doc.tokens.length ? markedText(doc, spans) : h("span", { class: "faint" }, "(no token)")),
      h("div", { class: "head" },
        h("button", { type: "button", class: "who", "aria-expanded": String(open), onclick: toggle }, doc.id),
        h("span", {}, agreeing(doc)),
        doc.vote && differs(doc.tags, doc.vote) ? h("span", { class: "flag" }, "differs from the vote") : null,
        doc.gold && differs(doc.tags, doc.gold) && !checking.on ? h("span", { class: "flag off" }, "wrong by gold") : null,
        doc.split ? h("span", { class: "flag" }, doc.split) : null,
        checked && !checking.on ? h("span", { class: "flag done" }, "✓ checked") : null,
        checking.on ? h("span", {}, `${PLAN.indexOf(doc) + 1} of ${PLAN.length} drawn`) : null),
      checking.on ? checkLine(doc) : null),
    open ? h("div", { class: "panel" }, documentPanel(doc)) : null);
}

function agreeing(doc) {
  const n = doc.labels.length, same = doc.labels.filter(([, codes]) => !differs(doc.tags, codes)).length;
  if (!n) return "nobody annotated it";
  if (n === 1) return same ? "its one annotator agrees" : "its one annotator disagrees";
  return same === n ? `all ${n} annotators agree` : `${same || "none"} of ${n} annotators ${same === 1 ? "agrees" : "agree"}`;
}

function focusIn(doc, selector) {
  const card = [...docView.list.children].find((one) => one.dataset.id === doc.id);
  const target = card && card.querySelector(selector);
  if (target) target.focus();
}

function documentPanel(doc) {
  return [h("h3", {}, "Everybody's version"), versionsTable(doc), editor(doc), whyPart(doc)];
}

// Which tokens to show: those in or near somebody's span; a longer run that everybody leaves alone is folded.
const NEAR = 3, LEAST_FOLDED = 6;
function columnsOf(doc, versions) {
  const near = Array(doc.tokens.length).fill(false);
  const [from, to] = selectionOf(doc);
  const places = [...versions.flatMap((codes) => spansOf(codes)), ...(to > from ? [[from, to]] : [])];
  for (const [start, end] of places) for (let at = Math.max(0, start - NEAR); at < Math.min(near.length, end + NEAR); at++) near[at] = true;
  const columns = [];
  let at = 0;
  while (at < near.length) {
    let end = at + 1;
    while (!near[at] && end < near.length && !near[end]) end += 1;
    if (!near[at] && end - at >= LEAST_FOLDED && !PLAIN && !docView.unfolded.has(doc.id)) columns.push([at, end]);
    else for (let one = at; one < end; one++) columns.push([one, one + 1]);
    at = end;
  }
  return columns;
}

function versionsTable(doc) {
  const selected = selectionOf(doc), checked = review.get(doc.id);
  const mine = checked && checked.tags.map((tag) => D.tags.indexOf(tag));
  const versions = [doc.tags, ...doc.labels.map(([, codes]) => codes), doc.vote, doc.gold, mine].filter(Boolean);
  const columns = columnsOf(doc, versions);
  const unfold = () => { docView.unfolded.add(doc.id); redraw(doc); focusIn(doc, "button.token"); };
  const heads = columns.map(([at, end]) => h("th", { scope: "col" }, end - at > 1
    ? h("button", { type: "button", class: "skipped", title: words(doc, at, end), "aria-label": `show ${end - at} more words`, onclick: unfold }, `… ${end - at} …`)
    : h("button", {
      type: "button", class: "token", "data-at": at, "aria-pressed": String(at >= selected[0] && at < selected[1]),
      "aria-label": `token ${at + 1}: ${doc.tokens[at]}`, onclick: (event) => select(doc, at, event.shiftKey), onkeydown: (event) => moveSelection(doc, at, event),
    }, doc.tokens[at])));
  const row = (name, note, codes, main, use) => h("tr", { class: main ? "main" : null },
    h("th", { scope: "row" }, name, " ", note ? h("small", {}, note) : null, " ",
      use ? h("button", { type: "button", class: "use no-print", "aria-label": `use the version of ${name}`, onclick: () => takeVersion(doc, codes) }, "use") : null),
    tagCells(codes, columns));
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Versions" }, h("table", { class: "versions" },
    h("thead", {}, h("tr", {}, h("td", {}), heads)),
    h("tbody", {},
      checked ? row("Your review", "", mine, true, false) : null,
      row("Consensus", "", doc.tags, true, false),
      doc.labels.map(([k, codes]) => row(PEOPLE[k].name, PEOPLE[k].kind, codes, false, true)),
      doc.vote ? row("Majority vote", "", doc.vote, false, true) : null,
      doc.gold ? row("Gold", "", doc.gold, false, true) : null)));
}

function tagCells(codes, columns) {
  const starts = new Map(spansOf(codes).map((span) => [span[0], span]));
  const cells = [];
  for (const [at, end] of columns) {
    const span = starts.get(at);
    if (span) cells.push(h("td", { class: `in ${hue(span[2])}`, colspan: span[1] - span[0] }, span[2]));
    else if (codes[at] < 0) cells.push(h("td", { class: "unseen-token", title: "not seen" }, h("span", { class: "unseen" }, "not seen")));
    else if (codes[at] === OUTSIDE) cells.push(h("td", {}, end - at > 1 ? "" : "·"));
  }
  return cells;
}

function spanInWords(doc, span) { return [markOf(span[2], undefined, words(doc, span[0], span[1]))]; }

function whyPart(doc) {
  const why = doc.why;
  if (!why) {
    const reason = doc.known ? "The labels of this document were given as known." : D.documents.explained
      ? "How far each annotator moved this document cannot be told apart here." : "With this method every vote counts the same: there is nothing more to explain.";
    return [h("h3", {}, "Why"), h("p", { class: "small soft" }, reason)];
  }
  const inConsensus = (span) => consensusSpans(doc).some((one) => sameSpan(one, span));
  const asked = why.spans.map((span, n) => ({ span, n, in: inConsensus(span) }))
    .filter((one) => one.in || one.span[3] >= 0.02).sort((a, b) => b.in - a.in || b.span[3] - a.span[3]);
  const turns = why.changes.map(([gone, come], a) => [a, gone, come]).filter(([, gone, come]) => gone.length || come.length);
  return [
    h("h3", {}, "Why"),
    h("p", { class: "small soft" }, "How much each annotator moves the probability of a span, all else as it is: to the right they speak for it, to the left against it. ",
      "Nothing is fitted again; only their labels here are taken away."),
    asked.length ? h("div", { class: "why" }, asked.map((one) => spanCard(doc, one))) : h("p", { class: "small" }, "Nobody marked anything here."),
    h("h3", {}, "What would change without them"),
    turns.length ? h("ul", { class: "turns" }, turns.map(([a, gone, come]) => h("li", {}, "Without ", h("b", {}, PEOPLE[why.who[a]].name), ": ",
      gone.map((span, n) => [n ? ", " : "", spanInWords(doc, span)]), gone.length ? " would go" : "", gone.length && come.length ? "; " : "",
      come.map((span, n) => [n ? ", " : "", spanInWords(doc, span)]), come.length ? " would come" : "", ".")))
      : h("p", { class: "small" }, "Nothing: no single annotator decides this document."),
  ];
}

function spanCard(doc, { span, n, in: chosen }) {
  const why = doc.why;
  const pulls = why.who.map((k, a) => ({ k, without: why.without[n][a], moved: span[3] - why.without[n][a] }))
    .sort((one, other) => other.moved - one.moved);
  const most = Math.max(0.05, ...pulls.map(({ moved }) => Math.abs(moved)));
  return h("article", {},
    h("p", { class: "claim" }, markOf(span[2], span[3], words(doc, span[0], span[1])), " ",
      h("span", { class: "small soft" }, chosen ? "" : "not in the consensus · ", `${pct(why.none[n])} from the text alone`)),
    h("div", { class: "pull" }, pulls.map(({ k, without, moved }) => {
      const points = 100 * moved, wide = `${(50 * Math.abs(moved)) / most}%`;
      const sign = Math.abs(points) < 0.05 ? "±0" : (points > 0 ? "+" : "−") + Math.abs(points).toFixed(1);
      return [h("span", { class: "name", title: PEOPLE[k].name }, PEOPLE[k].name),
        h("span", { class: "track", "aria-hidden": "true" }, h("i", { class: moved >= 0 ? "for" : "against", style: { width: wide } })),
        h("span", { class: "num" }, `${sign} pts`, h("span", { class: "faint" }, ` · ${pct(without)} without`))];
    })));
}
