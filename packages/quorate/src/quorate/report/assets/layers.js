// One report for each layer, each a whole page of its own, and tabs to go from one to the other.

const PAGES = JSON.parse(document.getElementById("pages").textContent);
const list = document.querySelector("[role=tablist]");
try { const colours = localStorage.getItem("quorate-colours"); if (colours === "light" || colours === "dark") document.documentElement.dataset.theme = colours; } catch { /* the system's colours, then */ }

// A link to a place in a page that is inside of another would lead to that place of the other.
function followWithin(frame) {
  frame.contentDocument.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    const place = link && frame.contentDocument.getElementById(link.getAttribute("href").slice(1));
    if (!place) return;
    event.preventDefault();
    place.scrollIntoView();
    if (place.tabIndex >= -1) place.focus({ preventScroll: true });
  });
}

const tabs = PAGES.map(({ layer, page }, n) => {
  const tab = document.createElement("button"), frame = document.createElement("iframe");
  Object.assign(tab, { type: "button", id: `tab-${n}`, textContent: layer, onclick: () => show(n) });
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", `layer-${n}`);
  Object.assign(frame, { id: `layer-${n}`, title: `Layer ${layer}`, hidden: true, onload: () => { if (frame.srcdoc) followWithin(frame); } });
  frame.setAttribute("role", "tabpanel");
  frame.setAttribute("aria-labelledby", tab.id);
  list.append(tab);
  document.body.append(frame);
  return { tab, frame, page };
});

// A page is drawn when it is first seen: what is hidden has no width to draw in.
function show(chosen) {
  tabs.forEach(({ tab, frame, page }, n) => {
    tab.setAttribute("aria-selected", String(n === chosen));
    tab.tabIndex = n === chosen ? 0 : -1;
    frame.hidden = n !== chosen;
    if (n === chosen && !frame.srcdoc) frame.srcdoc = page;
  });
}

list.addEventListener("keydown", (event) => {
  const at = tabs.findIndex(({ tab }) => tab === document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  const next = (to + tabs.length) % tabs.length;
  show(next);
  tabs[next].tab.focus();
});

show(0);
