// Labels: what is given, with a key and a colour for each.

const KEYS = "123456789abcdefghijklmnopqrstuvwxyz";
const COLOURS = 8; // --t0 … --t7 of base.css, each readable on light and on dark

/**
 * @typedef {{name: string, key: string, colour: string}} Label
 * @param {(string | {name: string, key?: string, colour?: string})[]} given
 * @returns {Label[]}
 */
export function withKeys(given) {
  const labels = given.map((label) => (typeof label === "string" ? { name: label } : label));
  const taken = new Set(labels.map(({ key }) => (key || "").toLowerCase()));
  const free = [...KEYS].filter((key) => !taken.has(key));
  return labels.map(({ name, key, colour }, n) => ({
    name,
    key: key ? key.toLowerCase() : free.shift() || "",
    // A colour of one's own is drawn towards that of the text, so that it stands out on light and on dark.
    colour: colour && CSS.supports("color", colour) ? `color-mix(in oklab, ${colour} 72%, var(--ink))` : `var(--t${n % COLOURS})`,
  }));
}

/** The label of a key that was pressed: what it writes, or on keyboards that write something else there, its place. */
export function labelOfKey(labels, event) {
  const written = event.key.toLowerCase();
  const place = /^(?:Digit|Numpad|Key)(.)$/.exec(event.code || "");
  return labels.find(({ key }) => key && key === written) || labels.find(({ key }) => key && place && key === place[1].toLowerCase());
}
