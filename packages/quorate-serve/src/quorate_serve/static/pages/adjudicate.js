// The page to decide on between reviewers who differ.

import { outbox } from "../outbox.js";
import { acknowledged } from "./acknowledged.js";
import { ask } from "./asking.js";
import { put, say } from "./shown.js";
import { Stopwatch } from "./stopwatch.js";
import { versionList } from "./versions.js";

const given = JSON.parse(document.getElementById("given").textContent);
const element = (id) => document.getElementById(id);
const text = document.querySelector("quorate-spans");
const watch = new Stopwatch();
let task = null;
let after = 0;
const decided = new Set(); // what was decided here, and may still be on its way

function begin(spans) {
  text.spans = spans;
  text.focus();
}

function show(found) {
  task = found;
  put(text, task, given, "Adjudicate");
  if (!task) return;
  const places = task.places.map(({ start, end }) => `“${Array.from(task.text).slice(start, end).join("")}”`);
  say(`Reviewers differ on ${places.join(", ")}.`);
  element("others").replaceChildren(versionList(task.text, task.opinions, begin));
  begin(task.opinions[0]?.spans || []);
  watch.start();
}

/** The disputes that are open to whoever looks, of the first page that has some; and whether that is all, and how many are their own. */
async function look() {
  let open = [], mine = 0, from = after;
  while (!open.length && from !== null) {
    const { items, next: more } = await ask("GET", `/api/v1/disputes?after=${from}&limit=100`);
    open = items.filter((one) => (given.manages || !one.mine) && !decided.has(one.number));
    mine += given.manages ? 0 : items.filter((one) => one.mine).length;
    from = more;
  }
  return { open, isAll: from === null, mine };
}

async function next() {
  say("");
  show(null);
  try {
    const { open, isAll, mine } = await look();
    element("beside").textContent = open.length ? `${open.length}${isAll ? "" : " or more"} to decide` : "";
    if (open.length) show(open[0]);
    else if (after) { after = 0; await next(); }
    else say(mine ? "You are one of those who differ on what is left: somebody else decides." : "Reviewers differ on nothing.");
  } catch (problem) { say(problem.message); }
}

async function decide() {
  if (!task) return;
  const { number } = task;
  decided.add(number);
  const body = { document: number, spans: text.spans, accepted: false, adjudicates: true, note: element("note").value.trim(), seconds: watch.seconds() };
  await acknowledged(outbox, await outbox.save("/api/v1/reviews", body));
  await next();
}

element("go").addEventListener("click", decide);
element("skip").addEventListener("click", () => { if (task) { after = task.number; next(); } });
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  event.stopPropagation();
  decide();
}, { capture: true });

next();
