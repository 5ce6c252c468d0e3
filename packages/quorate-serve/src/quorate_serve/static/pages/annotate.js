// The page to annotate on: one document after another, saved by the outbox; or one that was saved before.

import { outbox } from "../outbox.js";
import { acknowledged, savesOnTheirWay } from "./acknowledged.js";
import { ask } from "./asking.js";
import { draftOf, forgetDraft, keepDraft } from "./draft.js";
import { Stopwatch } from "./stopwatch.js";

const given = JSON.parse(document.getElementById("given").textContent);
const element = (id) => document.getElementById(id);
const [text, right] = document.querySelectorAll("quorate-spans");
const watch = new Stopwatch();
const EMPTY = { text: "", tokens: [], spans: [], suggestions: [] };
const ANSWERS = ["saved", "refused"]; // events of the outbox
const REVISED = {
  saved: "Saved. It takes the place of what you said before.",
  kept: "Kept here, not saved yet: it is sent as soon as that works.",
  refused: "Refused: what you said before stands.",
};
let current = null; // the document that is shown

/** Say something in place of a document, or beside it. */
function say(words) {
  element("message").textContent = words;
  element("message").hidden = !words;
}

function show(task) {
  current = task;
  element("task").hidden = !task;
  element("learned").hidden = true;
  element("save").disabled = !task;
  if (!task) { Object.assign(text, EMPTY); element("name").textContent = "Annotate"; return; }
  Object.assign(text, {
    text: task.text, tokens: task.tokens, labels: given.labels, overlaps: given.overlaps,
    spans: draftOf("annotation", task.number) || task.spans || [], suggestions: task.suggestions || [],
  });
  element("name").textContent = task.training ? `To learn from: ${task.id}` : task.id;
  watch.start();
  text.focus();
}

async function next() {
  say("");
  show(null);
  const isOnItsWay = savesOnTheirWay(outbox);
  try {
    const { document: task, message, campaign } = await ask("POST", "/api/v1/queue/next");
    if (campaign !== given.campaign) location.reload(); // labels or guidelines are others now; the document waits
    else if (task && isOnItsWay(task.number)) setTimeout(() => { if (!current) next(); }, 1000);
    else if (task) show(task);
    else say(message);
  } catch (problem) {
    say(`${problem.message}. What you saved is kept. The next document comes as soon as it can.`);
    setTimeout(() => { if (!current) next(); }, 3000);
  }
}

async function save() {
  if (!current) return;
  const task = current, spans = text.spans;
  element("save").disabled = true;
  const id = await outbox.save("/api/v1/annotations", { document: task.number, spans, seconds: watch.seconds() });
  forgetDraft("annotation", task.number);
  if (given.document) await revise(id);
  else if (task.training) await learn(task, id);
  else {
    await acknowledged(outbox, id);
    await next();
  }
}

/** What the service answers to a save, however long that takes; null if it refuses it. */
function answered(id) {
  return new Promise((done) => {
    const onAnswer = ({ type, detail }) => {
      if (detail.id !== id) return;
      for (const kind of ANSWERS) outbox.removeEventListener(kind, onAnswer);
      done(type === "saved" ? detail.answer : null);
    };
    for (const kind of ANSWERS) outbox.addEventListener(kind, onAnswer);
  });
}

/** Save something else of a document that was saved before, and say what became of it. */
async function revise(id) {
  const answer = answered(id), became = await acknowledged(outbox, id);
  say(REVISED[became]);
  element("save").disabled = false;
  if (became === "kept") say(await answer ? REVISED.saved : REVISED.refused);
}

/** What is right of a training document comes with the acknowledgement. */
async function learn(task, id) {
  const answer = answered(id);
  if (await acknowledged(outbox, id) === "kept") say("Kept here. What is right is shown as soon as the service has it.");
  const saved = await answer;
  if (!saved) { await next(); return; } // why it was refused stands beside
  say("");
  element("task").hidden = true;
  element("learned").hidden = false;
  Object.assign(right, { text: task.text, tokens: task.tokens, labels: given.labels, spans: saved.gold || [] });
  element("learned-name").focus();
  element("go-on").onclick = next;
}

async function skip() {
  if (!current) return;
  try {
    await ask("POST", "/api/v1/queue/release", { document: current.number });
    await next();
  } catch (problem) { say(problem.message); }
}

text.addEventListener("change", () => { if (current) keepDraft("annotation", current.number, text.spans); });
element("save").addEventListener("click", save);
element("skip")?.addEventListener("click", skip);
element("characters").addEventListener("change", ({ target }) => { text.mode = target.checked ? "characters" : "words"; });
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || element("save").disabled) return;
  event.preventDefault();
  save();
}, { capture: true }); // before the text takes Enter for its own
addEventListener("online", () => { if (!current && !given.document) next(); });

if (given.document) show(given.document);
else next();
