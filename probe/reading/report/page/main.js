// Where one is: the address after "#" says it, so that a link opens the same view again. Keys, theme and language.

const VIEWS = { overview: overviewView, tree: treeView, calls: callsView, call: callView, steps: stepsView, ranks: ranksView };
const KEYS = ["v", "s", "r", "c", "x", "q", "f", "o", "all", "cell"];
let state = {};
let current = -1;

/** Return the address of a view. */
function address(target) {
  const words = new URLSearchParams();
  for (const key of KEYS) if (target[key] !== null && target[key] !== undefined) words.set(key, target[key]);
  return words.toString();
}

/** Return the views of this page: rows of the monitor have no calls. */
const views = () => (D.units.length ? Object.keys(VIEWS) : ["overview", "steps"]);

function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  state = Object.fromEntries(KEYS.map((key) => [key, words.get(key)]));
  if (!views().includes(state.v)) state.v = "overview";
  const first = D.origins[0];
  if (!D.steps.map(String).includes(String(state.s))) state.s = String(first ? first.step : D.steps.length ? D.steps[0] : "");
  if (!D.rankNames.includes(state.r)) state.r = first && unitOf(state.s, rankName(first.rank)) >= 0 ? rankName(first.rank) : D.rankNames[0];
}

function go(target) {
  location.hash = address(target);
}

/** Keep a choice in the address without a new step in the history. */
function remember(values) {
  Object.assign(state, values);
  history.replaceState(null, "", "#" + address(state));
}

function chosenUnit() {
  return Math.max(unitOf(state.s, state.r), 0);
}

function picker(key, label, values) {
  return h("label", {}, `${label} `, h("select", { onchange: (event) => go({ ...state, [key]: event.target.value }) }, values.map((value) => h("option", { value, selected: String(state[key]) === String(value) }, value))));
}

function paintHeader() {
  document.getElementById("header").replaceChildren(
    h("h1", {}, t("title")),
    h("nav", { "aria-label": t("views") }, h("ul", {}, views().map((name) => h("li", {}, h("a", {
      href: "#" + address({ v: name, s: state.s, r: state.r, c: name === "call" || name === "steps" ? state.c : null }), "aria-current": state.v === name ? "page" : null,
    }, t(name)))))),
    h("div", { class: "tools" }, D.follow ? h("span", { class: "quiet" }, t("following", D.follow)) : null, D.steps.length ? picker("s", t("step"), D.steps.map(String)) : null, D.rankNames.length > 1 ? picker("r", t("rank"), D.rankNames) : null,
      h("button", { onclick: switchTheme }, t("theme")), h("button", { lang: language === "en" ? "zh" : "en", onclick: switchLanguage }, t("language")),
      h("button", { onclick: showHelp }, t("help")), h("button", { onclick: () => copy(location.href) }, t("copy_link"))));
}

/** Show what the address says. The heading gets the focus, so that a screen reader reads on from there. */
function paint(focus = true) {
  readAddress();
  current = -1;
  document.documentElement.lang = language;
  paintHeader();
  const view = document.getElementById("view");
  const heading = h("h2", { tabindex: "-1" }, t(state.v));
  view.className = `view-${state.v}`;
  view.replaceChildren(heading);
  VIEWS[state.v](view);
  if (focus) { heading.focus({ preventScroll: true }); window.scrollTo(0, 0); }
}

function switchTheme() {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  paint(false);
}

function switchLanguage() {
  language = language === "en" ? "zh" : "en";
  paint(false);
}

function showHelp() {
  const keys = { "1 - 6": "key_views", "/": "key_search", "j k": "key_rows", o: "key_origin", "[ ]": "key_step", ", .": "key_rank", p: "key_producer", u: "key_user", b: "key_back", y: "key_copy", t: "key_theme", "?": "key_help" };
  const box = document.getElementById("help");
  box.replaceChildren(h("h2", { id: "help-title" }, t("help")), h("dl", {}, Object.entries(keys).flatMap(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, t(text))])), h("button", { onclick: () => box.close() }, t("close")));
  box.showModal();
}

function neighbour(values, value, by) {
  return values[Math.min(Math.max(values.map(String).indexOf(String(value)) + by, 0), values.length - 1)];
}

function nextOrigin() {
  const calls = callsWith("origin", "independent");
  if (calls.length) go(callTarget(calls[(calls.indexOf(current) + 1) % calls.length]));
}

function nextCall(by) {
  if (!D.units.length) return;
  const unit = D.units[chosenUnit()].calls;
  if (current >= 0 && current + by >= unit[0] && current + by < unit[1]) go(callTarget(current + by));
}

function firstLink(id) {
  const found = document.querySelector(`#${id} a`);
  if (found) location.hash = found.getAttribute("href");
}

function copyHere() {
  if (current >= 0) copy(originOf(current) ? originText(originOf(current)) : callText(current));
  else copy(D.origins.length ? originText(D.origins[0]) : said(D.headline.text));
}

const ACTIONS = {
  o: nextOrigin, b: () => history.back(), t: switchTheme, "?": showHelp, y: copyHere, j: () => nextCall(1), k: () => nextCall(-1),
  p: () => firstLink("producers"), u: () => firstLink("users"),
  "[": () => go({ ...state, s: neighbour(D.steps, state.s, -1) }), "]": () => go({ ...state, s: neighbour(D.steps, state.s, 1) }),
  ",": () => go({ ...state, r: neighbour(D.rankNames, state.r, -1) }), ".": () => go({ ...state, r: neighbour(D.rankNames, state.r, 1) }),
  "/": () => { if (state.v !== "calls") { location.hash = address({ v: "calls", s: state.s, r: state.r }); paint(false); } document.getElementById("search").focus(); },
};

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || document.getElementById("help").open) return;
  const view = "123456".indexOf(event.key);
  if (view >= 0) go({ v: views()[view], s: state.s, r: state.r, c: state.c });
  else if (Object.keys(ACTIONS).includes(event.key)) ACTIONS[event.key]();
  else return;
  event.preventDefault();
}

async function start() {
  const status = document.getElementById("status");
  document.getElementById("old").remove();
  document.getElementById("app").hidden = false;
  status.textContent = t("loading");
  try {
    await load();
  } catch (error) {
    status.textContent = t("broken");
    throw error;
  }
  status.textContent = "";
  window.addEventListener("hashchange", () => paint());
  document.addEventListener("keydown", onKey);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paint(false));
  const at = recall();
  paint(false);
  window.scrollTo(0, at);
  if (D.follow) follow(D.follow);
  requestAnimationFrame(() => {
    performance.mark("probe-ready");
    document.documentElement.dataset.ready = "1";
  });
}

if (typeof DecompressionStream === "function" && document.body.replaceChildren) start();
