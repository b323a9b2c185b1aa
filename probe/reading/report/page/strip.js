// The strip: all calls of one step and rank in the order of execution, as bars on a canvas.

const STRIP_HEIGHT = 64;

/** Return the strip of a unit. It is a slider: arrow keys move over the calls. */
function makeStrip(unit, selected, choose) {
  const [first, last] = D.units[unit].calls;
  const count = Math.max(last - first, 1);
  const canvas = h("canvas", { height: STRIP_HEIGHT });
  const note = h("p", { class: "strip-note" });
  const box = h("div", {
    class: "strip", role: "slider", tabindex: "0", "aria-label": t("strip"), "aria-valuemin": "0",
    "aria-valuemax": String(count - 1),
  }, canvas);
  let at = Math.min(Math.max(selected - first, 0), count - 1);

  function say() {
    if (last <= first) return;
    const call = first + at;
    const text = `${at + 1} / ${count}: ${nameOf(call)} · ${t(stateOf(call))}${C.worst[call] >= 0 ? ` · ${percent(C.worst[call])}` : ""}`;
    note.textContent = text;
    box.setAttribute("aria-valuenow", String(at));
    box.setAttribute("aria-valuetext", text.slice(0, 300));
  }
  function move(place) {
    at = Math.min(Math.max(place, 0), count - 1);
    say();
    paint();
  }
  function paint() {
    paintStrip(canvas, first, last, at);
  }
  const placeOf = (event) => Math.floor(((event.clientX - box.getBoundingClientRect().left) / box.clientWidth) * count);
  box.addEventListener("pointermove", (event) => move(placeOf(event)));
  box.addEventListener("click", (event) => { move(placeOf(event)); choose(first + at); });
  box.addEventListener("keydown", (event) => {
    const far = event.shiftKey ? Math.ceil(count / 20) : 1;
    const places = { ArrowLeft: at - far, ArrowRight: at + far, ArrowDown: at - far, ArrowUp: at + far, Home: 0, End: count - 1 };
    if (event.key in places) move(places[event.key]);
    else if (event.key === "Enter" && last > first) choose(first + at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  new ResizeObserver(paint).observe(box);
  say();
  return h("section", { class: "strip-box" }, box, note, h("p", { class: "quiet" }, t(D.two ? "strip_help" : "strip_help_one")));
}

function paintStrip(canvas, first, last, at) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(1, Math.round(canvas.parentElement.clientWidth * ratio));
  const height = Math.round(STRIP_HEIGHT * ratio);
  canvas.width = width;
  canvas.height = height;
  const count = last - first;
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(canvas);
  const scale = D.two ? heat : normScale(range(first, last));
  const columns = Math.min(width, count);
  const marks = [];
  for (let column = 0; column < columns; column++) {
    const from = first + Math.floor((column * count) / columns);
    const to = Math.max(from + 1, first + Math.floor(((column + 1) * count) / columns));
    let value = 0, worst = 0;
    for (let call = from; call < to; call++) {
      value = Math.max(value, scale(C.worst[call]));
      worst = Math.max(worst, C.state[call]);
    }
    const x = (column * width) / columns;
    const state = D.states[worst];
    const missing = state === "only_a" || state === "only_b";
    pen.fillStyle = missing ? style.getPropertyValue("--only") : colour(state === "nan" ? 1 : value, !D.two && state !== "nan").back;
    const tall = missing ? height * 0.3 : Math.max(value * (height - 14 * ratio), 2 * ratio);
    pen.fillRect(x, height - tall, Math.max(width / columns - (width / columns > 6 ? 1 : 0), 1), tall);
    if (state === "origin" || (state === "nan" && marks.length < 500)) marks.push([x + width / columns / 2, SYMBOLS[state]]);
  }
  pen.fillStyle = style.color;
  pen.textAlign = "center";
  pen.font = `${12 * ratio}px sans-serif`;
  for (const [x, symbol] of marks) pen.fillText(symbol, Math.min(Math.max(x, 6 * ratio), width - 6 * ratio), 11 * ratio);
  pen.fillRect(((at + 0.5) * width) / Math.max(count, 1) - ratio, 0, 2 * ratio, height);
}

function* range(first, last) {
  for (let place = first; place < last; place++) yield place;
}
