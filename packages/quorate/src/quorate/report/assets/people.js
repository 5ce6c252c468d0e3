// Annotators: a table for people, models and rules each, everyone's matrices, and groups of like ones.

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
const TROUBLE = new Set(["noise", "marks nothing", "misses many", "marks too much", "often wrong"]);
const GOOD = new Set(["careful", "right where they mark"]);
const SOURCES = [["people", "People"], ["models", "Models"], ["rules", "Rules"]];
let peopleTables = [];

function between([, low, high]) {
  return `${pct(low)} to ${pct(high)}`;
}

function shareCell(person, kind, bad) {
  const share = person.habits[kind], crowd = D.annotators.habits[kind];
  if (!share) return h("span", { class: "faint" }, "–");
  const high = bad && share[0] >= 0.1 && share[0] > 1.5 * (crowd || 0);
  return h("span", { class: high ? "share high" : bad ? "share" : "share good", title: `95%: ${between(share)}; the crowd: ${pct(crowd)}` },
    pct(share[0]), h("i", { style: { width: `${Math.min(100, 100 * share[0])}%` } }));
}

function kindChip(kind) {
  const tone = GOOD.has(kind) ? "careful" : TROUBLE.has(kind) ? "trouble" : "";
  return h("span", { class: `kind ${tone}`.trim() }, kind);
}

const shareColumn = ([key, label, title, bad]) => ({
  key, label, title, num: true, value: (row) => row.habits[key]?.[0] ?? null, cell: (row) => shareCell(row, key, bad) });

// How those are shown who are judged by all their labels: people and, with fewer columns beside their groups, models.
function labelColumns(rows, few) {
  const from = Math.max(0, Math.min(...rows.map((row) => row.low ?? row.accuracy ?? 1)) - 0.02);
  return [
    ...(few ? [] : [{ key: "labels", label: "Labels", num: true, title: "Labels given, one a token", value: (row) => row.labels, cell: (row) => int(row.labels) }]),
    { key: "accuracy", label: "Accuracy", num: true, title: "Expected share of right labels, with a 95% interval over documents",
      value: (row) => row.accuracy,
      cell: (row) => (row.accuracy === null ? "–" : [intervalChart(row.low, row.accuracy, row.high, from), " ", pct(row.accuracy, 1),
        h("span", { class: "unseen" }, row.low === null ? "" : `, from ${pct(row.low, 1)} to ${pct(row.high, 1)}`)]) },
    { key: "informativeness", label: "Bits", num: true, title: "Informativeness: bits that one label tells about the truth",
      value: (row) => row.informativeness, cell: (row) => fixed(row.informativeness, 2) },
    ...(PLAIN ? [] : HABITS.filter(([key]) => !few || key !== "split").map(shareColumn)),
  ];
}

// Rules are judged by what they mark: how often it is right, and how much of what there is it is.
function ruleColumns() {
  const withInterval = (key) => (row) => {
    const share = row.habits[key];
    return share ? [intervalChart(share[1], share[0], share[2], 0), " ", pct(share[0]), h("span", { class: "unseen" }, `, from ${pct(share[1])} to ${pct(share[2])}`)] : "–";
  };
  const column = (key, label, title) => ({ key, label, title, num: true, value: (row) => row.habits[key]?.[0] ?? null, cell: withInterval(key) });
  return [
    { key: "own_spans", label: "Spans", num: true, title: "Spans that it marked", value: (row) => row.own_spans, cell: (row) => int(row.own_spans) },
    column("precision", "Confirmed", "Share of its own spans that the consensus has, with the same start, end and type, and a 95% interval"),
    column("coverage", "Coverage", "Share of all spans of the consensus that it marked with their type, in whatever bounds, with a 95% interval"),
    shareColumn(HABITS[6]),
    ...(TYPES.length > 1 ? [{ key: "best", label: "Best at", title: "Types of which half or more of what it marks is right, the surest first", value: (row) => bestTypes(row).length, cell: (row) => bestTypes(row).map(({ type, precision }, n) => [n ? ", " : "", `${type} ${pct(precision[0])}`]) }] : []),
  ];
}

function bestTypes(row) {
  const marked = row.types.filter(({ marks, precision }) => marks >= 5 && precision[0] >= 0.5);
  return marked.sort((one, other) => other.precision[1] - one.precision[1]).slice(0, 3);
}

