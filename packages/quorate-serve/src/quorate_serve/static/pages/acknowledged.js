// A save is kept in the browser at once, and acknowledged by the service a moment later. Whoever asks for the next document before
// that gets the same one again.

const PATIENCE = 5_000; // milliseconds; after that the save is on its way, and so is whoever made it
const CANNOT = new Set(["offline", "away", "login"]); // states in which nothing arrives for now

/**
 * Wait until the service has answered to a save, or it is clear that it cannot for now.
 * @param {EventTarget & {state: {name: string, waiting: {id: string}[], refused: {id: string}[]}}} outbox
 * @param {string} id
 * @returns {Promise<"saved" | "refused" | "kept">} what became of it; kept: in this browser, until it can be sent
 */
export function acknowledged(outbox, id) {
  const isAmong = (saves) => saves.some((save) => save.id === id);
  const isWaiting = () => !CANNOT.has(outbox.state.name) && isAmong(outbox.state.waiting);
  const became = () => (isAmong(outbox.state.waiting) ? "kept" : isAmong(outbox.state.refused) ? "refused" : "saved");
  return new Promise((done) => {
    const end = () => { clearTimeout(timer); outbox.removeEventListener("state", look); done(became()); };
    const look = () => { if (!isWaiting()) end(); };
    const timer = setTimeout(end, PATIENCE);
    outbox.addEventListener("state", look);
    look();
  });
}

/**
 * Whether a save of a document is on its way, now or when this was called: an answer that was asked for before the save had arrived
 * may come after it.
 * @returns {(document: number) => boolean}
 */
export function savesOnTheirWay(outbox) {
  const documents = () => new Set(outbox.state.waiting.map((save) => save.body?.document));
  const before = documents();
  return (document) => before.has(document) || documents().has(document);
}
