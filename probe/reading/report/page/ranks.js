// Cells and ranks as a matrix, ranks that look alike, and values that should be equal on all of them.

const MOST_CELLS = 60;
const MOST_RANKS = 64;

function ranksView(view) {
  const step = state.s;
  const units = D.units.map((unit, number) => number).filter((number) => String(D.units[number].step) === String(step));
  const fields = matrixFields(units);
  put(view, h("section", { class: "card" }, h("h3", {}, t("groups")), D.rankNames.length < 2 ? h("p", { class: "quiet" }, t("one_rank")) : groupList(units, fields)),
    h("section", { class: "card" }, h("h3", {}, t("matrix", step)), matrix(units, fields), h("p", { class: "quiet" }, t("matrix_help"))),
    D.rankNames.length < 2 ? null : h("section", { class: "card" }, h("h3", {}, t("rank_findings")), D.ranks.length ? h("ul", { class: "plain" }, D.ranks.map((item) => h("li", {},
      `${item.step === null ? "" : `${t("step")} ${item.step}, `}${item.kind}: `, item.name ? [link({ v: "call", s: item.step, r: rankName(item.ranks[0]), c: callOfTensor(item.name) }, item.name), ": "] : "", said(item.sentence))))
      : h("p", {}, said(D.ranks_said))));
}

/** Return Cell -> unit -> its worst call. */
function matrixFields(units) {
  const found = new Map();
  for (const unit of units) {
    const [first, last] = D.units[unit].calls;
    for (let call = first; call < last; call++) {
      const cell = C.cell[call];
      if (!found.has(cell)) found.set(cell, new Map());
      const row = found.get(cell);
      const best = row.get(unit);
      if (best === undefined || C.state[call] > C.state[best] || (C.state[call] === C.state[best] && C.worst[call] > C.worst[best])) row.set(unit, call);
    }
  }
  return found;
}

function groupList(units, fields) {
  const groups = new Map();
  for (const unit of units) {
    const bad = [...fields].filter(([, row]) => row.has(unit) && C.state[row.get(unit)] > OK).map(([cell, row]) => [cell, row.get(unit)]);
    const key = bad.map(([cell, call]) => `${cell}:${C.state[call]}`).join();
    if (!groups.has(key)) groups.set(key, { ranks: [], bad });
    groups.get(key).ranks.push(rankName(D.units[unit].rank));
  }
  return h("ul", { class: "plain" }, [...groups.values()].sort((a, b) => b.ranks.length - a.ranks.length).map((group) => {
    const first = group.bad.map(([, call]) => call).sort((a, b) => C.state[b] - C.state[a] || C.index[a] - C.index[b])[0];
    return h("li", {}, h("strong", {}, t("group", spans(group.ranks))), ": ", first === undefined ? t("group_ok") : [badge(stateOf(first)), " ", callLink(first)]);
  }));
}

/** Return ranks as ranges: "0-3, 7". */
function spans(ranks) {
  const parts = [];
  for (const rank of ranks) {
    const last = parts[parts.length - 1];
    if (last && Number(rank) === Number(last[1]) + 1) last[1] = rank; else parts.push([rank, rank]);
  }
  return parts.map(([from, to]) => (from === to ? from : `${from}-${to}`)).join(", ");
}

function matrix(units, fields) {
  const weight = (row) => Math.max(...[...row.values()].map((call) => C.state[call] * 1e3 + heat(C.worst[call])));
  const ordered = [...fields].sort((a, b) => weight(b[1]) - weight(a[1])).slice(0, MOST_CELLS).sort((a, b) => C.index[[...a[1].values()][0]] - C.index[[...b[1].values()][0]]);
  const shown = units.slice(0, MOST_RANKS);
  const scale = D.two ? heat : normScale([...fields].flatMap(([, row]) => [...row.values()]));
  let first = true;
  const field = (unit, row, y, x) => {
    const call = row.get(unit);
    if (call === undefined) return h("td", { "data-at": `${y},${x}` }, D.units[unit].like >= 0 ? h("span", { title: t("left_out") }, "✓", h("span", { class: "hidden" }, t("left_out"))) : "-");
    const found = colour(stateOf(call) === "nan" ? 1 : scale(C.worst[call]), !D.two && stateOf(call) !== "nan");
    const made = h("td", {}, h("a", { href: "#" + address(callTarget(call)), tabindex: first ? "0" : "-1", "data-at": `${y},${x}`, class: "heat", style: { background: found.back, color: found.text },
      "aria-label": `${rankText(rankName(D.units[unit].rank))}: ${t(stateOf(call))} ${percent(C.worst[call])}` }, `${SYMBOLS[stateOf(call)]} ${percent(C.worst[call])}`));
    first = false;
    return made;
  };
  const table = h("table", { class: "matrix" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("cell")), shown.map((unit) => h("th", { scope: "col" }, rankText(rankName(D.units[unit].rank)))))),
    h("tbody", {}, ordered.map(([cell, row], y) => h("tr", {}, h("th", { scope: "row" }, D.tables.cells[cell] || t("outside")), shown.map((unit, x) => field(unit, row, y, x))))));
  table.addEventListener("keydown", (event) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const at = event.target.dataset.at;
    if (!at || !(event.key in moves)) return;
    event.preventDefault();
    const [y, x] = at.split(",").map(Number);
    const next = table.querySelector(`a[data-at="${y + moves[event.key][0]},${x + moves[event.key][1]}"]`);
    if (next) { event.target.tabIndex = -1; next.tabIndex = 0; next.focus(); }
  });
  return h("div", { class: "wide" }, table, fields.size > MOST_CELLS ? h("p", { class: "quiet" }, t("matrix_cut", MOST_CELLS, fields.size)) : null);
}