// With whom their errors are correlated, and what those are worth; under the name that their profiles give the group.
function groupColumn(rows) {
  if (!rows.some((row) => row.team !== null || row.together !== null)) return [];
  const group = (row) => (row.together === null ? null : D.annotators.together[row.together]);
  return [{ key: "team", label: "Same mistakes as", title: "Duplicates and annotators with correlated errors, and how many independent votes theirs count as",
    value: (row) => row.team ?? (row.together === null ? null : `${row.together + 1}`),
    cell: (row) => {
      const found = group(row), others = found ? found.names.filter((name) => name !== row.name) : [];
      if (!found) return row.team ?? "–";
      return h("span", { title: found.names.join(", ") }, row.team ?? (others.length > 2 ? `${others[0]} and ${others.length - 1} more` : others.join(", ")),
        h("span", { class: "soft" }, ` · ${found.names.length} as ${fixed(found.votes, 1)}`));
    } }];
}

function sourceTable(source, name, rows) {
  const rules = source === "rules" && !PLAIN, group = groupColumn(rows);
  const columns = [
    { key: "name", label: "Annotator", value: (row) => row.name },
    { key: "kind", label: "Kind", value: (row) => row.kind, cell: (row) => kindChip(row.kind) },
    ...(rules ? ruleColumns() : labelColumns(rows, group.length > 0)),
    ...group,
    ...(D.matrices.groups && D.matrices.groups.length > 1 ? [{ key: "group", label: "Group", num: true, title: "The group of like annotators, below",
      value: (row) => row.group, cell: (row) => (row.group === null ? "–" : row.group + 1) }] : []),
  ];
  return sortableTable({
    label: name, className: "sticky-name people", columns, rows, sort: rules ? "precision" : "informativeness", descending: true, limit: 60,
    detail: { can: () => true, key: (row) => row.name, draw: personPanel },
  });
}

function peopleSection() {
  const found = SOURCES.map(([source, name]) => [source, name, PEOPLE.filter((row) => row.source === source)]).filter(([, , rows]) => rows.length);
  peopleTables = found.map(([source, name, rows]) => ({ source, name, rows, table: sourceTable(source, name, rows) }));
  const apart = found.length > 1 || found.some(([source]) => source !== "people"), judged = found.some(([source]) => source !== "rules") || PLAIN;
  const search = h("input", { type: "search", id: "people-search", placeholder: "Name or kind",
    oninput: (event) => {
      const wanted = event.target.value.trim().toLowerCase();
      const n = peopleTables.reduce((sum, { table }) => sum + table.filter((row) => `${row.name} ${row.kind}`.toLowerCase().includes(wanted)), 0);
      announce(`${many(n, "annotator")}`);
    } });
  return [
    h("p", { class: "intro" }, judged ? ["Accuracy counts every token, and most tokens are easy: someone who marks nothing at all is often right. ",
      h("b", {}, "Bits"), " say how much one label tells about the truth. ",
      PLAIN ? null : "The shares on the right compare each annotator's spans with the consensus: exact, shifted, in pieces, of another type and missed add up to all of its spans. Mistakes well above the crowd's are bold. "] : null,
      "Open a name to see the mistakes behind the numbers."),
    correlatedPart(),
    h("div", { class: "toolbar" }, h("label", { class: "field grow" }, "Find an annotator", search)),
    peopleTables.map(({ source, name, table }) => [
      apart ? h("h3", {}, name) : null,
      source === "rules" && !PLAIN ? h("p", { class: "intro" }, "Rules, and other sources that abstain, are judged by what they do mark: ",
        h("b", {}, "confirmed"), " is how much of it the consensus has, ", h("b", {}, "coverage"), " how much of the consensus it marks.") : null,
      table.element]),
    differencesPart(),
    groupsPart(),
  ];
}

function correlatedPart() {
  const { together } = D.annotators, parts = [];
  if (together.some((one) => one.merged)) parts.push("Duplicates marked the same wherever both looked: they count as one annotator. ");
  if (together.some((one) => !one.merged)) parts.push("Where the errors of some are correlated, what they have in common counts once.");
  return parts.length ? h("p", {}, parts) : null;
}

// Of the spans that only one side has, whose version the consensus took.
function differencesPart() {
  const rows = (D.annotators.differences || []).filter((row) => row.people_only + row.models_only);
  if (!rows.length) return null;
  const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
  const keys = ["people_only", "people_only_taken", "models_only", "models_only_taken"];
  const all = Object.fromEntries(keys.map((key) => [key, sum(key)]));
  const taken = (n, of) => [h("td", { class: "num" }, int(of)), h("td", { class: "num" }, of ? [int(n), h("span", { class: "soft" }, ` ${pct(n / of)}`)] : "–")];
  const line = (name, row) => {
    const total = row.people_only + row.models_only, people = row.people_only_taken + row.models_only - row.models_only_taken;
    return h("tr", {}, h("th", { scope: "row" }, name), taken(row.people_only_taken, row.people_only), taken(row.models_only_taken, row.models_only),
      h("td", { class: "num" }, pct(people / total)), h("td", { class: "num" }, pct(1 - people / total)));
  };
  return [h("h3", {}, "People next to models"),
    h("p", { class: "intro" }, "Spans that most people who saw them marked and models did not, or the other way round; how many of each the consensus has, and so whose version it took. Where only bounds differ, that is a span of each side. This is what was taken, not who is right: where one side nearly always wins, check some of them."),
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "People next to models" }, h("table", { class: "habits" },
      h("thead", {}, h("tr", {}, ["", "Only people", "taken", "Only models", "taken", "With people", "With models"].map((name, n) => h("th", { scope: "col", class: n ? "num" : null }, name)))),
      h("tbody", {}, rows.map((row) => line(h("mark", { class: hue(row.type) }, row.type), row)), rows.length > 1 ? line("All", all) : null)))];
}

