// The first screen: one sentence, numbers that are links, loss and gradients over the steps.

function overviewView(view) {
  const first = D.origins[0];
  put(view,
    h("p", { class: "runs" }, D.two ? t("two_runs", D.a, D.b) : D.b),
    searchStrip(),
    headline(first),
    textList(t("gaps"), D.gaps.map(said)),
    trendsCard(),
    ranksAnswer(),
    textList(t(D.two ? "health_b" : "health"), D.health.map(said)),
    countBoxes(),
    D.units.length ? scopeText() : null,
    curvesOverview() || h("div", { class: "pair" }, lossLines(), seriesLines(t("norm"), D.series.norm, state.r)),
    cardList(t("independent_of"), D.origins.slice(1, 20), D.two ? "independent" : "nan"),
    cardList(t("later"), D.later.slice(0, 20), "consequence"),
    textList(t("soft"), D.soft.map(said)), textList(t("remarks"), D.remarks.map(said)),
  );
}

/** Return what the page tells about: dumps, steps, ranks, calls and pairs. */
function scopeText() {
  return h("p", {}, t("compared", D.units.length, D.steps.length > 6 ? `${D.steps[0]} ... ${D.steps[D.steps.length - 1]}` : D.steps.join(", "),
      D.rankNames.length > 6 ? `${D.rankNames[0]} ... ${D.rankNames[D.rankNames.length - 1]}` : D.rankNames.map((rank) => (rank === "-" ? t("one_process") : rank)).join(", "), D.counts.calls, D.counts.tensors),
    D.two ? " " + t("paired", Object.entries(D.counts.pairs).map(([how, count]) => `${how} ${count}`).join(", ") || t("none"), D.counts.only[0], D.counts.only[1]) : "",
    D.dropped ? " " + t("dropped", D.dropped) : "", D.code ? "" : " " + t("no_code"));
}

/** Return the answer about the ranks: what they disagree on, or what was looked at; null for one rank. */
function ranksAnswer() {
  if (!D.ranks_said) return null;
  return h("section", { class: ["card", "card origin", "card unsure"][D.two ? D.ranks_status % 2 : D.ranks_status] }, h("h3", {}, t("rank_findings")), h("p", {}, said(D.ranks_said)),
    h("ul", { class: "plain" }, D.ranks.slice(0, 3).map((item) => h("li", {}, item.step === null ? "" : `${t("step")} ${item.step}: `, said(item.sentence)))));
}

/** Return the headline: the heaviest finding of all readers, and the number of the others. The exit status says the same. */
function headline(first) {
  const shown = first && D.headline.tone === "bad" ? originCard(first, t(D.two ? "first" : "first_nan"), true) : h("p", { class: `verdict ${D.headline.tone}` }, said(D.headline.text));
  return h("section", { id: "headline", "data-tone": D.headline.tone, "data-others": D.headline.others }, shown, othersText());
}

function othersText() {
  return D.headline.others ? h("p", { class: "others" }, D.headline.others === 1 ? t("other") : t("others", D.headline.others)) : null;
}

function lossLines() {
  const name = D.series.loss_name;
  return seriesLines(name ? `${t("loss")} · ${t("loss_of", name)}` : t("loss"), D.series.loss, state.r);
}

const ORIGIN_KINDS = {
  "outside value": "kind_outside",
  "data": "kind_data",
  "parameter": "kind_parameter",
  "optimizer": "kind_optimizer",
  "argument": "kind_argument",
  "wiring": "kind_wiring",
  "calls": "kind_calls",
  "computation": "kind_computation",
  "gradient": "kind_gradient",
  "communication": "kind_communication",
  "random": "kind_random",
  "made": "kind_made",
  "NaN of Inf": "kind_nan_of_inf",
  "given": "kind_given",
};
const kindText = (kind) => t(ORIGIN_KINDS[kind] || kind);

const placeText = (code) => (code ? `${code[0]}:${code[1]}` : "");

function originText(origin) {
  const ranks = origin.ranks.length ? ` (${ranksMore(origin)})` : "";
  return [
    `${stepText(origin)}${ranks}: ${origin.name}${origin.cell ? ` ${t("in_cell", origin.cell)}` : ""}: ${origin.kind}`,
    said(origin.sentence), origin.code ? `${placeText(origin.code)}${origin.code[3] ? `: ${origin.code[3]}` : ""}` : "",
  ].filter(Boolean).join("\n");
}

const ranksMore = (origin) => (origin.ranks.length === 1 ? t("and_rank") : t("and_ranks", origin.ranks.length));

const originTarget = (origin) => ({ v: "call", s: origin.step, r: rankName(origin.rank), c: origin.name });

/** Return the card of an origin: its place, its line of code and its sentence. */
function originCard(origin, title, large, here = false, standing = "origin") {
  return h("section", { class: `card origin ${standing}${large ? " large" : ""}` },
    h(large || here ? "h3" : "h4", {}, badge(standing), " ", title, title ? ": " : "", [stepText(origin), kindText(origin.kind)].filter(Boolean).join(", "),
      origin.ranks.length ? ` (${ranksMore(origin)}: ${ranksText(origin.ranks)})` : ""),
    here ? null : h("p", { class: "name" }, link(originTarget(origin), origin.name), origin.cell ? ` ${t("in_cell", origin.cell)}` : ""),
    h("p", {}, said(origin.sentence)),
    origin.code ? h("p", { class: "code" }, h("span", { class: "quiet" }, placeText(origin.code), " "), h("code", {}, origin.code[3])) : null,
    origin.more.length ? h("p", { class: "quiet" }, D.two ? "" : `${t("road")} `, origin.more.slice(0, 8).join(", ")) : null,
    h("p", { class: "actions" }, here ? null : h("a", { class: "button", href: "#" + address(originTarget(origin)), id: large ? "first-call" : null }, t("open_call")),
      h("button", { onclick: () => copy(originText(origin)) }, t("copy"))));
}

function cardList(title, origins, standing) {
  return origins.length ? h("details", { class: "card", open: origins.length < 4 },
    h("summary", {}, `${title} (${origins.length})`), origins.map((origin) => originCard(origin, "", false, false, standing))) : null;
}

function textList(title, lines) {
  return lines.length ? h("details", { class: "card", open: lines.length < 5 }, h("summary", {}, `${title} (${lines.length})`), h("ul", {}, lines.map((line) => h("li", {}, line)))) : null;
}

/** Return a box for each state that occurs; it leads to those calls. */
function countBoxes() {
  const counts = D.counts.states;
  const shown = [...D.states].reverse().filter((name) => counts[name] > 0);
  if (!shown.length) return null;
  return h("ul", { class: "boxes", "aria-label": t("counts") }, shown.map((name) => h("li", {},
    h("a", { href: "#" + address({ v: "calls", f: name, all: "1" }) }, h("strong", {}, counts[name]), badge(name)))));
}
