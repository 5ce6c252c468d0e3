// Buttons that copy what an element holds: <button data-copies="id">. Without this script they stay hidden.

/** Browsers have a clipboard for pages only where the connection is safe; elsewhere a selection can be copied. */
async function copy(element) {
  if (navigator.clipboard) return navigator.clipboard.writeText(element.textContent);
  getSelection().selectAllChildren(element);
  if (!document.execCommand("copy")) throw new Error("not copied");
}

for (const button of document.querySelectorAll("[data-copies]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const done = await copy(document.getElementById(button.dataset.copies)).then(() => true, () => false);
    button.removeAttribute("aria-label");
    button.textContent = done ? "Copied" : "Not copied: select it";
  });
}
