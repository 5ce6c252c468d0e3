// A document of an audit: what is right in it is saved by the outbox, then comes the next.

import { outbox } from "../outbox.js";
import { Stopwatch } from "./stopwatch.js";

const given = JSON.parse(document.getElementById("given").textContent);
const button = document.getElementById("save"), message = document.getElementById("message");
const text = document.querySelector("quorate-spans");
const watch = new Stopwatch();

async function save() {
  if (button.disabled) return;
  button.disabled = true;
  const body = { document: given.document.number, spans: text.spans, seconds: watch.seconds() };
  const id = await outbox.save(`/api/v1/audits/${given.audit}/checks`, body);
  outbox.addEventListener("saved", ({ detail }) => { if (detail.id === id) location.assign("/audit/check"); });
  outbox.addEventListener("state", () => {
    const refused = outbox.state.refused.find((one) => one.id === id);
    if (!refused) return;
    message.textContent = `${refused.refused.message}.`;
    message.hidden = false;
    button.disabled = false;
  });
}

Object.assign(text, {
  text: given.document.text, tokens: given.document.tokens, labels: given.labels, overlaps: given.overlaps,
  spans: given.document.proposed,
});
button.addEventListener("click", save);
document.getElementById("characters").addEventListener("change", ({ target }) => { text.mode = target.checked ? "characters" : "words"; });
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  save();
}, { capture: true }); // before the text takes Enter for its own
watch.start();
text.focus();
