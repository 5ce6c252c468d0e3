// Places in a text. Outside, an offset counts Unicode code points, as the service does; inside, UTF-16 units, as the browser does.

/** Code points to UTF-16 units and back. */
export class Offsets {
  /** @param {string} text */
  constructor(text) {
    this.length = text.length;
    if (!/[\ud800-\udfff]/.test(text)) return; // both ways of counting are the same
    this.points = new Uint32Array(text.length + 1);
    const units = [];
    for (let at = 0; at < text.length; at += text.codePointAt(at) > 0xffff ? 2 : 1) {
      this.points.fill(units.length, at, at + 2);
      units.push(at);
    }
    this.points[text.length] = units.length;
    this.units = Uint32Array.from([...units, text.length]);
  }

  /** @param {number} point @returns {number} */
  toUnit(point) {
    return this.units ? this.units[Math.min(point, this.units.length - 1)] : Math.min(point, this.length);
  }

  /** @param {number} unit @returns {number} */
  toPoint(unit) {
    return this.points ? this.points[unit] : unit;
  }
}

/** The first number in 0…length for which a growing condition holds. */
function first(length, holds) {
  let low = 0, high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle; else low = middle + 1;
  }
  return low;
}

/** Where what a reader takes for one character begins: no letter is parted from its accents, no emoji from its parts. */
export function characters(text) {
  return Array.from(new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text), ({ segment, index }) => [index, index + segment.length]);
}

/** Tokens, or the words that the browser finds; tokens that share a character are one, as it must not be cut. */
function words(text, tokens) {
  const given = tokens && tokens.length ? [...tokens].sort((a, b) => a[0] - b[0]).filter(([start, end]) => start < end)
    : Array.from(new Intl.Segmenter(undefined, { granularity: "word" }).segment(text), ({ segment, index }) => [index, index + segment.length])
      .filter(([start, end]) => text.slice(start, end).trim());
  const inside = new Set();
  for (const [start, end] of /^[\x00-\x7f]*$/.test(text) ? [] : characters(text)) for (let at = start + 1; at < end; at++) inside.add(at);
  const whole = [];
  for (const [start, end] of given) {
    const last = whole.at(-1);
    if (last && (start < last[1] || (start === last[1] && inside.has(start)))) last[1] = Math.max(last[1], end);
    else whole.push([start, end]);
  }
  return whole;
}

/** What a selection consists of: words or characters, none of them blank. All places are UTF-16 units. */
export class Units {
  /**
   * @param {string} text
   * @param {"words" | "characters"} mode
   * @param {[number, number][]} tokens
   */
  constructor(text, mode, tokens) {
    this.all = mode === "characters" ? characters(text).filter(([start, end]) => text.slice(start, end).trim()) : words(text, tokens);
  }

  get count() { return this.all.length; }

  start(number) { return this.all[number][0]; }

  end(number) { return this.all[number][1]; }

  /** The unit at a place, or the one nearest to it; -1 if there is none at all. */
  near(place) {
    const next = first(this.count, (n) => this.end(n) > place);
    if (next === this.count) return this.count - 1;
    if (next === 0 || this.start(next) <= place) return next;
    return place - this.end(next - 1) < this.start(next) - place ? next - 1 : next;
  }

  /** The first unit that ends after a place. */
  endsAfter(place) { return first(this.count, (n) => this.end(n) > place); }

  /** The first unit that starts at a place or after it. */
  startsFrom(place) { return first(this.count, (n) => this.start(n) >= place); }

  /**
   * A range with one of its edges one unit further on, or back; the same range where that cannot be.
   * @param {{start: number, end: number}} range
   * @param {"start" | "end"} edge
   * @param {boolean} forward
   */
  moved({ start, end }, edge, forward) {
    if (edge === "end") {
      const to = forward ? this.endsAfter(end) : first(this.count, (n) => this.end(n) >= end) - 1;
      if (to >= 0 && to < this.count && this.end(to) > start) return { start, end: this.end(to) };
    } else {
      const to = forward ? first(this.count, (n) => this.start(n) > start) : this.startsFrom(start) - 1;
      if (to >= 0 && to < this.count && this.start(to) < end) return { start: this.start(to), end };
    }
    return { start, end };
  }
}
