// Annotators: the table, each one's matrices, and groups of like ones.

const PEOPLE = D.annotators.rows;
// What becomes of a span of the consensus, and of their own; the last says whether much of it is bad.
const HABITS = [
  ["found", "Found", "Share of the consensus's spans that they marked in some way", false],
  ["exact", "Exact", "Share of the consensus's spans that they marked just so", false],
  ["shifted", "Shifted", "Share of the consensus's spans that they marked with another start or end", true],
  ["split", "Pieces", "Share of the consensus's spans that they marked in pieces", true],
  ["wrong_type", "Type", "Share of the consensus's spans where they only marked something of another type", true],
  ["missed", "Missed", "Share of the consensus's spans where they marked nothing", true],
  ["invented", "Invented", "Share of their own spans that touch no span of the consensus", true],
];
const IN_FULL = { split: "In pieces", wrong_type: "Another type", invented: "Invented, of their own" };
const WAYS = { early_start: "starts early", late_start: "starts late", early_end: "ends early", late_end: "ends late" };
const TROUBLE = new Set(["noise", "marks nothing", "misses many", "marks too much"]);
let peopleTable = null;

function between([, low, high]) {
  return `${pct(low)} to ${pct(high)}`;
}

function shareCell(person, kind, bad) {
  const told = person.habits[kind], crowd = D.annotators.habits[kind];
  if (!told) return h("span", { class: "faint" }, "–");
  const high = bad && told[0] >= 0.1 && told[0] > 1.5 * (crowd || 0);
  return h("span", { class: high ? "share high" : bad ? "share" : "share good", title: `95%: ${between(told)}; the crowd: ${pct(crowd)}` },
    pct(told[0]), h("i", { style: { width: `${Math.min(100, 100 * told[0])}%` } }));
}

function kindChip(kind) {
  const tone = kind === "careful" ? "careful" : TROUBLE.has(kind) ? "trouble" : "";
  return h("span", { class: `kind ${tone}`.trim() }, kind);
}

function peopleSection() {
  const from = Math.max(0, Math.min(...PEOPLE.map((row) => row.low ?? row.accuracy ?? 1)) - 0.02);
  const columns = [
    { key: "name", label: "Annotator", value: (row) => row.name },
    { key: "kind", label: "Kind", value: (row) => row.kind, cell: (row) => kindChip(row.kind) },
    { key: "labels", label: "Labels", num: true, title: "Labels given, one a token", value: (row) => row.labels, cell: (row) => int(row.labels) },
    { key: "accuracy", label: "Accuracy", num: true, title: "Expected share of right labels, with a 95% interval over documents",
      value: (row) => row.accuracy,
      cell: (row) => (row.accuracy === null ? "–" : [intervalChart(row.low, row.accuracy, row.high, from), " ", pct(row.accuracy, 1),
        h("span", { class: "unseen" }, row.low === null ? "" : `, from ${pct(row.low, 1)} to ${pct(row.high, 1)}`)]) },
    { key: "informativeness", label: "Bits", num: true, title: "Informativeness: bits that one label tells about the truth",
      value: (row) => row.informativeness, cell: (row) => fixed(row.informativeness, 2) },
    ...(PLAIN ? [] : HABITS.map(([key, label, title, bad]) => ({
      key, label, title, num: true, value: (row) => row.habits[key]?.[0] ?? null, cell: (row) => shareCell(row, key, bad) }))),
    ...(D.matrices.groups && D.matrices.groups.length > 1 ? [{ key: "group", label: "Group", num: true,
      value: (row) => row.group, cell: (row) => (row.group === null ? "–" : row.group + 1) }] : []),
  ];
  peopleTable = sortableTable({
    label: "Annotators", className: "sticky-name people", columns, rows: PEOPLE, sort: "informativeness", descending: true, limit: 60,
    detail: { can: () => true, key: (row) => row.name, draw: personPanel },
  });
  const search = h("input", { type: "search", id: "people-search", placeholder: "Name or kind",
    oninput: (event) => {
      const wanted = event.target.value.trim().toLowerCase();
      const n = peopleTable.filter((row) => `${row.name} ${row.kind}`.toLowerCase().includes(wanted));
      announce(`${many(n, "annotator")}`);
    } });
  return [
    h("p", { class: "intro" }, "Accuracy counts every token, and most tokens are easy: someone who marks nothing at all is often right. ",
      h("b", {}, "Bits"), " say how much one label tells about the truth. ",
      PLAIN ? null : "The shares on the right compare each annotator's spans with the consensus: exact, shifted, in pieces, of another type and missed add up to all of its spans. Mistakes well above the crowd's are bold. ",
      "Open a name to see the mistakes behind the numbers."),
    h("div", { class: "toolbar" }, h("label", { class: "field grow" }, "Find an annotator", search)),
    peopleTable.element,
    groupsPart(),
  ];
}

function showPerson(name) {
  const row = PEOPLE.find((one) => one.name === name);
  if (row && peopleTable) peopleTable.open(row);
}

