// Lines over the steps, drawn by uPlot; the same numbers as a table for those who read.

const MOST_LINES = 16;
const DECADES = 100;  // values that span more than two decades have a logarithmic scale
const DASHES = [null, [8, 4], [2, 3], [10, 3, 2, 3]];
const WORDS = { nan: NaN, inf: Infinity, "-inf": -Infinity };

/** Return a number of the data as a number: NaN and Inf are texts there. */
const numberOf = (value) => (typeof value === "string" ? WORDS[value] : value);
const isStrange = (value) => typeof value === "number" && !Number.isFinite(value);

/** Return a picture of series and its table. series: [{label, dash, values: Map(step -> number)}], alarms: steps. */
function makeLines(title, series, alarms = []) {
  const lines = series.map((item) => ({ ...item, values: new Map([...item.values].map(([step, value]) => [step, numberOf(value)])) }));
  const steps = [...new Set(lines.flatMap((item) => [...item.values.keys()]))].sort((a, b) => a - b);
  const place = h("div", { class: "lines", role: "img", "aria-label": `${title}: ${lines.map((item) => summary(item)).join("; ")}`.slice(0, 500) });
  const table = numbersTable(title, steps, lines);
  const made = h("figure", { class: "card" }, h("figcaption", {}, title), steps.length > 1 ? place : h("p", { class: "quiet" }, steps.length ? t("one_step") : t("none")),
    lines.map(strangeText), steps.length > 1 && alarms.length ? h("p", { class: "alarms" }, t("alarm_marks", shortList(alarms))) : null, table);
  if (steps.length < 2) { table.open = true; return made; }
  let width = 0;
  new ResizeObserver(() => { if (place.clientWidth && place.clientWidth !== width) { width = place.clientWidth; draw(place, steps, lines, alarms); } }).observe(place);
  return made;
}

function numbersTable(title, steps, lines) {
  const table = h("details", {}, h("summary", {}, t("numbers")));
  const fill = () => { if (table.open && table.children.length === 1) put(table, h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": title },
    h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("step")), lines.map((item) => h("th", { scope: "col" }, item.label)))),
      h("tbody", {}, steps.map((step) => h("tr", {}, h("th", { scope: "row" }, step), lines.map((item) => h("td", {}, digits(item.values.get(step)))))))))); };
  table.addEventListener("toggle", fill);
  return table;
}

/** Return whether values have a logarithmic scale: none is negative, and they span more than two decades. */
function isLogarithmic(values) {
  const finite = values.filter(Number.isFinite);
  const positive = finite.filter((value) => value > 0);
  return finite.every((value) => value >= 0) && positive.length > 1 && extreme(positive, Math.max) > DECADES * extreme(positive, Math.min);
}

const extreme = (values, choose) => values.reduce((a, b) => choose(a, b));

/** Draw the lines. A step that was not measured is undefined: the line goes on; NaN and Inf are null: it has a gap. */
function draw(place, steps, lines, alarms) {
  const style = getComputedStyle(place);
  const look = (name) => style.getPropertyValue(name);
  const axis = { stroke: look("--text"), grid: { stroke: look("--line"), width: 1 }, ticks: { stroke: look("--line"), width: 1 } };
  const logarithmic = isLogarithmic(lines.flatMap((item) => [...item.values.values()]));
  const drawn = (value) => (value === undefined ? undefined : !Number.isFinite(value) || (logarithmic && value === 0) ? null : value);
  const filter = (_, ticks) => ticks.map((tick) => (!logarithmic || Number.isInteger(Number(Math.log10(tick).toFixed(6))) ? tick : null));
  const upright = { ...axis, grid: { ...axis.grid, filter }, ticks: { ...axis.ticks, filter } };
  const colours = lines.map((_, at) => look(`--line-${(at % 4) + 1}`));
  place.dataset.scale = logarithmic ? "log" : "linear";
  place.dataset.lines = lines.length;
  place.replaceChildren();
  new uPlot({
    width: Math.max(place.clientWidth, 200), height: 200, legend: { show: true }, cursor: { drag: { x: true, y: false } },
    scales: { x: { time: false }, y: logarithmic ? { distr: 3 } : {} },
    axes: [{ ...axis, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? tick : "")) }, { ...upright, size: 70, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : digits(tick, 3))) }],
    series: [{ label: t("step") }, ...lines.map((item, at) => ({
      label: item.label, stroke: colours[at], width: 2, dash: item.dash || DASHES[Math.floor(at / 4) % 4], points: steps.length > 30 ? {} : { show: true, size: 6 },
      value: (_, value, __, index) => (index === null || index === undefined ? "-" : digits(lines[at].values.get(steps[index]))),
    }))],
    hooks: { draw: [(plot) => { alarmMarks(plot, alarms, look("--bad")); strangeMarks(plot, lines, colours, logarithmic); }] },
  }, [steps, ...lines.map((item) => steps.map((step) => drawn(item.values.get(step))))], place);
}

/** Draw a cross for each NaN and Inf, and on a logarithmic scale a 0 for each zero. */
function strangeMarks(plot, lines, colours, logarithmic) {
  const { ctx, bbox } = plot;
  const size = 11 * devicePixelRatio;
  ctx.save();
  ctx.font = `bold ${size}px sans-serif`;
  ctx.textAlign = "center";
  lines.forEach((item, at) => {
    ctx.fillStyle = colours[at];
    for (const [step, value] of item.values) {
      const isZero = logarithmic && value === 0;
      const x = plot.valToPos(step, "x", true);
      if ((!isZero && !isStrange(value)) || x < bbox.left || x > bbox.left + bbox.width) continue;
      const isLow = isZero || value === -Infinity;
      ctx.fillText(isZero ? "0" : SYMBOLS.nan, x, isLow ? bbox.top + bbox.height - 3 : bbox.top + size * (1 + at % 3));
    }
  });
  ctx.restore();
}

/** Draw a dashed line at each step with an alarm. */
function alarmMarks(plot, alarms, colour) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.setLineDash([4, 4]);
  for (const step of alarms) {
    const x = plot.valToPos(step, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** Return a line that names the steps with NaN/Inf; null without one. */
function strangeText(item) {
  const found = [...item.values].filter(([, value]) => isStrange(value)).map(([step]) => step);
  return found.length ? h("p", { class: "strange" }, `${SYMBOLS.nan} ${t("strange_steps", item.label, shortList(found))}`) : null;
}

const shortList = (steps) => (steps.length > 4 ? `${steps.slice(0, 3).join(", ")} ... ${steps[steps.length - 1]}` : steps.join(", "));

function summary(item) {
  const values = [...item.values.values()];
  return values.length ? `${item.label} ${digits(values[0])} - ${digits(values[values.length - 1])}` : item.label;
}

/** Return the lines of a series: of one run those of all ranks, of two A and B on the chosen rank. */
function seriesLines(title, found, rank, alarms = []) {
  const lines = [];
  for (const side of D.two ? ["a", "b"] : ["b"]) {
    const ranks = Object.keys(found[side]);
    const chosen = ranks.includes(rank) ? rank : ranks[0];
    const shown = D.two ? ranks.filter((other) => other === chosen) : ranks.length > MOST_LINES ? [chosen, ...ranks.filter((other) => other !== chosen)].slice(0, MOST_LINES) : ranks;
    for (const other of shown) lines.push({ label: D.two ? side.toUpperCase() : rankText(other), dash: side === "a" && D.two ? [6, 4] : null, values: new Map(found[side][other]) });
  }
  return makeLines(title, lines, alarms);
}
