// The page itself: sections in their order, the menu, and the colours.

const METHODS = { auto: "Bayesian sequence combination", mv: "majority vote", ds: "Dawid and Skene", ibcc: "IBCC", mace: "MACE", "hmm-crowd": "HMM-crowd" };
const methodName = METHODS[D.method] || (D.method.startsWith("bsc") ? `Bayesian sequence combination (${D.method})` : D.method);

function summarySection() {
  const S = D.summary, gold = D.gold, tiles = [];
  const tile = (name, value, more) => tiles.push(h("div", {}, h("dt", {}, name), h("dd", {}, h("span", { class: "value" }, value), more ? h("span", { class: "more" }, more) : null)));
  if (gold && gold.method.strict) tile("F1 against gold", fixed(100 * gold.method.strict[2], 1),
    gold.vote ? `majority vote ${fixed(100 * gold.vote.strict[2], 1)}` : `${int(gold.documents)} documents`);
  else if (gold) tile("Right by gold", pct(gold.method.accuracy, 1), `${int(gold.documents)} documents`);
  const by = D.audit && D.audit.scores[0].f1;
  if (by) tile("F1 by the audit", inPoints(by[0]), D.audit.checked === D.audit.documents ? "every document was checked" : `${inPoints(by[1])} to ${inPoints(by[2])}, guaranteed`);
  if (D.agreement && D.agreement.alpha !== null) tile("Agreement", fixed(D.agreement.alpha, 2), "of annotators: Krippendorff's alpha, where 0 is chance and 1 perfect");
  const unchecked = 2 * D.documents.not_judged > D.documents.total && !gold && !D.audit;
  if (unchecked) tile("Documents that nobody can judge", int(D.documents.not_judged), `of ${int(S.documents)}: their annotators share none with anybody`);
  else {
    const most = S.documents > 1 && 2 * D.documents.doubtful > S.documents; // as is usual with several long spans in each
    tile(most ? "Documents with a likely mistake" : "Documents to look at", int(D.documents.doubtful),
      `of ${int(S.documents)}: ${most ? "one wrong start or end of a span is enough" : "more likely to contain a mistake than not"}`);
    tile("Mean confidence", pct(S.confidence), "that a whole document is right (an estimate)");
  }
  if (S.spans !== undefined) tile("Spans", int(S.spans), unchecked ? null : `${pct(S.spans ? S.sure_spans / S.spans : 0)} at least 90% certain`);
  tile("Annotators", int(S.annotators), `${int(S.labels)} labels on ${int(S.tokens)} tokens`);
  const titles = new Map(SECTIONS.map(([id, name]) => [id, name]));
  const link = ({ about, who }) => (titles.has(about) ? h("a", { href: "#" + about, onclick: () => { if (who) showPerson(who); } },
    who ? "Open" : titles.get(about)) : null);
  const topics = [["The consensus", ["audit", "calibration", "documents", "vote"]], ["The annotators", ["annotators"]], ["The task", ["labels", "agreement", "fit"]]]
    .map(([name, abouts]) => [name, D.findings.filter(({ about }) => abouts.includes(about))]).filter(([, found]) => found.length);
  const [told, command] = D.how_good.split(/(?<= unknown: )(?=quorate )/);
  return [
    h("p", { class: "how-good" }, told[0].toUpperCase() + told.slice(1), command ? h("code", {}, command) : "."),
    h("dl", { class: "figures" }, tiles),
    h("p", { class: "small soft estimate" }, `Confidence is ${D.estimate}.`),
    h("div", { class: "two" },
      h("div", {}, h("h3", { style: { "margin-top": 0 } }, "What stands out"),
        topics.map(([name, found]) => [h("h4", { class: "topic" }, name),
          h("ul", { class: "findings" }, found.map((finding) => h("li", {}, h("span", { class: "text" }, finding.text), link(finding))))])),
      h("div", {},
        h("div", { class: "aside" }, h("h3", {}, "What to do next"), h("ol", { class: "steps" }, D.next.map((step) => h("li", {}, step.split(/(--[a-z-]+)/).map((part) => (part.startsWith("--") ? h("code", {}, part) : part)))))),
        h("h3", {}, unchecked ? "How certain the model is, unchecked" : "How certain documents are"),
        histogram(D.documents.histogram, { label: "Documents by confidence", unit: "document", doubtBelow: 0.5 }))),
    D.notes.length ? [h("h3", {}, "Noticed on the way"), h("ul", { class: "small soft" }, D.notes.map((note) => h("li", {}, note)))] : null,
  ];
}

