// A table of any length: only the rows that are seen are in the document.

const ROW_HEIGHT = 28;
const HEAD_HEIGHT = 34;
const MOST_PIXELS = 8e6;

/**
 * Return a virtual table.
 * columns: [{key, title, width, sortable}]; rows: calls; cell(call, key): the content; choose(call): opens one.
 */
function makeTable({ label, columns, rows, cell, choose, sort, onSort }) {
  const body = h("div", { class: "rows", role: "presentation" });
  const space = h("div", { class: "space", role: "rowgroup" }, body);
  const template = columns.map((column) => column.width).join(" ");
  const head = h("div", { class: "row head", role: "row", "aria-rowindex": "1" },
    columns.map((column, place) => h("div", {
      role: "columnheader", "aria-colindex": String(place + 1),
      "aria-sort": sort && sort.key === column.key ? (sort.down ? "descending" : "ascending") : null,
    }, onSort ? h("button", { class: "sort", onclick: () => onSort(column.key) }, column.title,
      sort && sort.key === column.key ? (sort.down ? " ▼" : " ▲") : "") : column.title)));
  const scroller = h("div", {
    class: "scroller", role: "grid", tabindex: "0", "aria-label": label, "aria-rowcount": String(rows.length + 1), "aria-colcount": String(columns.length),
  }, h("div", { role: "rowgroup", class: "top" }, head), space);
  const whole = Math.min(rows.length * ROW_HEIGHT, MOST_PIXELS);
  scroller.style.setProperty("--columns", template);
  space.style.height = `${whole}px`;
  let at = 0, wanted = false;

  const seen = () => Math.max(scroller.clientHeight - HEAD_HEIGHT, 0);
  const topRow = () => {
    const room = Math.max(whole - seen(), 1);
    const most = Math.max(rows.length - Math.floor(seen() / ROW_HEIGHT), 0);
    return rows.length * ROW_HEIGHT <= MOST_PIXELS ? Math.floor(scroller.scrollTop / ROW_HEIGHT) : Math.round((scroller.scrollTop / room) * most);
  };
  const skeleton = h("div", { class: "row", role: "row" }, columns.map((_, number) => h("div", { role: "gridcell", "aria-colindex": String(number + 1) })));
  function rowAt(place) {
    const row = skeleton.cloneNode(true);
    row.id = `row-${place}`;
    row.dataset.place = place;
    row.setAttribute("aria-rowindex", place + 2);
    row.setAttribute("aria-selected", place === at);
    if (place === at) row.classList.add("chosen");
    columns.forEach((column, number) => {
      const content = cell(rows[place], column.key);
      if (content instanceof Node) row.children[number].append(content); else row.children[number].textContent = content;
    });
    return row;
  }
  function paint() {
    wanted = false;
    performance.mark("probe-paint-start");
    const first = Math.max(topRow() - 3, 0);
    const last = Math.min(first + Math.ceil((seen() || 600) / ROW_HEIGHT) + 6, rows.length);
    const made = [];
    for (let place = first; place < last; place++) made.push(rowAt(place));
    const exact = rows.length * ROW_HEIGHT <= MOST_PIXELS;
    body.style.transform = `translateY(${exact ? first * ROW_HEIGHT : Math.max(scroller.scrollTop - Math.min(topRow(), 3) * ROW_HEIGHT, 0)}px)`;
    body.replaceChildren(...made);
    if (at >= first && at < last) scroller.setAttribute("aria-activedescendant", `row-${at}`);
    else scroller.removeAttribute("aria-activedescendant");
    performance.measure("probe-paint", "probe-paint-start");
  }
  const soon = () => { if (!wanted) { wanted = true; requestAnimationFrame(paint); } };
  function show(place) {
    at = Math.min(Math.max(place, 0), rows.length - 1);
    if (rows.length * ROW_HEIGHT > MOST_PIXELS) {
      scroller.scrollTop = (at / rows.length) * (whole - seen());
    } else if (at * ROW_HEIGHT < scroller.scrollTop) scroller.scrollTop = at * ROW_HEIGHT;
    else if ((at + 1) * ROW_HEIGHT > scroller.scrollTop + seen()) scroller.scrollTop = (at + 1) * ROW_HEIGHT - seen();
    paint();
  }
  scroller.addEventListener("scroll", soon, { passive: true });
  scroller.addEventListener("click", (event) => {
    const row = event.target.closest("[data-place]");
    if (row && !event.target.closest("a")) { at = Number(row.dataset.place); paint(); choose(rows[at]); }
  });
  scroller.addEventListener("keydown", (event) => {
    const page = Math.floor(seen() / ROW_HEIGHT) - 1;
    const places = {
      ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: rows.length - 1,
    };
    if (event.ctrlKey || event.altKey || event.metaKey || !rows.length) return;
    if (event.key in places) show(places[event.key]);
    else if (event.key === "Enter" && event.target === scroller) choose(rows[at]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  new ResizeObserver(soon).observe(scroller);
  return { element: scroller, show, paint };
}
