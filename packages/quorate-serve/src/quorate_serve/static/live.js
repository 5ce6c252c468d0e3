// Follows what the service says by itself. On `document` come "quorate:consensus", "quorate:progress" and "quorate:queue", each
// with what was sent as its detail, and "quorate:live" (detail: true or false) as the stream comes and goes. While it is away,
// pages show what they have.
//
//   import { follow } from "./live.js";
//   follow();
//   document.addEventListener("quorate:progress", ({ detail }) => …);

const KINDS = ["consensus", "progress", "queue"];
const FIRST_WAIT = 1_000, LONGEST_WAIT = 60_000; // milliseconds until the next try

/** @param {string} [url] */
export function follow(url = "/api/v1/live") {
  /** @type {EventSource | null} */ let source = null;
  let failures = 0, timer = 0;
  const tell = (kind, detail) => document.dispatchEvent(new CustomEvent(`quorate:${kind}`, { detail }));

  function close() {
    clearTimeout(timer);
    if (!source) return;
    source.close();
    source = null;
    tell("live", false);
  }

  function open() {
    close();
    const opened = source = new EventSource(url);
    opened.onopen = () => { failures = 0; tell("live", true); };
    // The browser tries again by itself after a broken connection, but not after an answer that is an error.
    opened.onerror = () => {
      if (source !== opened || opened.readyState !== EventSource.CLOSED) return;
      close();
      failures += 1;
      timer = setTimeout(open, Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** failures) * (0.5 + Math.random() / 2));
    };
    for (const kind of KINDS) opened.addEventListener(kind, ({ data }) => tell(kind, JSON.parse(data)));
  }

  // A browser allows six connections to a service: pages that nobody looks at must not use them up.
  const seen = () => { if (document.hidden) close(); else if (!source) open(); };
  document.addEventListener("visibilitychange", seen);
  addEventListener("pagehide", close);
  addEventListener("pageshow", seen);
  seen();
  return close;
}