function labelsSection() {
  const unit = D.labels.unit, gold = D.labels.rows.some((row) => row.f1 !== null), alpha = D.labels.rows.some((row) => row.alpha !== null && row.alpha !== undefined);
  const table = sortableTable({
    label: "Labels", rows: D.labels.rows, sort: "confidence", descending: false, className: "sticky-name",
    columns: [
      { key: "label", label: "Label", value: (row) => row.label, cell: (row) => (PLAIN ? row.label : h("mark", { class: hue(row.label) }, row.label)) },
      { key: "spans", label: PLAIN ? "Tokens" : "Spans", num: true, title: `How many ${unit}s of the consensus have it`, value: (row) => row.spans, cell: (row) => int(row.spans) },
      ...(PLAIN ? [] : [{ key: "length", label: "Length", num: true, title: "Mean number of tokens", value: (row) => row.length, cell: (row) => fixed(row.length, 1) }]),
      { key: "confidence", label: "Confidence", num: true, title: "Mean", value: (row) => row.confidence, cell: (row) => pct(row.confidence, 1) },
      { key: "low", label: "Below 90%", num: true, value: (row) => (row.spans ? row.low / row.spans : null), cell: (row) => (row.spans ? `${int(row.low)} (${pct(row.low / row.spans)})` : "–") },
      { key: "marked", label: "Seen by", num: true, title: "Share of those who looked that gave this label", value: (row) => row.marked, cell: (row) => pct(row.marked) },
      { key: "mixed_share", label: "Most mixed up with", value: (row) => row.mixed_share, cell: (row) => (row.mixed_with ? `${row.mixed_with} (${pct(row.mixed_share)})` : "–") },
      ...(alpha ? [{ key: "alpha", label: "Alpha", num: true, title: "Krippendorff's alpha of annotators, for spans of this type", value: (row) => row.alpha, cell: (row) => fixed(row.alpha, 2) }] : []),
      ...(gold ? [{ key: "f1", label: "F1", num: true, title: "Against gold", value: (row) => row.f1, cell: (row) => (row.f1 === null ? "–" : fixed(100 * row.f1, 1)) }] : []),
    ],
  });
  return [h("p", { class: "intro" }, `How many ${unit}s the consensus has of each label, how certain they are, how many of those who looked saw them, and what they took them for instead.`), table.element];
}

function agreementSection() {
  const A = D.agreement;
  if (!A) return [h("p", { class: "intro" }, "No two annotators labelled the same token, so there is no agreement to measure.")];
  const rows = [
    ["Share of pairs with the same label", fixed(A.observed, 3), "high wherever most tokens are outside of spans"],
    ["Krippendorff's alpha, tokens", fixed(A.alpha, 3), "agreement beyond chance; 0.8 is good, below 0.67 is thin"],
    ["Krippendorff's alpha, spans", fixed(A.unitizing_alpha, 3), "the same for where spans begin and end"],
    ["Fleiss' kappa", fixed(A.fleiss_kappa, 3), "another correction for chance"],
    ["Cohen's kappa, mean over pairs", fixed(A.mean_kappa, 3), ""],
    ["Spans matched between annotators, %", A.spans_matched === null ? "–" : fixed(100 * A.spans_matched, 1), "one against another: same start, end and type"],
  ].filter(([, value]) => value !== "–");
  const pairs = A.pairs.map(([first, second, documents, tokens, observed, kappa, f1]) => ({ first, second, documents, tokens, observed, kappa, f1 }));
  const table = sortableTable({
    label: "Pairs of annotators", rows: pairs, sort: "tokens", descending: true, limit: 10, className: "sticky-name",
    columns: [
      { key: "first", label: "Annotator", value: (row) => row.first },
      { key: "second", label: "And", value: (row) => row.second },
      { key: "documents", label: "Documents", num: true, value: (row) => row.documents, cell: (row) => int(row.documents) },
      { key: "tokens", label: "Tokens", num: true, value: (row) => row.tokens, cell: (row) => int(row.tokens) },
      { key: "observed", label: "Same label", num: true, value: (row) => row.observed, cell: (row) => pct(row.observed) },
      { key: "kappa", label: "Kappa", num: true, value: (row) => row.kappa, cell: (row) => fixed(row.kappa, 2) },
      ...(PLAIN ? [] : [{ key: "f1", label: "Spans matched, %", num: true, value: (row) => row.f1, cell: (row) => fixed(row.f1 === null ? null : 100 * row.f1, 1) }]),
    ],
  });
  return [
    h("p", { class: "intro" }, `Before any model: ${many(A.documents, "document")} and ${many(A.tokens, "token")} have two annotators or more.`),
    h("div", { class: "scroll" }, h("table", { style: { width: "auto" } }, h("tbody", {}, rows.map(([name, value, note]) =>
      h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "num" }, value), h("td", { class: "soft small" }, note)))))),
    h("h3", {}, "Two by two"),
    A.n_pairs > pairs.length ? h("p", { class: "small soft" }, `The ${pairs.length} pairs of ${int(A.n_pairs)} that share most tokens.`) : null,
    table.element,
  ];
}

