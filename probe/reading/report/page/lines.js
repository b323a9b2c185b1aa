// Lines over the steps, drawn by uPlot; the same numbers as a table for those who read.

/** Return a picture of series and its table. series: [{label, dash, values: Map(step -> number)}] */
function makeLines(title, series, logarithmic = false) {
  const steps = [...new Set(series.flatMap((item) => [...item.values.keys()]))].sort((a, b) => a - b);
  const table = h("details", {}, h("summary", {}, t("numbers")), h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": title },
    h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("step")), series.map((item) => h("th", { scope: "col" }, item.label)))),
      h("tbody", {}, steps.map((step) => h("tr", {}, h("th", { scope: "row" }, step), series.map((item) => h("td", {}, digits(item.values.get(step))))))))));
  const place = h("div", { class: "lines", role: "img", "aria-label": `${title}: ${series.map((item) => summary(item)).join("; ")}`.slice(0, 500) });
  const made = h("figure", { class: "card" }, h("figcaption", {}, title), steps.length > 1 ? place : h("p", { class: "quiet" }, steps.length ? t("one_step") : t("none")), table);
  if (steps.length < 2) { table.open = true; return made; }
  const data = [steps, ...series.map((item) => steps.map((step) => finite(item.values.get(step))))];
  const draw = () => {
    const style = getComputedStyle(place);
    const axis = { stroke: style.getPropertyValue("--text"), grid: { stroke: style.getPropertyValue("--line"), width: 1 }, ticks: { stroke: style.getPropertyValue("--line"), width: 1 } };
    place.replaceChildren();
    new uPlot({
      width: Math.max(place.clientWidth, 200), height: 200, legend: { show: true }, cursor: { drag: { x: true, y: false } },
      scales: { x: { time: false }, y: logarithmic && data.slice(1).flat().every((value) => value === null || value > 0) ? { distr: 3 } : {} },
      axes: [{ ...axis, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? tick : "")) }, { ...axis, size: 70, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : digits(tick, 3))) }],
      series: [{ label: t("step") }, ...series.map((item, number) => ({
        label: item.label, stroke: style.getPropertyValue(`--line-${(number % 4) + 1}`), width: 2, dash: item.dash, points: { show: true, size: 6 },
        value: (_, value) => digits(value),
      }))],
    }, data, place);
  };
  let width = 0;
  new ResizeObserver(() => { if (place.clientWidth && place.clientWidth !== width) { width = place.clientWidth; draw(); } }).observe(place);
  return made;
}

const finite = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);

function summary(item) {
  const values = [...item.values.values()];
  return values.length ? `${item.label} ${digits(values[0])} - ${digits(values[values.length - 1])}` : item.label;
}

/** Return the lines of a series that the report has for all ranks: of A and B on the chosen rank. */
function seriesLines(title, found, rank, logarithmic) {
  const lines = [];
  for (const side of D.two ? ["a", "b"] : ["b"]) {
    const values = found[side][rank] || found[side][Object.keys(found[side])[0]];
    if (values) lines.push({ label: D.two ? side.toUpperCase() : rankText(rank), dash: side === "a" && D.two ? [6, 4] : null, values: new Map(values) });
  }
  return makeLines(title, lines, logarithmic);
}
