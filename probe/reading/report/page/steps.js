// Lines over the steps and what the rules found in them.

function stepsView(view) {
  put(view, curvesChoice(), D.units.length ? recordedSteps() : null,
    h("section", { class: "card" }, h("h3", {}, t("findings")),
      D.units.length && D.steps.length < 5 ? h("p", { class: "quiet" }, t("few_steps", D.steps.length)) : null,
      D.trends.length ? trendList() : D.steps.length >= 5 || D.curves.length ? h("p", {}, t("no_findings")) : null));
}

/** Return the lines of the steps that have a dump. */
function recordedSteps() {
  const series = seriesCalls();
  const wanted = state.c !== null ? D.tables.names.indexOf(state.c) : -1;
  const chosen = wanted >= 0 ? wanted : series.length ? series[0] : -1;
  const place = h("div", {});
  const show = (name) => place.replaceChildren(makeLines(`${t("gradient")}: ${D.tables.names[name]}`, stepSeries(name, state.r)));
  const select = h("select", { id: "series", size: "10" }, series.slice(0, 2000).map((name) => h("option", { value: String(name), selected: name === chosen }, D.tables.names[name])));
  select.addEventListener("change", () => { show(Number(select.value)); remember({ c: D.tables.names[Number(select.value)] }); });
  if (chosen >= 0) show(chosen);
  return h("section", {}, D.curves.length ? h("h3", {}, t("recorded_steps")) : null,
    h("div", { class: "pair" }, lossLines(), seriesLines(t("norm"), D.series.norm, state.r)),
    Object.keys(D.series.learning_rate.b).length ? h("div", { class: "pair" }, seriesLines(t("learning_rate"), D.series.learning_rate, state.r),
      seriesLines(t("global_norm"), D.series.global_norm, state.r)) : null,
    h("div", { class: "pair" }, h("section", { class: "card" }, h("label", { for: "series" }, h("h3", {}, t("choose_series"))), select), place));
}

/** Return the names that have a line: gradients of parameters first, then the calls of the first unit. */
function seriesCalls() {
  const [first, last] = D.units[chosenUnit()].calls;
  const numbers = [...new Set([...range(first, last)].map((call) => C.name[call]))];
  const isGradient = (number) => D.tables.names[number].includes(".parameters_grad");
  return [...numbers.filter(isGradient), ...numbers.filter((number) => !isGradient(number))];
}

/** Return the longest name of a call that a tensor's name begins with. */
function callOfTensor(name) {
  let found = name;
  while (found && !D.tables.names.includes(found)) found = found.slice(0, Math.max(found.lastIndexOf("."), 0));
  return found || name;
}
