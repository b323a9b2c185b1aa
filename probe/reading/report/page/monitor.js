// The rows of the monitor: a curve for each series, and the alarms.

const MAIN_CURVES = 6;

const curveOf = (name) => D.curves.find((curve) => curve.name === name);

/** Return the lines of one series of the monitor, with the steps of its alarms. */
function curveLines(curve) {
  const alarms = D.trends.filter((item) => item.name === curve.name).map((item) => item.step);
  return seriesLines(curve.name, curve, state.r, [...new Set(alarms)].sort((a, b) => a - b));
}

/** Return the curves that are shown where none is chosen: loss, norms, learning rate, and series with alarms. */
function mainCurves() {
  const alarmed = new Set(D.trends.map((item) => item.name));
  const found = [...D.curves.filter((curve) => curve.main), ...D.curves.filter((curve) => !curve.main && alarmed.has(curve.name))];
  return found.length ? found.slice(0, MAIN_CURVES) : D.curves.slice(0, MAIN_CURVES);
}

/** Return the main curves, two in a row; null without rows. */
function curvesOverview() {
  return D.curves.length ? h("section", {}, h("h3", {}, t("every_step")), h("p", { class: "quiet" }, said(D.rows)), h("div", { class: "pair" }, mainCurves().map(curveLines))) : null;
}

/** Return a list of all series of the monitor, and the curve of the chosen one; null without rows. */
function curvesChoice() {
  if (!D.curves.length) return null;
  const chosen = curveOf(state.c) || D.curves[0];
  const place = h("div", {}, curveLines(chosen));
  const select = h("select", { id: "curve", size: "10" }, D.curves.map((curve) => h("option", { value: curve.name, selected: curve === chosen }, curve.name)));
  select.addEventListener("change", () => { place.replaceChildren(curveLines(curveOf(select.value))); remember({ c: select.value }); });
  return h("section", {}, h("h3", {}, t("every_step")), h("div", { class: "pair" },
    h("section", { class: "card" }, h("label", { for: "curve" }, h("h4", {}, t("choose_curve"))), select, D.curves_left_out ? h("p", { class: "quiet" }, t("curves_left_out", D.curves_left_out)) : null), place));
}

/** Return a link to the tensor or the series of a rule that holds. */
function trendLink(item) {
  const target = curveOf(item.name) ? { v: "steps", c: item.name } : { v: "call", s: item.step, r: rankName(item.rank), c: callOfTensor(item.name) };
  return link(target, item.name);
}

/** Return the rules that hold in series, with their steps; ``most`` 0 shows all. */
function trendList(most = 0) {
  const shown = most ? D.trends.slice(0, most) : D.trends;
  return h("ul", { class: "plain" }, shown.map((item) => h("li", {}, `${stepText(item)}: `, trendLink(item), `: ${said(item.sentence)}`)),
    shown.length < D.trends.length ? h("li", {}, link({ v: "steps" }, t("all_of", D.trends.length))) : null);
}

function trendsCard() {
  return D.trends.length ? h("section", { class: "card", id: "alarms" }, h("h3", {}, `${t("alarms")} (${D.trends.length})`), trendList(10)) : null;
}
