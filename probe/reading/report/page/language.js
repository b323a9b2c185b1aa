// The texts of the page and the sentences of its findings, in English and Chinese.

const LANGUAGES = ["en", "zh"];
let language = LANGUAGE || ((navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en");

/** Return the text of a key; {0}, {1} are replaced. */
function t(key, ...values) {
  const found = TEXTS[key];
  const text = found ? found[LANGUAGES.indexOf(language)] : key;
  return text.replace(/\{(\d)\}/g, (_, place) => String(values[Number(place)]));
}

/** Return the sentence of a finding in the language of the page. */
const said = (sentence) => (language === "zh" && D.chinese[sentence]) || sentence;
