// Charts as inline SVG. Each has a title for those who do not see it, and says in words or numbers what colour says.

function histogram(counts, { label, unit, doubtBelow }) {
  const W = 460, H = 150, bottom = 118, most = Math.max(...counts, 1), step = (W - 40) / counts.length;
  const total = counts.reduce((a, b) => a + b, 0);
  // Counts differ by orders of magnitude: a square root keeps the small ones, which matter here, in sight.
  const high = (n) => (n ? Math.max(2, (bottom - 18) * Math.sqrt(n / most)) : 0);
  const bars = counts.map((n, at) => {
    const x = 30 + at * step, y = bottom - high(n), low = at / counts.length, top = (at + 1) / counts.length;
    return s("g", {}, s("title", {}, `${pct(low)} to ${pct(top)}: ${many(n, unit)}`),
      s("rect", { x, y: 10, width: step, height: bottom - 10, fill: "transparent" }),
      s("rect", { class: top <= doubtBelow ? "bar doubt" : "bar", x: x + 1, y, width: step - 2, height: high(n), rx: 1.5 }),
      n && (n === most || n >= 0.02 * total || counts.length <= 10)
        ? s("text", { x: x + step / 2, y: y - 4, "text-anchor": "middle", style: { "font-size": "9.5px" } }, int(n)) : null);
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((p) => s("g", {},
    s("line", { class: "tick", x1: 30 + p * (W - 40), x2: 30 + p * (W - 40), y1: bottom, y2: bottom + 4 }),
    s("text", { x: 30 + p * (W - 40), y: bottom + 17, "text-anchor": "middle" }, pct(p))));
  return s("svg", { viewBox: `0 0 ${W + 12} ${H}`, role: "img", "aria-label": label, width: W },
    s("line", { class: "axis", x1: 30, x2: W - 10, y1: bottom, y2: bottom }), bars, ticks,
    s("text", { x: 30, y: H - 1 }, "less certain"), s("text", { x: W - 10, y: H - 1, "text-anchor": "end" }, "more certain"));
}

function traceChart(bounds) {
  const W = 460, H = 200, left = 78, right = W - 14, top = 14, bottom = 160;
  const low = Math.min(...bounds), high = Math.max(...bounds), span = high - low || 1;
  const x = (n) => (bounds.length > 1 ? left + (n / (bounds.length - 1)) * (right - left) : (left + right) / 2);
  const y = (b) => bottom - ((b - low) / span) * (bottom - top);
  const points = bounds.map((b, n) => `${x(n).toFixed(1)},${y(b).toFixed(1)}`).join(" ");
  return s("svg", { viewBox: `0 0 ${W} ${H}`, width: W, role: "img",
    "aria-label": `The bound rose from ${int(bounds[0])} to ${int(bounds[bounds.length - 1])} in ${bounds.length} passes` },
    [low, (low + high) / 2, high].map((b) => s("g", {},
      s("line", { class: "axis", x1: left, x2: right, y1: y(b), y2: y(b) }),
      s("text", { x: left - 8, y: y(b) + 4, "text-anchor": "end" }, int(b)))),
    s("polyline", { class: "curve", points }),
    bounds.map((b, n) => s("circle", { class: "dot", cx: x(n), cy: y(b), r: 3.4 }, s("title", {}, `Pass ${n + 1}: ${b.toFixed(1)}`))),
    s("text", { x: x(0), y: bottom + 20, "text-anchor": "middle" }, "1"),
    bounds.length > 1 ? s("text", { x: x(bounds.length - 1), y: bottom + 20, "text-anchor": "middle" }, bounds.length) : null,
    s("text", { x: (left + right) / 2, y: bottom + 36, "text-anchor": "middle" }, "pass"));
}

// With ``earlier``, what was given before it was corrected stands beside it as hollow dots.
function calibrationChart(found, name, earlier) {
  const size = 270, left = 44, top = 12, bottom = top + size - 60, right = left + size - 60;
  const x = (p) => left + p * (right - left), y = (p) => bottom - p * (bottom - top);
  const most = Math.max(...found.bins.map((bin) => bin[2]));
  const hollow = (earlier ? earlier.bins : []).map(([low, high, n, sure, right_]) => s("g", {},
    s("title", {}, `before, ${many(n, "answer")} given ${pct(low)} to ${pct(high)}: ${pct(sure, 1)} on average, ${pct(right_, 1)} right`),
    s("circle", { class: "dot hollow", cx: x(sure), cy: y(right_), r: 3 + 7 * Math.sqrt(n / Math.max(...earlier.bins.map((bin) => bin[2]))) })));
  const dots = found.bins.map(([low, high, n, sure, right_]) => s("g", {},
    s("title", {}, `${many(n, "answer")} given ${pct(low)} to ${pct(high)}: ${pct(sure, 1)} on average, ${pct(right_, 1)} right`),
    s("line", { x1: x(sure), x2: x(sure), y1: y(sure), y2: y(right_), stroke: "var(--bad)", "stroke-width": 1.5 }),
    s("circle", { class: "dot", cx: x(sure), cy: y(right_), r: 3 + 7 * Math.sqrt(n / most) })));
  return h("figure", { style: { margin: 0 } },
    h("figcaption", {}, h("b", {}, name), ` · ${int(found.count)} · off by ${earlier ? `${pct(earlier.error, 1)}, then ` : ""}${pct(found.error, 1)} on average`),
    s("svg", { viewBox: `0 0 ${size} ${size - 16}`, width: size, role: "img",
      "aria-label": `Calibration of ${name}: expected calibration error ${pct(found.error, 1)}${earlier ? `, ${pct(earlier.error, 1)} before` : ""}` },
      [0, 0.5, 1].map((p) => s("g", {},
        s("line", { class: "axis", x1: left, x2: right, y1: y(p), y2: y(p) }),
        s("line", { class: "axis", x1: x(p), x2: x(p), y1: top, y2: bottom }),
        s("text", { x: left - 6, y: y(p) + 4, "text-anchor": "end" }, pct(p)),
        s("text", { x: x(p), y: bottom + 16, "text-anchor": "middle" }, pct(p)))),
      s("line", { class: "even", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }), hollow, dots,
      s("text", { x: (left + right) / 2, y: bottom + 32, "text-anchor": "middle" }, "confidence"),
      s("text", { transform: `translate(10 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, "share right")));
}

// A short line for an interval with its estimate.
function intervalChart(low, value, high, from) {
  const W = 66, x = (p) => 4 + ((Math.max(p, from) - from) / (1 - from || 1)) * (W - 8);
  return s("svg", { viewBox: `0 0 ${W} 12`, width: W, "aria-hidden": "true", style: { display: "inline-block", "vertical-align": "middle" } },
    s("line", { class: "axis", x1: 4, x2: W - 4, y1: 6, y2: 6 }),
    low === null ? null : s("line", { x1: x(low), x2: x(high), y1: 6, y2: 6, stroke: "var(--accent)", "stroke-width": 3, opacity: 0.45 }),
    s("circle", { cx: x(value), cy: 6, r: 3.2, fill: "var(--accent)" }));
}

const LABELS = D.labels_of_model;

function axisName(label, wide) { return label.length > wide ? label.slice(0, wide - 1) + "…" : label; }

// One matrix, thousandths by row: what label is given (columns) when the truth is (rows).
function heatmap(values, offset, { compact }) {
  const J = LABELS.length, cell = compact ? (J > 6 ? 22 : 30) : J > 12 ? 24 : 31;
  const wide = Math.min(8, Math.max(...LABELS.map((label) => label.length)));
  const left = 8 + wide * 6.2, top = 10 + wide * 5.4, W = left + J * cell + 4, H = top + J * cell + 4;
  const parts = [];
  for (let j = 0; j < J; j++) {
    parts.push(s("text", { x: left - 5, y: top + j * cell + cell / 2 + 3.5, "text-anchor": "end", style: { "font-size": "9.5px" } },
      axisName(LABELS[j], 8), s("title", {}, LABELS[j])));
    parts.push(s("text", { transform: `translate(${left + j * cell + cell / 2 + 3} ${top - 5}) rotate(-55)`, style: { "font-size": "9.5px" } },
      axisName(LABELS[j], 8), s("title", {}, LABELS[j])));
    for (let i = 0; i < J; i++) {
      const v = values[offset + j * J + i] / 1000;
      parts.push(s("g", {}, s("title", {}, `truth ${LABELS[j]}, says ${LABELS[i]}: ${pct(v, 1)}`),
        s("rect", { x: left + i * cell, y: top + j * cell, width: cell - 1, height: cell - 1, rx: 1.5,
          style: { fill: `color-mix(in oklab, var(--heat) ${(100 * v).toFixed(1)}%, var(--heat-low))` } }),
        v >= 0.005 ? s("text", { x: left + i * cell + (cell - 1) / 2, y: top + j * cell + cell / 2 + 3, "text-anchor": "middle",
          style: { "font-size": compact && J > 6 ? "8.5px" : "9.5px", fill: v > 0.55 ? "var(--heat-ink)" : "var(--ink)" } },
          Math.round(100 * v)) : null));
    }
  }
  return s("svg", { viewBox: `0 0 ${W} ${H}`, width: W, role: "img", "aria-label": matrixInWords(values, offset) }, parts);
}

function matrixInWords(values, offset) {
  const J = LABELS.length;
  return LABELS.map((label, j) => {
    const row = values.slice(offset + j * J, offset + (j + 1) * J), best = row.indexOf(Math.max(...row));
    return `truth ${label}: says ${LABELS[best]} ${Math.round(row[best] / 10)}%`;
  }).join("; ");
}

// The same matrix as bars that stand on a floor, seen from a corner; the right answers stand side by side from left to right.
function bars3d(values, offset, { compact }) {
  const J = LABELS.length, unit = compact && J > 6 ? 15 : 22, tall = compact ? 75 : 100;
  const dx = unit, dy = unit * 0.58, left = J * dx + 52, top = tall + 10;
  const W = 2 * J * dx + 104, H = top + 2 * J * dy + 30;
  const at = (i, j) => [left + (i - j) * dx, top + (i + j) * dy];
  const path = (points) => points.map((p) => p.map((n) => n.toFixed(1)).join(",")).join(" ");
  const shade = (p) => `color-mix(in oklab, var(--heat) ${p}%, var(--heat-low))`;
  const parts = [s("polygon", { points: path([at(0, 0), at(J, 0), at(J, J), at(0, J)]), fill: "var(--heat-low)", stroke: "var(--line)" })];
  for (let back = 0; back < J; back++) {
    const j = J - 1 - back;
    for (let i = 0; i < J; i++) {
      const v = values[offset + j * J + i] / 1000, up = v * tall, e = 0.14, tone = i === j ? 1 : 0.6;
      const [a, b, c, d] = [at(i + e, back + e), at(i + 1 - e, back + e), at(i + 1 - e, back + 1 - e), at(i + e, back + 1 - e)];
      const lift = ([x, y]) => [x, y - up];
      if (v < 0.005) continue;
      parts.push(s("g", {}, s("title", {}, `truth ${LABELS[j]}, says ${LABELS[i]}: ${pct(v, 1)}`),
        s("polygon", { points: path([d, c, lift(c), lift(d)]), style: { fill: shade(80 * tone) } }),
        s("polygon", { points: path([c, b, lift(b), lift(c)]), style: { fill: shade(58 * tone) } }),
        s("polygon", { points: path([a, b, c, d].map(lift)), style: { fill: shade(100 * tone), stroke: "var(--paper)", "stroke-width": 0.4 } })));
    }
  }
  for (let n = 0; n < J; n++) {
    const [x, y] = at(n + 0.5, J), [u, w] = at(J, J - 1 - n + 0.5);
    parts.push(s("text", { x: x - 3, y: y + 8, "text-anchor": "end", style: { "font-size": "8px" } }, axisName(LABELS[n], 8)));
    parts.push(s("text", { x: u + 3, y: w + 8, style: { "font-size": "8px" } }, axisName(LABELS[n], 8)));
  }
  parts.push(s("text", { x: left - J * dx * 0.5 - 12, y: H - 6, "text-anchor": "end", style: { "font-size": "10px" } }, "says"));
  parts.push(s("text", { x: left + J * dx * 0.5 + 12, y: H - 6, style: { "font-size": "10px" } }, "truth"));
  return s("svg", { viewBox: `0 0 ${W} ${H}`, width: W, role: "img", "aria-label": matrixInWords(values, offset) }, parts);
}
