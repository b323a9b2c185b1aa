// A search of probe find: its experiments from the symptom to the cause, and the answer behind them.

/** Return the experiments and the answer as a list; null for a page without a search. */
function searchStrip() {
  if (!D.search) return null;
  const { experiments, answer, code, more, tone } = D.search;
  const steps = experiments.map((item, place) => h("li", { class: `experiment ${item.tone}` },
    h("h3", {}, `${place + 1} ${item.name}`, h("span", { class: "quiet" }, ` ${t("experiments_seconds", item.seconds)}`)),
    h("p", { class: "quiet" }, said(item.asks)), h("p", {}, said(item.learned))));
  const last = h("li", { class: `experiment answer ${tone}` }, h("h3", {}, t("experiments_answer")), h("p", {}, said(answer)),
    code ? h("p", { class: "code" }, h("code", {}, said(code))) : null, more.map((line) => h("p", {}, said(line))));
  return h("section", { id: "search", class: "card" }, h("h3", {}, t("experiments", experiments.length)), h("ol", { class: "experiments" }, steps, last));
}
