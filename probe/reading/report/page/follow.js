// A page of a training that runs: it reads itself again, and keeps theme, language and place.

const KEPT = "probe-report";

function keep() {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify({ theme: document.documentElement.dataset.theme || "", language, at: window.scrollY }));
  } catch (_) { /* without a store the page begins anew */ }
}

/** Take over theme and language from before; return where the page stood. */
function recall() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT));
    sessionStorage.removeItem(KEPT);
    if (!kept) return 0;
    if (kept.theme) document.documentElement.dataset.theme = kept.theme;
    language = kept.language;
    return kept.at;
  } catch (_) {
    return 0;
  }
}

/** Read the page again after some seconds, but not while someone chooses, reads the help, or looks elsewhere. */
function follow(seconds) {
  const isBusy = () => document.hidden || document.getElementById("help").open || /^(INPUT|SELECT)$/.test(document.activeElement.tagName);
  setInterval(() => { if (!isBusy()) { keep(); location.reload(); } }, 1000 * seconds);
}
