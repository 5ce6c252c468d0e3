// The page follows what happens: when the consensus changed, its content is fetched again and put in place.

import { follow } from "../live.js";

const AT_MOST_EVERY = 2_000; // milliseconds
const live = document.getElementById("live");
let timer = 0;

async function refresh() {
  timer = 0;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!answer?.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("progress");
  if (fresh) document.getElementById("progress").replaceChildren(...fresh.childNodes);
}

for (const kind of ["consensus", "progress"]) {
  document.addEventListener(`quorate:${kind}`, () => { timer ||= setTimeout(refresh, AT_MOST_EVERY); });
}
document.addEventListener("quorate:live", ({ detail }) => { live.textContent = detail ? "Follows as it happens" : ""; });
follow();