function personPanel(row) {
  const spans = PLAIN ? null : [h("p", {}, `In ${many(row.documents, "document")} that ${row.name} saw, ${many(Math.round(row.consensus_spans), "span")} of the consensus can be expected to be right; ` +
    `${row.name} marked ${int(row.own_spans)}.`,
    row.low === null ? null : ` Accuracy is between ${pct(row.low, 1)} and ${pct(row.high, 1)} (95%).`), habitsTable(row)];
  const values = D.matrices.of[PEOPLE.indexOf(row)];
  if (!values && row.kind === "new") return [spans, h("p", { class: "soft" }, "The fit had not met them, and takes them for average.")];
  if (!values) return [spans, h("p", { class: "soft" }, "Only the matrices of those who gave most labels are in this file.")];
  return [spans, h("h3", {}, "What they say, given the truth"), matricesPart(values)];
}

// What they do with spans, with intervals and beside the crowd; under the shifted ones, which bound is off.
function habitsTable(row) {
  const lines = HABITS.flatMap(([key, label, title]) => [[key, label, title],
    ...(key === "shifted" ? Object.entries(WAYS).map(([way, name]) => [way, name, null]).filter(([way]) => row.habits[way]?.[0] > 0) : [])]);
  const told = lines.filter(([key]) => row.habits[key]);
  if (!told.length) return null;
  return [h("h3", {}, "What they do with spans"), h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `What ${row.name} does with spans` },
    h("table", { class: "habits" }, h("thead", {}, h("tr", {}, ["", "Share", "95% interval", "The crowd"].map((name, n) => h("th", { scope: "col", class: n ? "num" : null }, name)))),
      h("tbody", {}, told.map(([key, label, title]) => h("tr", {}, h("th", { scope: "row", class: title ? null : "way", title }, IN_FULL[key] || label),
        h("td", { class: "num" }, pct(row.habits[key][0])), h("td", { class: "num soft" }, between(row.habits[key])),
        h("td", { class: "num soft" }, pct(D.annotators.habits[key])))))))];
}

// The matrices of one annotator: one for each label they gave before, or a single one.
function matricesPart(values) {
  const previous = D.matrices.previous, square = LABELS.length ** 2, holder = h("div", { class: "matrices" });
  let view = heatmap;
  const draw = () => holder.replaceChildren(...(previous.length ? previous : [null]).map((label, n) =>
    h("figure", {}, h("figcaption", {}, label === null ? "percent of labels" : ["after ", h("b", {}, label)]),
      view(values, n * square, { compact: previous.length > 1 }))));
  draw();
  return [h("p", { class: "small soft" },
    "Rows are the true label, columns what they say, in percent",
    previous.length ? "; one matrix for each label that they gave to the token before." : D.matrices.averaged ? ", averaged over the label before." : "."),
    viewSwitch((chosen) => { view = chosen; draw(); }), holder];
}

function viewSwitch(choose) {
  const buttons = [["Heat maps", heatmap], ["3D bars", bars3d]].map(([name, view], n) => h("button", {
    type: "button", class: "button", "aria-pressed": String(n === 0),
    onclick: (event) => { buttons.forEach((one) => one.setAttribute("aria-pressed", String(one === event.currentTarget))); choose(view); },
  }, name));
  return h("div", { class: "chips no-print", role: "group", "aria-label": "View", style: { margin: "0 0 .8rem" } }, buttons);
}

function groupsPart() {
  const groups = D.matrices.groups;
  if (!groups || groups.length < 2) return null;
  const previous = D.matrices.previous.length ? D.matrices.previous : [null], square = LABELS.length ** 2;
  const FEW = 3;
  let view = heatmap, all = previous.length <= FEW;
  const holder = h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Groups of annotators" });
  const more = h("button", { type: "button", class: "button more-button", onclick: () => { all = true; draw(); } },
    `Show all ${previous.length} previous labels`);
  function draw() {
    const rows = all ? previous : previous.slice(0, FEW);
    more.hidden = all;
    holder.replaceChildren(h("div", { class: "group-grid", style: { "--n": groups.length } },
      groups.map((group, n) => h("div", { class: "head" }, h("b", {}, `Group ${n + 1}`),
        `${many(group.members.length, "annotator")} · accuracy ${pct(group.accuracy)} · ${fixed(group.informativeness, 2)} bits`, h("br"),
        h("span", { class: "soft" }, group.kinds.map(([kind, n_]) => `${n_} ${kind}`).join(", ")), h("br"),
        h("span", { class: "faint", title: group.members.map((k) => PEOPLE[k].name).join(", ") }, named(group.members)))),
      rows.map((label, row) => groups.map((group) => h("figure", { style: { margin: 0 } },
        h("figcaption", {}, label === null ? "" : ["after ", h("b", {}, label)]),
        view(group.matrix, row * square, { compact: true }))))));
  }
  draw();
  const tried = D.matrices.silhouettes || [];
  return [
    h("h3", {}, "Groups of like annotators"),
    h("p", { class: "intro" }, "Annotators whose matrices are alike, by K-means on the posterior means; a column a group, a row for each label that they gave before. ",
      tried.length ? `${groups.length} groups fit best (silhouette ${tried.find(([n]) => n === groups.length)[1].toFixed(2)}; tried ${tried[0][0]} to ${tried[tried.length - 1][0]}).` : null),
    viewSwitch((chosen) => { view = chosen; draw(); }), holder, more,
  ];
}

function named(members) {
  const shown = members.slice(0, 3).map((k) => PEOPLE[k].name).join(", ");
  return members.length > 3 ? `${shown} and ${members.length - 3} more` : shown;
}
