// What somebody has marked and not saved yet is kept in the browser, so that a reload or another page loses nothing.

const key = (kind, number) => `quorate ${document.querySelector('meta[name="person"]')?.content} ${kind} ${number}`;

/**
 * @param {string} kind what the marks are for: "annotation", "review"
 * @param {number} number of the document
 * @param {unknown[]} spans
 */
export function keepDraft(kind, number, spans) {
  try { localStorage.setItem(key(kind, number), JSON.stringify(spans)); } catch { /* a full or closed store: as before */ }
}

/** The marks that were kept, or null. */
export function draftOf(kind, number) {
  try { return JSON.parse(localStorage.getItem(key(kind, number))); } catch { return null; }
}

export function forgetDraft(kind, number) {
  try { localStorage.removeItem(key(kind, number)); } catch { /* as above */ }
}
