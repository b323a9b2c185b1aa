// The texts of the page in English and Chinese. Texts of findings are English in both.

const LANGUAGES = ["en", "zh"];
let language = LANGUAGE || ((navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en");

/** Return the text of a key; {0}, {1} are replaced. */
function t(key, ...values) {
  const found = TEXTS[key];
  const text = found ? found[LANGUAGES.indexOf(language)] : key;
  return text.replace(/\{(\d)\}/g, (_, place) => String(values[Number(place)]));
}
