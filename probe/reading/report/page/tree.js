// The tree of Cells, each with its worst call, beside the strip of all calls.

/** Return the Cells of a unit: label -> {label, parent, children, state, worst, calls, origins}. */
function cellTree(unit) {
  const found = new Map();
  const root = { label: null, children: [], state: 0, worst: -1, calls: [], origins: 0, total: 0 };
  function cell(label, depth) {
    if (label === "" && !found.has("")) {
      found.set("", { label, parent: root, children: [], state: 0, worst: -1, calls: [], origins: 0, total: 0 });
      root.children.push(found.get(""));
    }
    if (found.has(label)) return found.get(label);
    const above = D.parents[label] && D.parents[label] !== label && depth < 200 ? cell(D.parents[label], depth + 1) : root;
    const made = { label, parent: above, children: [], state: 0, worst: -1, calls: [], origins: 0, total: 0 };
    found.set(label, made);
    above.children.push(made);
    return made;
  }
  const origin = D.states.indexOf("origin");
  const [first, last] = D.units[unit].calls;
  for (let call = first; call < last; call++) {
    let at = cell(cellOf(call), 0);
    at.calls.push(call);
    for (; at; at = at.parent) {
      at.state = Math.max(at.state, C.state[call]);
      at.worst = Math.max(at.worst, C.worst[call]);
      at.origins += C.state[call] === origin ? 1 : 0;
      at.total += 1;
    }
  }
  return { root, found };
}

function treeView(view) {
  const unit = chosenUnit();
  const { root, found } = cellTree(unit);
  const side = h("section", { class: "cell-calls", "aria-label": t("calls") });
  const open = new Set(["null"]);
  let chosen = state.cell !== null && found.has(state.cell) ? found.get(state.cell) : null;
  const worst = callsWith("origin").find((call) => C.unit[call] === unit);
  if (!chosen && worst !== undefined) chosen = found.get(cellOf(worst));
  for (let at = chosen; at; at = at.parent) open.add(String(at.label));
  root.children.forEach((child) => { if (root.children.length < 4) open.add(String(child.label)); });
  const list = h("ul", { class: "tree", role: "tree", "aria-label": t("tree_of") });
  const scale = D.two ? heat : normScale(range(...D.units[unit].calls));

  function choose(cell, focus) {
    chosen = cell;
    paint(focus);
    remember({ cell: cell.label });
  }
  function paint(focus) {
    list.replaceChildren(...[root].map((cell) => item(cell, 1)));
    if (focus) list.querySelector("[tabindex='0']").focus();
    cellCalls(side, chosen);
  }
  function item(cell, level) {
    const isOpen = open.has(String(cell.label));
    const value = colour(scale(cell.worst), !D.two);
    return h("li", { role: "none" },
      h("div", {
        class: "cell", role: "treeitem", "aria-level": String(level), "aria-expanded": cell.children.length ? String(isOpen) : null,
        "aria-selected": String(cell === (chosen || root)), tabindex: cell === (chosen || root) ? "0" : "-1", title: cell.label || null,
        onclick: (event) => { if (event.target.closest(".twig") || cell === chosen) toggle(cell); choose(cell, true); }, onkeydown: (event) => keys(event, cell),
      },
      h("span", { class: "twig", "aria-hidden": "true" }, cell.children.length ? (isOpen ? "▾" : "▸") : ""),
      h("span", { class: "chip", style: { background: value.back, color: value.text } }, SYMBOLS[D.states[cell.state]], h("span", { class: "hidden" }, t(D.states[cell.state]))),
      h("span", { class: "label" }, shortLabel(cell)), h("span", { class: "quiet" }, cell.worst >= 0 ? ` ${percent(cell.worst)}` : "", cell.origins ? ` ★${cell.origins}` : "", ` (${cell.total})`)),
      isOpen && cell.children.length ? h("ul", { role: "group" }, cell.children.map((child) => item(child, level + 1))) : null);
  }
  function toggle(cell) {
    const key = String(cell.label);
    if (open.has(key)) open.delete(key); else open.add(key);
  }
  function keys(event, cell) {
    const items = [...list.querySelectorAll("[role='treeitem']")];
    const place = items.indexOf(event.currentTarget);
    const isOpen = open.has(String(cell.label));
    const steps = { ArrowDown: place + 1, j: place + 1, ArrowUp: place - 1, k: place - 1, Home: 0, End: items.length - 1 };
    if (event.key in steps) { if (items[steps[event.key]]) items[steps[event.key]].click(); }
    else if (event.key === "ArrowRight" && cell.children.length) { if (isOpen) choose(cell.children[0], true); else { toggle(cell); paint(true); } }
    else if (event.key === "ArrowLeft") { if (isOpen && cell.children.length) { toggle(cell); paint(true); } else if (cell.parent) choose(cell.parent, true); }
    else if (event.key === "Enter") { const target = side.querySelector("a"); if (target) target.focus(); }
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  put(view, makeStrip(unit, worst === undefined ? 0 : worst, (call) => go(callTarget(call))),
    h("div", { class: "pair tree-pair" }, h("section", { class: "card" }, h("h3", {}, t("tree_of")), list), side));
  paint(false);
}

/** Return the label of a Cell without that of the Cell around it. */
function shortLabel(cell) {
  if (cell.label === null) return t("model");
  if (cell.label === "") return t("outside");
  const above = cell.parent && cell.parent.label ? cell.parent.label.replace(/\.[^.]*$/, "") + "." : "";
  return above && cell.label.startsWith(above) ? cell.label.slice(above.length) : cell.label;
}

function cellCalls(side, cell) {
  side.replaceChildren(h("h3", {}, cell && cell.label !== null ? t("calls_in", cell.label || t("outside")) : t("calls")));
  if (!cell || cell.label === null) { side.append(h("p", { class: "quiet" }, t("choose_cell"))); return; }
  side.append(h("ol", { class: "plain" }, cell.calls.slice(0, 200).map((call) => h("li", {}, badge(stateOf(call), true), " ", callLink(call),
    h("span", { class: "quiet" }, C.worst[call] >= 0 ? ` ${percent(C.worst[call])}` : "")))));
  if (cell.calls.length > 200) side.append(h("p", {}, link({ v: "calls", q: cell.label }, t("rows_found", 200, cell.calls.length))));
}