function showPerson(name) {
  const found = peopleTables.find(({ rows }) => rows.some((row) => row.name === name));
  if (found) found.table.open(found.rows.find((row) => row.name === name));
}

function personPanel(row) {
  if (row.kind === "too little overlap") return [h("p", {}, `${person(row.name).replace(/^annotator “/, "Annotator “")} marks next to nothing that others mark: there is too little overlap to tell how often they are right. Have a person label some of the same documents, or check some of them.`)];
  if (row.kind === "cannot be judged") return [h("p", {}, `${person(row.name).replace(/^annotator “/, "Annotator “")} gave ${many(Math.round(row.labels), "label")} in ${many(row.documents, "document")}, and shares none of them with anybody. Have a second annotator label some of the same documents, or check some of them.`)];
  const spans = PLAIN ? null : [h("p", {}, `In ${many(row.documents, "document")} that ${person(row.name)} saw, ${many(Math.round(row.consensus_spans), "span")} of the consensus can be expected to be right; ` +
    `${person(row.name)} marked ${int(row.own_spans)}.`,
    row.low === null ? null : ` Accuracy is between ${pct(row.low, 1)} and ${pct(row.high, 1)} (95%).`), habitsTable(row), typesTable(row)];
  const values = D.matrices.of[PEOPLE.indexOf(row)];
  if (!values && row.kind === "new") return [spans, h("p", { class: "soft" }, "The model has not seen them before, and takes them for average.")];
  if (!values) return [spans, h("p", { class: "soft" }, "Only the matrices of those who gave most labels are in this file.")];
  return [spans, h("h3", {}, "What they say, given the truth"), matricesPart(values)];
}

// What they do with spans, with intervals and beside the crowd; under the shifted ones, which bound is off.
function habitsTable(row) {
  const lines = HABITS.flatMap(([key, label, title]) => [[key, label, title],
    ...(key === "shifted" ? Object.entries(WAYS).map(([way, name]) => [way, name, null]).filter(([way]) => row.habits[way]?.[0] > 0) : [])]);
  const known = lines.filter(([key]) => row.habits[key]);
  if (!known.length) return null;
  return [h("h3", {}, "What they do with spans"), h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `What ${person(row.name)} does with spans` },
    h("table", { class: "habits" }, h("thead", {}, h("tr", {}, ["", "Share", "95% interval", "The crowd"].map((name, n) => h("th", { scope: "col", class: n ? "num" : null }, name)))),
      h("tbody", {}, known.map(([key, label, title]) => h("tr", {}, h("th", { scope: "row", class: title ? null : "way", title }, IN_FULL[key] || label),
        h("td", { class: "num" }, pct(row.habits[key][0])), h("td", { class: "num soft" }, between(row.habits[key])),
        h("td", { class: "num soft" }, pct(D.annotators.habits[key])))))))];
}

// What they mark of each type: how much of it is right, and how much of what there is.
function typesTable(row) {
  if (row.types.length < 2) return null;
  const share = ([value, low, high]) => (value === null ? [h("td", { class: "num" }, "–"), h("td", {})]
    : [h("td", { class: "num" }, pct(value)), h("td", { class: "num soft" }, `${pct(low)} to ${pct(high)}`)]);
  return [h("h3", {}, "Type by type"), h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `What ${person(row.name)} marks, type by type` },
    h("table", { class: "habits" }, h("thead", {}, h("tr", {}, ["", "Marked", "Confirmed", "95% interval", "Coverage", "95% interval"].map((name, n) => h("th", { scope: "col", class: n ? "num" : null }, name)))),
      h("tbody", {}, row.types.map((one) => h("tr", {}, h("th", { scope: "row" }, h("mark", { class: hue(one.type) }, one.type)),
        h("td", { class: "num" }, int(one.marks)), share(one.precision), share(one.coverage))))))];
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