function voteSection() {
  const V = D.vote, total = D.documents.total;
  const spans = V.spans && [
    ["kept as they are", V.spans.kept], ["with other bounds", V.spans.moved], ["with another type", V.spans.retyped], ["dropped", V.spans.dropped]];
  const changed = DOCS.filter((doc) => doc.vote && differs(doc.tags, doc.vote)).slice(0, 5);
  const whole = V.spans ? Math.max(V.spans.vote, 1) : 1;
  return [
    h("p", { class: "intro" }, `The consensus differs from a vote on every token in ${many(V.documents, "document")} of ${int(total)} (${pct(V.documents / total)}), at ${many(V.tokens, "token")}.`),
    spans ? h("div", { class: "scroll" }, h("table", { style: { width: "auto" } }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Spans of the vote"), h("th", { class: "num", scope: "col" }, int(V.spans.vote)), h("td", {}))),
      h("tbody", {}, spans.map(([name, n]) => h("tr", {}, h("th", { scope: "row", style: { "font-weight": 400 } }, name), h("td", { class: "num" }, int(n)), h("td", { class: "num soft" }, pct(n / whole)))),
        h("tr", {}, h("th", { scope: "row", style: { "font-weight": 400 } }, "added, where the vote has none"), h("td", { class: "num" }, int(V.spans.added)), h("td", {}, ""))))) : null,
    changed.length ? [h("h3", {}, "For example"), h("div", { class: "examples" }, changed.map((doc) => h("div", { class: "example" },
      h("div", {}, h("span", { class: "which" }, "vote"), h("span", {}, markedText(doc, spansOf(doc.vote)))),
      h("div", {}, h("span", { class: "which" }, "consensus"), h("span", {}, markedText(doc, spansOf(doc.tags)))),
      h("div", { class: "small soft" }, h("span", { class: "which" }, ""), h("span", {}, doc.id, doc.gold ? ` · gold agrees with ${goldsChoice(doc)}` : "")))))] : null,
  ];
}

function goldsChoice(doc) {
  if (!differs(doc.tags, doc.gold)) return "the consensus";
  return differs(doc.vote, doc.gold) ? "neither" : "the vote";
}

function goldSection() {
  const G = D.gold, M = G.method, V = G.vote;
  const scores = M.strict ? [["Strict F1", "strict"], ["Relaxed F1", "relaxed"]] : [];
  const number = (x) => fixed(100 * x, 1);
  const line = (name, of) => h("tr", {}, h("th", { scope: "row" }, name), scores.flatMap(([, key]) => of[key].map((x) => h("td", { class: "num" }, number(x)))), h("td", { class: "num" }, pct(of.accuracy, 1)));
  const table = h("div", { class: "scroll" }, h("table", { style: { width: "auto" } }, h("thead", {},
    scores.length ? h("tr", {}, h("td", {}), scores.map(([name]) => h("th", { colspan: 3, scope: "colgroup", class: "num" }, name)), h("td", {})) : null,
    h("tr", {}, h("td", {}), scores.flatMap(() => ["Precision", "Recall", "F1"].map((name) => h("th", { scope: "col", class: "num" }, name))), h("th", { scope: "col", class: "num" }, "Tokens right"))),
    h("tbody", {}, line("Consensus", M), V ? line("Majority vote", V) : null)));
  const charts = [["Spans", G.calibration.spans], ["Tokens", G.calibration.tokens], ["Whole documents", G.document_calibration]].filter(([, found]) => found);
  return [
    h("p", { class: "intro" }, `${many(G.documents, "document")}${G.split ? ` of split ${G.split}` : ""} have gold that was not used in the fit; ${int(G.right)} of them are right from end to end (${pct(G.right / G.documents)}).`),
    table,
    h("h3", {}, "Does it know when it is right?"),
    h("p", {}, "Dots on the dashed line are honest: of all that is given 80%, 80% is right. Below it, confidence is too high. Large dots stand for many."),
    h("div", { class: "matrices" }, charts.map(([name, found]) => calibrationChart(found, name))),
    G.errors && G.errors.length ? [h("h3", {}, "What it gets wrong"),
      h("p", { class: "soft" }, "Each kind with those examples in which the consensus was surest."),
      G.errors.map((error, n) => h("details", { open: n === 0 }, h("summary", {}, h("b", {}, error.name), ` · ${many(error.count, "span")}`),
        h("div", { class: "examples" }, error.examples.map((doc) => h("div", { class: "example" },
          h("div", {}, h("span", { class: "which" }, "gold"), h("span", {}, markedText(doc, spansOf(doc.gold)))),
          h("div", {}, h("span", { class: "which" }, "consensus"), h("span", {}, markedText(doc, spansOf(doc.tags)))),
          h("div", { class: "small soft" }, h("span", { class: "which" }, ""), h("span", {}, doc.id)))))))] : null,
  ];
}

