// Audits: what the documents checked say of the whole consensus, and the mode in which a person checks them.

const PLAN = D.to_check ? D.to_check.ids.map((id) => DOC_BY_ID.get(id)) : [];
const CHECKED_STORE = D.to_check ? "quorate-audit-" + D.to_check.key : "";
const checking = { on: false, done: new Set(), panel: null };

// A correction alone does not make a document checked here: there may be more to correct in it.
try {
  const planned = new Set(PLAN.map((doc) => doc.id));
  for (const id of JSON.parse(localStorage.getItem(CHECKED_STORE) || "[]")) if (planned.has(id) && review.has(id)) checking.done.add(id);
} catch { /* a page without storage still counts, for as long as it is open */ }

function keepChecked() {
  try { localStorage.setItem(CHECKED_STORE, JSON.stringify([...checking.done])); } catch { /* as above */ }
}

const asGiven = (doc) => doc.tags.map((code) => D.tags[code]);
const isCorrected = (doc) => review.has(doc.id) && review.get(doc.id).tags.some((tag, at) => tag !== D.tags[doc.tags[at]]);
const resultCommand = () => h("code", {}, "quorate audit result consensus.jsonl --checked corrections.jsonl --plan audit.jsonl");
const inWords = () => `${int(checking.done.size)} of ${int(PLAN.length)} checked`;

// What the result should tell when all are checked, in the words of quorate audit plan.
function promised({ half_width: far, without_mistakes: ends, tells_little: little }) {
  if (!far) return "";
  if (little) return ", but so few documents say almost nothing about F1 (draw more: quorate audit plan -n)";
  return `: F1 to about ± ${fixed(Math.max(1, 100 * far), 0)} points, if confidence is right; if they find no mistake, from ${ends.map((end) => fixed(100 * end, 1)).join(" to ")}`;
}

function checkPanel() {
  if (!PLAN.length) return null;
  const button = h("button", { type: "button", class: "button main", id: "check-audit", "aria-pressed": "false", onclick: toggleChecking },
    `Check the audit's documents (${int(PLAN.length)})`);
  const why = h("p", { class: "small soft" }, "Drawn at random from all documents. When a person has checked them, it can be said how good the whole consensus is", promised(D.to_check), ".");
  const how = h("p", { class: "small soft", hidden: true },
    "These and no others, in the order in which they were drawn (press again for all documents). Read each one. If all marks are right and none is missing, press ", h("b", {}, "Looks right"),
    "; if not, open it, correct it, and then press ", h("b", {}, "Right as corrected"), ". ",
    D.to_check.sequential ? "You may stop at any place, export, and look: " : "When all of them are checked, export, and: ", resultCommand());
  const bar = h("i", {}), meter = h("div", { class: "meter", "aria-hidden": "true", hidden: true }, bar);
  checking.panel = { button, why, how, meter, bar };
  return h("div", { class: "to-check no-print" }, button, why, how, meter);
}

function toggleChecking() {
  const { button, why, how, meter } = checking.panel;
  checking.on = !checking.on;
  button.setAttribute("aria-pressed", String(checking.on));
  why.hidden = checking.on;
  how.hidden = meter.hidden = !checking.on;
  for (const part of docView.ordinary) part.hidden = checking.on;
  refilter();
  drawReviewBar();
  announce(checking.on ? `The audit's documents: ${inWords()}` : "All documents again");
}

function drawProgress() {
  docView.count.textContent = inWords();
  checking.panel.bar.style.width = `${(100 * checking.done.size) / PLAN.length}%`;
}

function markChecked(doc) {
  checking.done.add(doc.id);
  keepChecked();
  docView.open.delete(doc.id);
  settle(doc, review.has(doc.id) ? review.get(doc.id).tags : asGiven(doc), inWords());
  const here = PLAN.indexOf(doc), left = (one) => !checking.done.has(one.id);
  const next = PLAN.slice(here + 1).find(left) || PLAN.find(left);
  if (next) focusIn(next, "button.mark-checked");
  else document.getElementById("export").focus();
}

function unmarkChecked(doc) {
  checking.done.delete(doc.id);
  keepChecked();
  if (!isCorrected(doc)) review.delete(doc.id); // what was only marked is not known to be right any more
  keep();
  redraw(doc);
  drawReviewBar();
  focusIn(doc, "button.mark-checked");
  announce(`${doc.id}: not checked; ${inWords()}`);
}

function checkButton(doc) {
  return h("button", { type: "button", class: "button main mark-checked no-print", "aria-label": `${doc.id}: ${isCorrected(doc) ? "right as corrected" : "looks right"}`, onclick: () => markChecked(doc) },
    isCorrected(doc) ? "Right as corrected" : "Looks right");
}

function checkLine(doc) {
  const done = checking.done.has(doc.id);
  return h("div", { class: "head" },
    done ? h("span", { class: "flag done" }, isCorrected(doc) ? "✓ checked, corrected" : "✓ checked, right") : checkButton(doc),
    done ? h("button", { type: "button", class: "quiet no-print", "aria-label": `${doc.id}: not checked after all`, onclick: () => unmarkChecked(doc) }, "Not checked after all") : null,
    !done && isCorrected(doc) ? h("span", { class: "flag off" }, "corrected, not yet marked as checked") : null);
}

