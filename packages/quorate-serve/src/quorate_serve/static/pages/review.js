// The page to review on. The reviewer looks first, and marks what they see; then the consensus is shown, and is accepted as it
// is or corrected. One key does each step.

import { outbox } from "../outbox.js";
import { acknowledged, savesOnTheirWay } from "./acknowledged.js";
import { ask } from "./asking.js";
import { draftOf, forgetDraft, keepDraft } from "./draft.js";
import { put, say } from "./shown.js";
import { Stopwatch } from "./stopwatch.js";
import { candidateTable, sameSpans, versionList } from "./versions.js";

const given = JSON.parse(document.getElementById("given").textContent);
const element = (id) => document.getElementById(id);
const text = document.querySelector("quorate-spans");
const watch = new Stopwatch();
let task = null; // the document that is shown
let begunWith = []; // the spans that were put there, and not marked by the reviewer
let busy = false;
let warned = 0; // the document of which it was said that nothing is marked

const isShown = () => task.consensus !== null;
const accepts = () => task.version !== null && sameSpans(text.spans, task.consensus);
const isEdited = () => !sameSpans(text.spans, begunWith);

function begin(spans) {
  begunWith = spans;
  text.spans = spans;
  tellStep();
  text.focus();
}

/** What the one button does now. */
function tellStep() {
  element("go-words").textContent = !isShown() ? "Show the consensus" : accepts() ? "Accept" : "Save as corrected";
  const how = isShown() ? "There is no consensus on it yet: mark what is right." : "Look first, and mark what you see if you like. Then the consensus is shown.";
  element("how").textContent = isShown() && task.version !== null ? "" : how;
}

function show(found) {
  task = found;
  put(text, task, given, "Review");
  if (!task) return;
  fillIn();
  begin(task.decided || (isShown() ? task.consensus : []));
  const draft = draftOf("review", task.number);
  if (draft) { text.spans = draft; tellStep(); }
  watch.start();
}

function fillIn() {
  element("beside").textContent = task.confidence === null ? "" : `The consensus is ${Math.round(100 * task.confidence)} % sure of it as a whole.`;
  const takeOver = (spans) => begin(spans.map(({ start, end, label }) => ({ start, end, label })));
  element("others").replaceChildren(
    ...(task.candidates ? [candidateTable(task.text, task.candidates, task.versions.length)] : []),
    versionList(task.text, task.versions, takeOver));
}

async function next() {
  say("");
  show(null);
  const isOnItsWay = savesOnTheirWay(outbox);
  try {
    const { document: found } = await ask("GET", "/api/v1/reviews/next");
    if (found && isOnItsWay(found.number)) setTimeout(() => { if (!task) next(); }, 1000);
    else if (found) show(found);
    else say("Nothing is left to review for now. Documents come here as annotators label them.");
  } catch (problem) {
    say(`${problem.message}. What you decided is kept. The next document comes as soon as it can.`);
    setTimeout(() => { if (!task) next(); }, 3000);
  }
}

async function reveal() {
  const edited = isEdited();
  const found = await ask("POST", `/api/v1/reviews/${task.number}/reveal`);
  Object.assign(task, found);
  fillIn();
  if (edited) tellStep();
  else begin(task.consensus.map(({ start, end, label }) => ({ start, end, label })));
}

async function decide() {
  const spans = text.spans, accepted = accepts();
  const id = await outbox.save("/api/v1/reviews", {
    document: task.number, spans, accepted, consensus: task.version, note: element("note").value.trim(), seconds: watch.seconds(),
  });
  forgetDraft("review", task.number);
  await acknowledged(outbox, id);
  await next();
}

/** Whether nothing is marked because nobody has looked yet, rather than because nothing is there. */
function isOversight() {
  if (!isShown() || task.version !== null || text.spans.length || warned === task.number) return false;
  warned = task.number;
  say("There is no consensus on it yet. Mark what is right; or save once more, if there is nothing to mark.");
  return true;
}

async function go() {
  if (!task || busy || isOversight()) return;
  busy = true;
  try { await (isShown() ? decide() : reveal()); } catch (problem) { say(problem.message); }
  busy = false;
}

async function skip() {
  if (!task || busy) return;
  try { await ask("POST", `/api/v1/reviews/${task.number}/release`); await next(); } catch (problem) { say(problem.message); }
}

text.addEventListener("change", () => {
  tellStep();
  if (task) keepDraft("review", task.number, text.spans);
});
element("go").addEventListener("click", go);
element("skip").addEventListener("click", skip);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  event.stopPropagation();
  go();
}, { capture: true }); // before the text takes Enter for its own

next();
