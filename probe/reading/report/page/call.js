// One call: its values in A and in B, its code, the calls before and after it, and itself elsewhere.

function callView(view) {
  if (state.c === null && D.origins.length) remember(originTarget(D.origins[0]));
  const number = state.c === null ? -1 : D.tables.names.indexOf(state.c);
  const call = findCall(chosenUnit(), number, state.x === "a");
  if (call < 0) {
    put(view, h("p", {}, t(state.c === null ? "choose_call" : "no_call")), state.c === null ? null : h("p", { class: "name" }, state.c),
      number >= 0 ? sameCall(number) : null);
    return;
  }
  current = call;
  const name_a = C.name_a[call] >= 0 ? D.tables.names[C.name_a[call]] : null;
  const how = D.tables.hows[C.how[call]];
  const origin = originOf(call);
  put(view,
    h("p", { class: "name large" }, nameOf(call)),
    h("p", {}, badge(stateOf(call)), " ", cellOf(call) ? link({ v: "tree", s: state.s, r: state.r, cell: cellOf(call) }, t("in_cell", cellOf(call))) : t("outside"),
      how ? ` · ${t("paired_by", how)}` : "", name_a ? ` · ${t("name_in_a", name_a)}` : "", D.notes[call] ? ` · ${said(D.notes[call])}` : ""),
    origin ? originCard(origin, "", false, true, stateOf(call)) : h("p", { class: "actions" }, h("button", { onclick: () => copy(callText(call)) }, t("copy"))),
    valueTables(call), D.two ? h("p", { class: "quiet" }, t("bounds")) : null,
    h("div", { class: "pair" }, stackCard(call), usersCard(call)),
    histograms(call), sameCall(C.name[call]), overSteps(call));
}

function originOf(call) {
  if (!["origin", "independent", "nan"].includes(stateOf(call))) return null;
  const unit = D.units[C.unit[call]];
  return D.origins.find((item) => item.name === nameOf(call) && item.step === unit.step && [item.rank, ...item.ranks].map(rankName).includes(rankName(unit.rank))) || null;
}

const valueOf = (row, side) => (R["type_" + side][row] >= 0 ? D.tables.types[R["type_" + side][row]] : R["value_" + side][row] >= 0 ? D.tables.values[R["value_" + side][row]] : "-");

/** Return the values of a call: outputs first, then inputs and arguments; arguments that agree in A and B are folded. */
function valueTables(call) {
  const rows = [...range(C.first[call], C.first[call + 1])];
  const outputs = rows.filter((row) => D.isOutput[R.place[row]]);
  const inputs = rows.filter((row) => !D.isOutput[R.place[row]]);
  const folded = D.two ? inputs.filter(isAgreedArgument) : [];
  const open = inputs.filter((row) => !folded.includes(row));
  const title = folded.length === 1 ? t("agreed_one") : t("agreed", folded.length);
  return [
    outputs.length ? [h("h3", {}, t("outputs")), valueTable(call, outputs, t("outputs"))] : null,
    open.length ? [h("h3", {}, t("inputs")), valueTable(call, open, t("inputs"))] : null,
    folded.length ? h("details", { class: "card", id: "agreed" }, h("summary", {}, title), valueTable(call, folded, title)) : null,
  ];
}

/** Return whether a place holds an argument that is no tensor, with one value in A and B. */
function isAgreedArgument(row) {
  return R.type_a[row] < 0 && R.type_b[row] < 0 && R.value_a[row] === R.value_b[row] && D.verdicts[R.verdict[row]] !== "argument";
}

