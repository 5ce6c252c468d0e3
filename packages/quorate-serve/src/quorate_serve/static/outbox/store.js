// Where saves are kept until the service has acknowledged them: a database of the browser's, one for each person.

/**
 * @typedef {{status: number, code: string, message: string}} Refusal
 * @typedef {{n?: number, id: string, url: string, body: {id: string, document?: number}, refused?: Refusal}} Kept
 */

const SAVES = "saves";

/** A request, or a transaction, as a promise. */
function finished(request, done) {
  return new Promise((resolve, reject) => {
    request[done] = () => resolve(request.result);
    request.onerror = request.onabort = () => reject(request.error);
  });
}

export class Store {
  /** @type {Promise<IDBDatabase> | null} */ #opened = null;
  /** @type {Map<number, Kept>} what the browser would not keep: it lasts as long as the page */ #fleeting = new Map();
  #last = 0; // the number of the last of them, counted downwards

  /** @param {string} person whose saves these are; nobody else's are ever read */
  constructor(person) {
    this.name = `quorate-outbox-${person}`;
  }

  /** Whether everything would survive the page. */
  get durable() { return this.#fleeting.size === 0; }

  /** @returns {Promise<Kept[]>} in the order in which they were made */
  async all() {
    const kept = (await this.#usable()) ? await this.#within("readonly", (saves) => saves.getAll()) : [];
    return [...kept, ...this.#fleeting.values()];
  }

  /** Keep a save; once this returns, it is on the disk. @param {Kept} save */
  async add(save) {
    await this.#within("readwrite", (saves) => saves.add(save)).catch(() => {
      this.#last -= 1;
      this.#fleeting.set(this.#last, { ...save, n: this.#last });
    });
  }

  /** @param {Kept} save */
  async change(save) {
    if (this.#fleeting.has(save.n)) this.#fleeting.set(save.n, save);
    else await this.#within("readwrite", (saves) => saves.put(save));
  }

  /** @param {Kept} save */
  async remove(save) {
    if (!this.#fleeting.delete(save.n)) await this.#within("readwrite", (saves) => saves.delete(save.n));
  }

  /** Whether this browser keeps anything at all. */
  async #usable() {
    return this.#database().then(() => true, () => false);
  }

  #database() {
    this.#opened ||= this.#open().catch((error) => { this.#opened = null; throw error; });
    return this.#opened;
  }

  async #within(mode, act) {
    const database = await this.#database();
    const transaction = database.transaction(SAVES, mode, { durability: "strict" });
    const request = act(transaction.objectStore(SAVES));
    await finished(transaction, "oncomplete");
    return request.result;
  }

  async #open() {
    const request = indexedDB.open(this.name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(SAVES, { keyPath: "n", autoIncrement: true });
    const database = await finished(request, "onsuccess");
    database.onversionchange = () => { database.close(); this.#opened = null; };
    database.onclose = () => { this.#opened = null; };
    return database;
  }
}
