// What a key asks for.

/**
 * A command of the element and what it is called with; null for keys that mean nothing here.
 * @param {KeyboardEvent} event
 * @param {boolean} rightToLeft whether "on" is to the left
 * @returns {[string, ...unknown[]] | null}
 */
export function commandOf(event, rightToLeft) {
  const { key, shiftKey: shift, altKey: alt } = event;
  const control = event.ctrlKey || event.metaKey;
  const forward = (key === "ArrowRight") !== rightToLeft;
  switch (key) {
    case "ArrowLeft":
    case "ArrowRight":
      if (alt) return ["moveEdge", shift ? "start" : "end", forward];
      return control ? null : ["move", forward, shift];
    case "ArrowUp":
    case "ArrowDown":
      return alt || control ? null : ["moveLine", key === "ArrowDown", shift];
    case "Home":
    case "End":
      return ["moveToEnd", key === "End", control, shift];
    case "Tab":
      return alt || control ? null : ["walk", !shift];
    case "Enter":
      return ["enter"];
    case "Delete":
    case "Backspace":
      return ["remove"];
    case "Escape":
      return ["leave"];
    case "[":
      return ["moveEdge", "start", false];
    case "{":
      return ["moveEdge", "start", true];
    case "]":
      return ["moveEdge", "end", true];
    case "}":
      return ["moveEdge", "end", false];
    case "?":
      return ["help"];
    default:
  }
  if (!control || alt) return null;
  if (key.toLowerCase() === "z") return [shift ? "redo" : "undo"];
  return key.toLowerCase() === "y" && !shift ? ["redo"] : null;
}