/** Return a table of some places of a call: each has a line for A and one for B. */
function valueTable(call, rows, label) {
  const sides = D.two ? ["a", "b"] : ["b"];
  const head = [t("place"), ...(D.two ? [t("verdict"), "rel_l2", "max_abs", t("side")] : []), t("dtype"), "Max", "Min", "Mean", "Norm"];
  const groups = rows.map((row) => {
    const verdict = D.verdicts[R.verdict[row]];
    const rel = numberAt(R.rel, row);
    const bound = R.exact[row] || !rel ? "" : "≥ ";
    const span = { rowspan: String(sides.length) };
    return h("tbody", {}, sides.map((side, line) => h("tr", { class: `side-${side}` },
      line ? null : h("th", { scope: "rowgroup", ...span }, D.tables.places[R.place[row]], h("span", { class: "maker" }, producerText(call, row))),
      line || !D.two ? null : [h("td", span, verdictBadge(verdict)), h("td", span, rel === null ? "-" : h("span", { class: "heat", style: chipStyle(heat(rel)) }, bound + digits(rel, 3))),
        h("td", span, numberAt(R.abs, row) === null ? "-" : bound + digits(numberAt(R.abs, row), 3))],
      D.two ? h("td", {}, side.toUpperCase()) : null, h("td", {}, valueOf(row, side)),
      ["Max", "Min", "Mean", "Norm"].map((key) => numberCell(row, key, side)))));
  });
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": label }, h("table", { class: "values" }, h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text)))), groups));
}

function numberCell(row, key, side) {
  const value = numberAt(R[`${key}_${side}`], row);
  const other = D.two ? numberAt(R[`${key}_${side === "a" ? "b" : "a"}`], row) : value;
  const odd = typeof value === "number" && !Number.isFinite(value);
  return h("td", { class: `number${odd ? " odd" : ""}${D.two && !Object.is(value, other) ? " other" : ""}` }, odd ? `✕ ${digits(value)}` : digits(value));
}

function verdictBadge(verdict) {
  const bad = ["differs", "shape", "one side", "argument"].includes(verdict);
  return h("span", { class: bad ? "badge state-carried" : "badge" }, bad ? "≠ " : verdict ? "✓ " : "", verdict || "-");
}

function producerText(call, row) {
  const made = producerOf(call, row);
  if (made >= 0) return ["← ", callLink(made)];
  return D.isOutput[R.place[row]] || (R.type_b[row] < 0 && R.type_a[row] < 0) ? "" : `← ${t("from_outside")}`;
}

function stackCard(call) {
  const frames = C.stack[call] < 0 ? [] : D.stacks[C.stack[call]].map((number) => D.frames[number]);
  const line = (frame) => h("li", { class: frame[4] ? "own" : "" }, h("span", { class: "quiet" }, `${frame[0]}:${frame[1]} ${frame[2]}`), frame[3] ? [h("br"), h("code", {}, frame[3])] : null);
  const own = frames.find((frame) => frame[4]) || frames[0];
  return h("section", { class: "card" }, h("h3", {}, t("stack")), own ? h("ul", { class: "plain" }, line(own)) : h("p", { class: "quiet" }, t("none")),
    frames.length > 1 ? h("details", {}, h("summary", {}, `${t("stack_rest")} (${frames.length})`), h("ol", { class: "plain" }, frames.map(line))) : null);
}

function usersCard(call) {
  const users = usersOf(call);
  const makers = [...new Set([...range(C.first[call], C.first[call + 1])].map((row) => producerOf(call, row)).filter((other) => other >= 0))];
  const list = (calls) => (calls.length ? h("ul", { class: "plain" }, calls.slice(0, 30).map((other) => h("li", {}, badge(stateOf(other), true), " ", callLink(other)))) : h("p", { class: "quiet" }, t("none")));
  return h("section", { class: "card flow" }, h("h3", {}, t("producer")), h("div", { id: "producers" }, list(makers)), h("h3", {}, t("users")), h("div", { id: "users" }, list(users)));
}