function checkedBar() {
  const corrected = PLAN.filter((doc) => checking.done.has(doc.id) && isCorrected(doc)).length;
  const open = PLAN.filter((doc) => !checking.done.has(doc.id) && isCorrected(doc)).length;
  const then = checking.done.size === PLAN.length ? " Export them, and run quorate audit result." : "";
  return [
    h("p", {}, h("b", {}, inWords()), `, ${corrected} corrected${open ? `; ${open} corrected but not marked` : ""}.${then}`),
    reviewerField(),
    h("button", { type: "button", class: "button", disabled: !checking.done.size && !open, onclick: forgetChecked }, "Forget all"),
    h("button", { type: "button", class: "button main", id: "export", disabled: !checking.done.size, onclick: exportChecked }, "Export corrections"),
  ];
}

function forgetChecked() {
  if (!confirm(`Forget what was checked of ${many(PLAN.length, "document")}?`)) return;
  for (const doc of PLAN) {
    review.delete(doc.id);
    notes.delete(doc.id);
  }
  checking.done.clear();
  keepChecked();
  keepNotes();
  keep();
  refilter();
  drawReviewBar();
}

// Every document that was marked, also those left as they are: looked at and right is what an audit counts.
function exportChecked() {
  download("corrections.jsonl", PLAN.filter((doc) => checking.done.has(doc.id)));
}

const inPoints = (x) => fixed(100 * x, 1);
const interval = ([value, low, high]) => `${inPoints(value)} (${inPoints(low)}–${inPoints(high)})`;

function auditSection() {
  const A = D.audit, all = A.scores[0], exact = A.checked === A.documents;
  const from = Math.floor(10 * Math.min(...A.scores.flatMap((row) => [row.precision, row.recall, row.f1].map((score) => (score ? score[1] : 1))))) / 10;
  const cell = (score) => h("td", { class: "num" }, score ? [exact ? inPoints(score[0]) : interval(score), " ", intervalChart(score[1], score[0], score[2], from)] : "–");
  const line = (row) => h("tr", {}, h("th", { scope: "row" }, row.name ? (PLAIN ? row.name : h("mark", { class: hue(row.name) }, row.name)) : PLAIN ? "All tokens" : "All spans"),
    cell(row.precision), cell(row.recall), cell(row.f1), h("td", { class: "num" }, int(row.seen)));
  return [
    h("p", {}, h("b", {}, `${A.headline}.`)),
    h("p", { class: "intro" }, `A person checked ${int(A.checked)} of ${many(A.documents, "document")} and met ${many(all.seen, PLAIN ? "token" : "true span")}. `,
      exact ? "" : `The documents were drawn at random (seed ${A.seed}), those with many spans more often than others, and each counts for as many as it stands for. `,
      A.planned > A.checked ? `${many(A.planned - A.checked, "more document")} of the plan can be checked under Documents.` : ""),
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Scores by the audit" }, h("table", { class: "audit sticky-name", style: { width: "auto" } },
      h("thead", {}, h("tr", {}, h("td", {}), ["Precision", "Recall", "F1", PLAIN ? "Tokens seen" : "True spans seen"].map((name) => h("th", { scope: "col", class: "num" }, name)))),
      h("tbody", {}, A.scores.map(line)))),
    h("p", { class: "small soft", style: { "margin-top": ".7rem" } }, A.notes.join(" ")),
    A.reliability.length ? reliabilityPart(A.reliability) : null,
  ];
}

function reliabilityPart(kinds) {
  const mean = (bins, at) => bins.mean[at];
  return [
    h("h3", {}, "Does it know when it is right?"),
    h("p", {}, "On the documents checked, each counted for those it stands for. Hollow dots are the probabilities as the consensus gives them, full ones as the audit corrects them ",
      "(", h("code", {}, "quorate audit result … --recalibrated better.jsonl"), "). On the dashed line they are honest; below it, too high. The correction was learned on the same documents, so elsewhere it will do a little less."),
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Confidence before and after the audit" }, h("table", { style: { width: "auto" } },
      h("thead", {}, h("tr", {}, h("td", {}), ["Seen", "Right", "Confidence before", "after", "Off by, before", "after"].map((name) => h("th", { scope: "col", class: "num" }, name)))),
      h("tbody", {}, kinds.map(({ name, before, after }) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "num" }, int(before.count)),
        h("td", { class: "num" }, pct(mean(before, 1), 1)), h("td", { class: "num" }, pct(mean(before, 0), 1)), h("td", { class: "num" }, pct(mean(after, 0), 1)),
        h("td", { class: "num" }, pct(before.error, 1)), h("td", { class: "num" }, pct(after.error, 1))))))),
    h("div", { class: "matrices", style: { "margin-top": "1.2rem" } }, kinds.map(({ name, before, after }) => calibrationChart(after, name, before))),
  ];
}
