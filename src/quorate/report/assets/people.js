// Annotators: the table, each one's matrices, and groups of like ones.

const PEOPLE = D.annotators.rows;
const SHARES = [
  ["missed", "Missed", "Share of the consensus's spans that they did not mark"],
  ["false_positive", "Invented", "Share of their spans that touch no span of the consensus"],
  ["late_start", "Late", "Share of the spans they found that they start after the consensus"],
  ["early_start", "Early", "Share of the spans they found that they start before the consensus"],
  ["split", "Split", "Share of the spans they found that they mark as two or more"],
  ["wrong_type", "Type", "Share of the spans they found that they give another type"],
];
const TROUBLE = new Set(["noise", "marks nothing", "misses many", "marks too much"]);
let peopleTable = null;

function shareCell(person, kind) {
  const value = person.shares[kind], crowd = D.annotators.crowd[kind];
  if (value === null || value === undefined) return h("span", { class: "faint" }, "–");
  const high = value >= 0.1 && value > 1.5 * (crowd || 0);
  return h("span", { class: high ? "share high" : "share", title: `${int(value * person.of[kind])} of ${int(person.of[kind])}` },
    pct(value), h("i", { style: { width: `${Math.min(100, 100 * value)}%` } }));
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
    ...(PLAIN ? [] : SHARES.map(([key, label, title]) => ({
      key, label, title, num: true, value: (row) => row.shares[key], cell: (row) => shareCell(row, key) }))),
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
      PLAIN ? null : "The shares on the right compare each annotator's spans with the consensus; those well above the crowd's are bold. ",
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
  const spans = PLAIN ? null : h("p", {}, `In ${many(row.documents, "document")} that ${row.name} saw, the consensus has ${many(row.consensus_spans, "span")}; ` +
    `${row.name} marked ${int(row.own_spans)}.`,
    row.low === null ? null : ` Accuracy is between ${pct(row.low, 1)} and ${pct(row.high, 1)} (95%).`,
    row.shares.late_finish || row.shares.early_finish
      ? ` They end ${pct(row.shares.late_finish)} of the spans they find late and ${pct(row.shares.early_finish)} early.` : null);
  const values = D.matrices.of[PEOPLE.indexOf(row)];
  if (!values && row.kind === "new") return [spans, h("p", { class: "soft" }, "The fit had not met them, and takes them for average.")];
  if (!values) return [spans, h("p", { class: "soft" }, "Only the matrices of those who gave most labels are in this file.")];
  return [spans, h("h3", {}, "What they say, given the truth"), matricesPart(values)];
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
