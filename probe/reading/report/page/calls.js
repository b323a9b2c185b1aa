// The table of calls: search, filter, sort.

function callsView(view) {
  const every = state.all === "1";
  const unit = D.units[chosenUnit()];
  const [first, last] = every ? [0, C.name.length] : unit.calls;
  const search = h("input", { type: "search", id: "search", "aria-label": t("search"), placeholder: t("search"), autocomplete: "off", spellcheck: "false" });
  search.value = state.q || "";
  const filter = h("select", { "aria-label": t("state") }, ["", "differing", ...[...D.states].reverse()].map((name) =>
    h("option", { value: name, selected: (state.f || "") === name }, name ? t(name) : `${t("state")}: ${t("all")}`)));
  const scope = h("select", { "aria-label": t("scope") }, ["", "1"].map((value) =>
    h("option", { value, selected: (state.all || "") === value }, `${t("scope")}: ${t(value ? "every_unit" : "this_unit")}`)));
  const place = h("div", { class: "table-place" });
  const count = h("p", { class: "quiet", role: "status" });
  let sort = state.o ? { key: state.o.replace(/^-/, ""), down: state.o.startsWith("-") } : null;

  function update() {
    const rows = sortCalls(filterCalls(first, last, search.value, filter.value), sort);
    count.textContent = t("rows_found", rows.length, last - first);
    const table = makeTable({
      label: t("calls"), columns: callColumns(every), rows, cell: callCell, choose: (call) => go(callTarget(call)), sort, onSort: (key) => {
        sort = sort && sort.key === key ? (sort.down ? null : { key, down: true }) : { key, down: key === "rel" ? true : false };
        if (sort && sort.key === "rel" && !sort.down) sort = null;
        remember({ o: sort ? (sort.down ? "-" : "") + sort.key : null });
        update();
        const button = place.querySelectorAll(".sort")[callColumns(every).findIndex((column) => column.key === key)];
        if (button) button.focus();
      },
    });
    place.replaceChildren(table.element);
    table.paint();
  }
  let timer = 0;
  search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => { remember({ q: search.value || null }); update(); }, 60); });
  search.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); update(); place.querySelector(".scroller").focus(); } });
  filter.addEventListener("change", () => { remember({ f: filter.value || null }); update(); });
  scope.addEventListener("change", () => go({ ...state, all: scope.value || null }));
  put(view, h("div", { class: "tools" }, search, filter, scope, count), place);
  update();
}

function callColumns(every) {
  return [
    { key: "number", title: t("number"), width: "4.5em" },
    ...(every ? [{ key: "step", title: t("step"), width: "4em" }, { key: "rank", title: t("rank"), width: "4em" }] : []),
    { key: "state", title: t("state"), width: "minmax(11.5em, 1fr)" }, { key: "name", title: t("name"), width: "minmax(16em, 3fr)" },
    { key: "cell", title: t("cell"), width: "minmax(8em, 2fr)" }, { key: "rel", title: t(D.two ? "rel" : "out_norm"), width: D.two ? "9.5em" : "12em" },
    { key: "type", title: t("type"), width: "minmax(9em, 1.3fr)" },
  ];
}

function callCell(call, key) {
  if (key === "number") return C.index[call] + 1;
  if (key === "step") return String(D.units[C.unit[call]].step);
  if (key === "rank") return rankName(D.units[C.unit[call]].rank);
  if (key === "state") return badge(stateOf(call));
  if (key === "name") return h("a", { href: "#" + address(callTarget(call)), tabindex: "-1" }, nameOf(call));
  if (key === "cell") return cellOf(call);
  if (key === "rel") {
    const value = C.worst[call];
    return D.two && value > 0 ? h("span", { class: "heat", style: chipStyle(heat(value)) }, percent(value)) : percent(value);
  }
  return firstOutput(call);
}

function chipStyle(value) {
  const found = colour(value);
  return { background: found.back, color: found.text };
}

function firstOutput(call) {
  for (let row = C.first[call]; row < C.first[call + 1]; row++) {
    if (D.isOutput[R.place[row]]) {
      const type = R.type_b[row] >= 0 ? R.type_b[row] : R.type_a[row];
      if (type >= 0) return D.tables.types[type];
    }
  }
  return "";
}

function filterCalls(first, last, text, wanted) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (texts) => words.map((word) => texts.map((item) => item.toLowerCase().includes(word)));
  const names = fits(D.tables.names), cells = fits(D.tables.cells);
  const state = D.states.indexOf(wanted);
  const found = [];
  for (let call = first; call < last; call++) {
    if (wanted === "differing" ? C.state[call] === OK : state >= 0 && C.state[call] !== state) continue;
    if (words.every((_, word) => names[word][C.name[call]] || cells[word][C.cell[call]])) found.push(call);
  }
  return found;
}

function sortCalls(calls, sort) {
  if (!sort) return calls;
  const ranked = (texts) => { const order = [...texts.keys()].sort((a, b) => (texts[a] < texts[b] ? -1 : 1)); const rank = []; order.forEach((number, place) => { rank[number] = place; }); return rank; };
  const keys = {
    number: (call) => C.index[call], step: (call) => D.units[C.unit[call]].step, rank: (call) => Number(D.units[C.unit[call]].rank) || 0,
    state: (call) => C.state[call], rel: (call) => C.worst[call], type: (call) => firstOutput(call).length,
  };
  if (sort.key === "name" || sort.key === "cell") {
    const rank = ranked(D.tables[sort.key + "s"]);
    keys[sort.key] = (call) => rank[C[sort.key][call]];
  }
  const key = keys[sort.key] || keys.number;
  const values = new Map(calls.map((call) => [call, key(call)]));
  const sign = sort.down ? -1 : 1;
  return calls.sort((a, b) => sign * (values.get(a) - values.get(b)) || a - b);
}
