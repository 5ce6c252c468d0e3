// A document on a page of reviewers: its name, its text, an empty note; and a word to whoever looks.

const element = (id) => document.getElementById(id);

/** Say something in place of a document, or beside it. */
export function say(words) {
  element("message").textContent = words;
  element("message").hidden = !words;
}

/**
 * Put a document there, or take it away.
 * @param {HTMLElement & {text: string}} text
 * @param {{id: string, text: string, tokens: [number, number][]} | null} task
 * @param {{labels: import("../spans/labels.js").Label[], overlaps: string}} given
 * @param {string} page the page's name, where there is no document
 */
export function put(text, task, given, page) {
  element("task").hidden = !task;
  element("name").textContent = task ? task.id : page;
  if (!task) return;
  element("note").value = "";
  Object.assign(text, { text: task.text, tokens: task.tokens, labels: given.labels, overlaps: given.overlaps });
}
