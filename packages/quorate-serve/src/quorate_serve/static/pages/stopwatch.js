// How long somebody worked on a document: time counts while the page is in view and something happened within a minute.

const IDLE = 60_000; // milliseconds without a key or a pointer after which nobody is taken to be working

export class Stopwatch {
  #total = 0;
  #last = 0; // when something last happened, or 0

  constructor() {
    for (const kind of ["pointerdown", "pointermove", "keydown", "scroll"]) {
      addEventListener(kind, () => this.#tick(), { passive: true, capture: true });
    }
    document.addEventListener("visibilitychange", () => { this.#tick(); if (document.hidden) this.#last = 0; });
  }

  /** Begin anew. */
  start() {
    this.#total = 0;
    this.#last = performance.now();
  }

  /** Seconds since the start, to a tenth. */
  seconds() {
    this.#tick();
    return Math.min(86_400, Math.round(this.#total / 100) / 10);
  }

  #tick() {
    if (document.hidden && !this.#last) return;
    const now = performance.now();
    if (this.#last) this.#total += Math.min(now - this.#last, IDLE);
    this.#last = now;
  }
}