function fitSection() {
  const F = D.fit;
  const settings = sortableTable({
    label: "Settings", rows: D.settings, columns: [
      { key: "name", label: "Setting", value: (row) => row.name, cell: (row) => h("code", {}, row.name) },
      { key: "value", label: "Value", value: (row) => row.value },
      { key: "why", label: "Why", value: (row) => row.why },
    ],
  });
  return [
    F ? [h("p", { class: "intro" }, `${many(F.bounds.length, "pass", "passes")}; it stopped because ${F.reason === "converged" ? "the bound had settled" : "the number of passes was used up"}.`,
      F.starts.length > 1 ? ` Of ${F.starts.length} starts the best was kept.` : ""),
      h("div", { class: "two even" }, h("figure", { style: { margin: 0 } }, h("figcaption", {}, "The bound, pass by pass"), traceChart(F.bounds)),
        h("div", {}, h("p", { class: "small soft" }, "The bound says how well the model explains what the annotators did. It never falls. A higher one does not always mean a better consensus: compare methods by gold, not by their bounds.")))]
      : h("p", { class: "intro" }, "This method counts; nothing is fitted."),
    h("h3", {}, "Settings"),
    D.changes.length ? h("ul", { class: "soft" }, D.changes.map((sentence) => h("li", {}, sentence))) : null,
    settings.element,
    D.inputs.length ? h("p", { class: "small soft" }, "Read from ", D.inputs.map((name, n) => [n ? ", " : "", h("code", {}, name)]), ".") : null,
  ];
}

const SECTIONS = [
  ["summary", "Summary", summarySection],
  ...(D.audit ? [["audit", "Audit", auditSection]] : []),
  ["annotators", "Annotators", peopleSection],
  ["documents", "Documents", documentsSection],
  ["labels", "Labels", labelsSection],
  ["agreement", "Agreement", agreementSection],
  ...(D.vote ? [["vote", "Against the vote", voteSection]] : []),
  ...(D.gold ? [["calibration", "Against gold", goldSection]] : []),
  ["fit", "The fit", fitSection],
];

function themeButton() {
  const button = document.getElementById("theme"), order = ["auto", "light", "dark"];
  let now = "auto";
  try { now = localStorage.getItem("quorate-colours") || "auto"; } catch { /* the system's colours, then */ }
  const apply = () => {
    if (now === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = now;
    button.textContent = `Colours: ${now}`;
    button.setAttribute("aria-label", `Colours: ${now === "auto" ? "as the system has them" : now}`);
  };
  button.addEventListener("click", () => {
    now = order[(order.indexOf(now) + 1) % order.length];
    try { localStorage.setItem("quorate-colours", now); } catch { /* for now only */ }
    apply();
  });
  apply();
}

document.getElementById("lede").textContent =
  `${many(D.summary.documents, "document")}, ${many(D.summary.annotators, "annotator")}, combined by ${methodName}.`.replaceAll("-", "\u2011");
for (const [id, name, build] of SECTIONS) {
  document.getElementById("main").append(h("section", { id, "aria-labelledby": id + "-title" }, h("h2", { id: id + "-title" }, name), build()));
  document.getElementById("sections").append(h("li", {}, h("a", { href: "#" + id }, name)));
}
themeButton();
drawReviewBar();
if ("IntersectionObserver" in window) {
  const links = new Map([...document.querySelectorAll("#sections a")].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      links.forEach((link) => link.removeAttribute("aria-current"));
      links.get(entry.target.id).setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  document.querySelectorAll("main > section").forEach((section) => seen.observe(section));
}
