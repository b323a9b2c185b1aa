// Elements, numbers and colours. Every text of a dump goes through textContent.

const SYMBOLS = {
  ok: "✓", unknown: "?", close_to_overflow: "△", carried: "→", only_a: "A", only_b: "B", argument: "≠", grown: "▲",
  nan: "✕", origin: "★", independent: "☆", consequence: "↳", finding: "!",
};

/** Make an element. Attributes that begin with "on" are listeners; null leaves one out. */
function h(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "style") Object.assign(made.style, value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  return put(made, ...children);
}

/** Add children to an element: elements, or texts, which stay texts; null is left out. */
function put(element, ...children) {
  for (const child of children.flat(9)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Return a number with six digits. */
function digits(value, count = 6) {
  if (value === null || value === undefined) return "-";
  if (typeof value !== "number") return String(value);
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "Inf" : "-Inf";
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e6)) return value.toExponential(count - 1).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(count)));
}

const percent = (value) => (value < 0 ? "-" : digits(value, 3));

/** Return where a difference lies between none and all, from 0 to 1. */
function heat(value) {
  if (!(value > 0)) return value === value ? 0 : 1;
  return Math.min(1, Math.max(0.04, (Math.log10(value) + 8) / 8));
}

/** Return where the norms of a run lie: the logarithms between the least and the greatest. */
function normScale(calls) {
  let low = Infinity, high = -Infinity;
  for (const call of calls) {
    const value = C.worst[call];
    if (value > 0 && value < Infinity) { low = Math.min(low, value); high = Math.max(high, value); }
  }
  const width = Math.log10(high / low) || 1;
  return (value) => (value > 0 ? (value < Infinity ? 0.1 + (0.6 * Math.log10(value / low)) / width : 1) : 0);
}

const isDark = () => getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";

const RAMPS = [
  [[255, 255, 255], [253, 196, 120], [226, 101, 32], [122, 10, 10]],
  [[36, 40, 46], [110, 72, 30], [226, 120, 40], [255, 205, 190]],
];
const BLUES = [[[238, 242, 248], [150, 180, 220], [60, 110, 180], [20, 50, 110]], [[36, 40, 46], [40, 70, 110], [70, 120, 190], [170, 205, 250]]];

/** Return the colour of a value from 0 to 1: differences in red, norms in blue. */
function colour(value, norms = false) {
  const ramp = (norms ? BLUES : RAMPS)[isDark() ? 1 : 0];
  const at = Math.min(value, 0.9999) * (ramp.length - 1);
  const [a, b] = [ramp[Math.floor(at)], ramp[Math.floor(at) + 1]];
  const mixed = a.map((part, place) => Math.round(part + (b[place] - part) * (at % 1)));
  const light = mixed.map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  const luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2];
  return { back: `rgb(${mixed.join(",")})`, text: luminance > 0.18 ? "#000" : "#fff" };
}

/** Return the sign and the word of a state; colour is never alone. */
function badge(state, short = false) {
  return h("span", { class: `badge state-${state}`, title: short ? t(state) : null },
    h("span", { class: "symbol", "aria-hidden": "true" }, SYMBOLS[state]), short ? h("span", { class: "hidden" }, t(state)) : ` ${t(state)}`);
}

/** Return a link to a view. */
function link(target, ...children) {
  return h("a", { href: "#" + address(target) }, ...children);
}

function callTarget(call, view = "call") {
  const unit = D.units[C.unit[call]];
  return { v: view, s: unit.step, r: rankName(unit.rank), c: nameOf(call), x: stateOf(call) === "only_a" ? "a" : null };
}

function callLink(call) {
  return link(callTarget(call), nameOf(call));
}

/** Copy a text; without the clipboard of secure pages, from a text field. */
async function copy(text) {
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch (_) {
    const field = h("textarea", { class: "hidden" });
    field.value = text;
    document.body.append(field);
    field.select();
    done = document.execCommand("copy");
    field.remove();
  }
  if (done) announce(t("copied"));
}

function announce(text) {
  document.getElementById("status").textContent = text;
}

const ranksText = (ranks) => (ranks.length > 6 ? `${ranks.slice(0, 5).join(", ")}, ... (${ranks.length})` : ranks.join(", "));

/** Return the name of a rank; without a communicator there is one process, and it has no number. */
const rankText = (rank) => (rank === "-" ? t("one_process") : `${t("rank")} ${rank}`);

const stepText = (item) => [item.step === null ? "" : `${t("step")} ${item.step}`, item.rank === null ? "" : `${t("rank")} ${item.rank}`].filter(Boolean).join(", ");
