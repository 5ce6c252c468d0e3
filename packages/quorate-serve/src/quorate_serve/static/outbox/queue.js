// Saves are kept first, then sent, in order, under the same id until the service has answered for good.

import { Store } from "./store.js";

/** @typedef {import("./store.js").Kept} Kept */

const PATIENCE = 30_000; // milliseconds that an answer may take
const FIRST_WAIT = 500, LONGEST_WAIT = 60_000; // milliseconds between tries
const TRY_AGAIN = new Set([408, 425, 429]); // the only 4xx that are not final
const SMALL = 50_000; // letters up to which a request may outlive its page

/** An id that no other save has; browsers have `randomUUID` only where the connection is safe. */
export function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const csrf = () => document.querySelector('meta[name="csrf-token"]')?.content || "";

/**
 * Events: `saved` (detail: id, url, body, answer), `refused` (detail: id, url, body, refused), `state` (something changed).
 * The first two come in every page of the person, whichever of them did the sending.
 */
export class Outbox extends EventTarget {
  /** @type {Kept[] | null} null until the first look */ #kept = null;
  #trouble = ""; // why the last round did not send everything: "", "offline", "away" or "login"
  #sending = false;
  #again = false;
  #failures = 0; // tries in a row that a timer began and that did not send everything
  #timer = 0;

  /** @param {string} person the id of who is logged in */
  constructor(person) {
    super();
    this.person = person;
    if (!person) return;
    this.store = new Store(person);
    this.pages = new BroadcastChannel(this.store.name);
    this.pages.onmessage = ({ data }) => { this.#dispatch(data); this.#look(); };
    const wake = () => { this.#failures = 0; this.send(); };
    addEventListener("online", wake);
    addEventListener("offline", () => this.#look());
    addEventListener("pageshow", wake);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) wake(); });
    this.send();
  }

  /**
   * Keep a save and send it, now or as soon as that works. When this returns, the save outlives the page.
   * @param {string} url
   * @param {{document?: number}} body
   * @returns {Promise<string>} the id it was given
   */
  async save(url, body) {
    if (!this.person) throw new Error("nobody is logged in: nothing can be saved");
    const id = newId();
    await this.store.add({ id, url, body: { ...body, id } });
    await this.#look();
    this.pages.postMessage(null);
    this.send();
    return id;
  }

  /** Forget a save that was refused. @param {string} id */
  async discard(id) {
    for (const save of await this.store.all()) if (save.id === id && save.refused) await this.store.remove(save);
    await this.#look();
    this.pages.postMessage(null);
  }

  /** Send a save that was refused once more. @param {string} id */
  async retry(id) {
    for (const { refused, ...save } of await this.store.all()) if (save.id === id && refused) await this.store.change(save);
    await this.#look();
    this.send();
  }

  /** How things stand: `name` is unknown (at first), saved, saving, offline, away, login, refused or unkept. */
  get state() {
    const kept = this.#kept || [], waiting = kept.filter(({ refused }) => !refused), refused = kept.filter((save) => save.refused);
    let name = this.#kept ? "saved" : "unknown";
    if (waiting.length) name = this.#trouble === "login" || navigator.onLine ? this.#trouble || "saving" : "offline";
    if (waiting.length && name !== "login" && this.store && !this.store.durable) name = "unkept";
    if (refused.length && name !== "login") name = "refused";
    return { name, waiting, refused };
  }

  /** Send everything that waits. One page of a person sends at a time; where browsers cannot see to that, the service does. */
  async send() {
    this.#again = true;
    if (this.#sending) return;
    this.#sending = true;
    clearTimeout(this.#timer);
    let wait = 0;
    try {
      while (this.#again) {
        this.#again = false;
        wait = await (navigator.locks ? navigator.locks.request(this.store.name, () => this.#round()) : this.#round());
      }
    } catch {
      wait = LONGEST_WAIT; // the browser's database failed: what it holds is still there, and nothing was taken out
    }
    this.#sending = false;
    // Only tries of its own make the next wait longer: whoever works on while the service is away is not to wait for that.
    if (wait) this.#timer = setTimeout(() => { this.#failures += 1; this.send(); }, wait);
  }

  /** Try each save once; returns in how many milliseconds to try again, 0 for not by itself. */
  async #round() {
    const held = new Set(); // documents of which a save has to be sent first
    let trouble = "", asked = 0;
    await this.#look();
    for (const save of await this.store.all()) {
      if (save.refused || held.has(save.body.document)) continue;
      const answer = await this.#post(save);
      if (answer.kind === "saved") {
        await this.store.remove(save);
        this.#tell("saved", { ...save, answer: answer.content });
      } else if (answer.kind === "refused") {
        await this.store.change({ ...save, refused: answer.refused });
        this.#tell("refused", { ...save, refused: answer.refused });
      } else {
        held.add(save.body.document);
        trouble = answer.kind;
        asked = Math.max(asked, answer.wait || 0);
        if (trouble !== "away" || !answer.status) break; // nothing else would arrive either
      }
      await this.#look();
    }
    this.#trouble = trouble;
    await this.#look();
    if (!trouble) this.#failures = 0;
    if (!trouble || trouble === "login") return 0;
    navigator.storage?.persist?.().catch(() => {}); // so that a full disk costs others first
    return Math.max(asked, Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.#failures) * (0.5 + Math.random() / 2));
  }

  /** @param {Kept} save */
  async #post({ url, body }) {
    const text = JSON.stringify(body);
    let response, content;
    try {
      response = await fetch(url, {
        method: "POST",
        body: text,
        headers: { "Content-Type": "application/json", Accept: "application/json", "X-CSRF-Token": csrf() },
        credentials: "same-origin",
        redirect: "manual", // a page to log in at is no answer
        keepalive: text.length < SMALL,
        signal: AbortSignal.timeout(PATIENCE),
      });
      content = await response.json().catch(() => null);
    } catch {
      return { kind: navigator.onLine ? "away" : "offline" };
    }
    const { status } = response, error = content?.error || {};
    if (response.ok && content) return { kind: "saved", content };
    // The token belongs to a session that has ended, perhaps to somebody else's: what is kept here is not to blame.
    if (response.type === "opaqueredirect" || status === 401 || (status === 403 && String(error.code).startsWith("csrf"))) return { kind: "login" };
    if (status >= 400 && status < 500 && !TRY_AGAIN.has(status)) {
      return { kind: "refused", refused: { status, code: error.code || "", message: error.message || `the service answered ${status}` } };
    }
    return { kind: "away", status, wait: 1000 * (Number(response.headers.get("Retry-After")) || 0) };
  }

  /** Look at what is kept, and say that it changed. */
  async #look() {
    this.#kept = await this.store.all().catch(() => this.#kept);
    this.dispatchEvent(new Event("state"));
  }

  #tell(type, detail) {
    this.#dispatch({ type, detail });
    this.pages.postMessage({ type, detail });
  }

  #dispatch(message) {
    if (message) this.dispatchEvent(new CustomEvent(message.type, { detail: message.detail }));
  }
}
