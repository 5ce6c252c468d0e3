// How spans that overlap are put below one another, and cut into pieces in which the same spans hold.

/**
 * A span as it is drawn; places are UTF-16 units.
 * @typedef {{start: number, end: number, label: string, suggested: boolean, level: number}} Mark
 */

const sharing = (one, other) => one.start < other.end && other.start < one.end;

const holds = (one, other) => one.start <= other.start && other.end <= one.end;

/** By what is allowed, whether two spans must not be there together. @type {Record<string, (one: {start: number, end: number}, other: {start: number, end: number}) => boolean>} */
export const CLASHES = {
  none: sharing,
  nested: (one, other) => sharing(one, other) && !holds(one, other) && !holds(other, one),
  any: () => false,
};

/** Marks in the order of the text, the longer first. */
export const inOrder = (one, other) => one.start - other.start || other.end - one.end || (one.label < other.label ? -1 : Number(one.label > other.label));

/**
 * Give each mark the level of its underline: the shorter a mark, the nearer to the text; no two that overlap have the same.
 * @param {Mark[]} marks in order
 */
export function stack(marks) {
  let group = [], reach = -1;
  const settle = () => {
    const placed = [];
    for (const mark of [...group].sort((a, b) => (a.end - a.start) - (b.end - b.start))) {
      const taken = new Set(placed.filter((other) => sharing(mark, other)).map(({ level }) => level));
      mark.level = 0;
      while (taken.has(mark.level)) mark.level += 1;
      placed.push(mark);
    }
  };
  for (const mark of marks) {
    if (mark.start >= reach) { settle(); group = []; }
    group.push(mark);
    reach = Math.max(reach, mark.end);
  }
  settle();
}

/**
 * Pieces of a line. After a piece come the names of the marks that end with it.
 * @param {number} start
 * @param {number} end
 * @param {Mark[]} marks that share something with the line
 * @returns {{start: number, end: number, marks: Mark[], names: Mark[]}[]}
 */
export function pieces(start, end, marks) {
  const cuts = new Set([start, end]);
  for (const mark of marks) {
    if (mark.start > start) cuts.add(Math.min(mark.start, end));
    if (mark.end < end) cuts.add(mark.end);
  }
  const places = [...cuts].sort((a, b) => a - b);
  if (places.length === 1) places.push(end); // an empty line, in the middle of a span
  return places.slice(1).map((to, n) => {
    const from = places[n];
    const here = marks.filter((mark) => mark.start <= from && mark.end >= to && mark.end > from).sort((a, b) => a.level - b.level);
    // A span may end with the line break itself, which is no part of the line.
    return { start: from, end: to, marks: here, names: here.filter((mark) => mark.end === to || (to === end && mark.end === end + 1)) };
  });
}