/** Return a table of steps and ranks with the state of one call in each. */
function sameCall(number) {
  if (D.units.length < 2) return null;
  const ranks = D.rankNames.slice(0, 64);
  const field = (step, rank) => {
    const unit = unitOf(step, rank);
    const other = findCall(unit, number);
    if (other < 0) return h("td", {}, unit >= 0 && D.units[unit].like >= 0 ? h("span", { title: t("left_out") }, "✓", h("span", { class: "hidden" }, t("left_out"))) : "-");
    return h("td", { class: other === current ? "here" : null }, h("a", { href: "#" + address(callTarget(other)), "aria-current": other === current ? "true" : null, "aria-label": `${t("step")} ${step}, ${rankText(rank)}: ${t(stateOf(other))} ${percent(C.worst[other])}` },
      h("span", { class: "heat", style: D.two ? chipStyle(heat(C.worst[other])) : {} }, `${SYMBOLS[stateOf(other)]} ${percent(C.worst[other])}`)));
  };
  return h("section", { class: "card" }, h("h3", {}, t("same_call")), h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": t("same_call") }, h("table", { class: "matrix" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("step")), ranks.map((rank) => h("th", { scope: "col" }, rankText(rank))))),
    h("tbody", {}, D.steps.slice(0, 200).map((step) => h("tr", {}, h("th", { scope: "row" }, String(step)), ranks.map((rank) => field(step, rank))))))));
}

function overSteps(call) {
  if (D.steps.length < 2) return null;
  return makeLines(t("over_steps"), stepSeries(C.name[call], rankName(D.units[C.unit[call]].rank)));
}

/** Return the norm of a call's last output over the steps, in A and in B. */
function stepSeries(number, rank) {
  const found = { a: new Map(), b: new Map() };
  for (const step of D.steps) {
    const other = findCall(unitOf(step, rank), number);
    for (const side of ["a", "b"]) {
      const value = other < 0 ? null : lastNorm(other, side);
      if (value !== null) found[side].set(step, value);
    }
  }
  return (D.two ? ["a", "b"] : ["b"]).map((side) => ({ label: D.two ? side.toUpperCase() : rankText(rank), dash: side === "a" ? [6, 4] : null, values: found[side] }));
}

/** Return pictures of how the errors of the worst arrays are spread. */
function histograms(call) {
  const found = [];
  for (let row = C.first[call]; row < C.first[call + 1]; row++) {
    const counts = D.histograms[row];
    if (!counts) continue;
    const most = Math.max(...counts, 1);
    const near = digits(10 ** (-12 + (counts.indexOf(most) + 0.5) / 2), 2);
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 240 60");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", t("histogram_text", near));
    counts.forEach((count, place) => {
      const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      const tall = count ? Math.max((56 * count) / most, 1) : 0;
      for (const [key, value] of Object.entries({ x: place * 10, y: 58 - tall, width: 9, height: tall })) bar.setAttribute(key, value);
      svg.append(bar);
    });
    found.push(h("figure", { class: "histogram" }, h("figcaption", {}, D.tables.places[R.place[row]]), svg, h("p", { class: "quiet ends" }, h("span", {}, "1e-12"), h("span", {}, "1e-6"), h("span", {}, "1"))));
  }
  return found.length ? h("section", { class: "card" }, h("h3", {}, t("histogram")), h("div", { class: "pair" }, found)) : null;
}

function callText(call) {
  const lines = [`${stepText(D.units[C.unit[call]])}: ${nameOf(call)}${cellOf(call) ? ` ${t("in_cell", cellOf(call))}` : ""}: ${t(stateOf(call))}`];
  for (let row = C.first[call]; row < C.first[call + 1]; row++) {
    const rel = numberAt(R.rel, row);
    lines.push(`${D.tables.places[R.place[row]]}: ${D.two ? `A ${valueOf(row, "a")}, B ${valueOf(row, "b")}` : valueOf(row, "b")}${rel ? `, rel_l2 ${R.exact[row] ? "" : ">= "}${digits(rel, 3)}` : ""}`);
  }
  const frame = C.stack[call] < 0 ? null : D.stacks[C.stack[call]].map((number) => D.frames[number]).find((item) => item[4]);
  return [...lines, frame ? `${placeText(frame)}${frame[3] ? `: ${frame[3]}` : ""}` : ""].filter(Boolean).join("\n");
}
