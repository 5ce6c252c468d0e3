// Labels: what is given, with a key and a colour for each.

const KEYS = "123456789abcdefghijklmnopqrstuvwxyz";
// --t0 … --t7 of base.css, each readable on light and on dark
const COLOURS = ["blue", "orange", "green", "pink", "cyan", "red", "olive", "violet"];

/**
 * @typedef {{name: string, key: string, colour: string}} Label
 * @param {(string | {name: string, key?: string | null, colour?: string | null})[]} given
 * @returns {Label[]}
 */
export function withKeys(given) {
  const labels = given.map((label) => (typeof label === "string" ? { name: label } : label));
  const taken = new Set(labels.map(({ key }) => (key || "").toLowerCase()));
  const free = [...KEYS].filter((key) => !taken.has(key));
  return labels.map(({ name, key, colour }, n) => ({
    name,
    key: key ? key.toLowerCase() : free.shift() || "",
    colour: shade(colour, n),
  }));
}

function shade(colour, n) {
  if (COLOURS.includes(colour)) return `var(--t${COLOURS.indexOf(colour)})`;
  // Another colour is drawn towards that of the text, so that it stands out on light and on dark.
  return colour && CSS.supports("color", colour) ? `color-mix(in oklab, ${colour} 72%, var(--ink))` : `var(--t${n % COLOURS.length})`;
}

/** The label of a key that was pressed: what it writes, or on keyboards that write something else there, its place. */
export function labelOfKey(labels, event) {
  const written = event.key.toLowerCase();
  const place = /^(?:Digit|Numpad|Key)(.)$/.exec(event.code || "");
  return labels.find(({ key }) => key && key === written) || labels.find(({ key }) => key && place && key === place[1].toLowerCase());
}
