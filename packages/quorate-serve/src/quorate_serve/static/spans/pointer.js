// Mouse, pen and finger: a tap, a stroke over words, an end that is dragged. A finger that goes up or down scrolls, as everywhere.

const STILL = { mouse: 3, pen: 5, touch: 8 }; // pixels that do not yet make a stroke
const BORDER = 36; // pixels from the window's edge in which a stroke scrolls

/**
 * @typedef {{unit: number, on: boolean}} Hit a word or character; `on` says that the point lies on it, not beside it
 * @param {HTMLElement} text
 * @param {{
 *   hit: (x: number, y: number) => Hit | null,
 *   preview: (from: number | null, to?: number) => void,
 *   stroke: (from: number, to: number) => void,
 *   previewEdge: (edge: string, unit: number) => void,
 *   dragEdge: (edge: string, unit: number) => void,
 *   tap: (target: Element, hit: Hit | null) => void,
 * }} does
 */
export function followPointer(text, does) {
  let gesture = null;
  const stop = () => { gesture = null; does.preview(null); };

  text.addEventListener("selectstart", (event) => event.preventDefault());
  text.addEventListener("mousedown", (event) => {
    event.preventDefault(); // the text takes the focus, not what is drawn in it and may be drawn anew
    text.focus({ preventScroll: true });
  });
  text.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return;
    const edge = event.target.dataset.edge;
    gesture = { target: event.target, edge, x: event.clientX, y: event.clientY, moved: false, from: does.hit(event.clientX, event.clientY) };
    text.setPointerCapture(event.pointerId);
  });
  text.addEventListener("pointermove", (event) => {
    if (!gesture || !event.isPrimary) return;
    const { clientX: x, clientY: y } = event;
    gesture.moved ||= Math.hypot(x - gesture.x, y - gesture.y) > (STILL[event.pointerType] ?? 3);
    const hit = gesture.moved ? does.hit(x, y) : null;
    if (!hit) return;
    gesture.to = hit.unit;
    if (gesture.edge) does.previewEdge(gesture.edge, hit.unit);
    else if (gesture.from) does.preview(gesture.from.unit, hit.unit);
    if (y < BORDER) window.scrollBy(0, y - BORDER);
    if (y > window.innerHeight - BORDER) window.scrollBy(0, y - window.innerHeight + BORDER);
  });
  text.addEventListener("pointerup", (event) => {
    if (!gesture || !event.isPrimary) return;
    const { edge, moved, from, to, target } = gesture;
    stop();
    if (!moved) { if (!edge) does.tap(target, from); }
    else if (to === undefined) return;
    else if (edge) does.dragEdge(edge, to);
    else if (from) does.stroke(from.unit, to);
  });
  text.addEventListener("pointercancel", () => { if (gesture) stop(); });
}
