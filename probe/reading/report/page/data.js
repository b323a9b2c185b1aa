// The data of the page: columns of calls (C) and of their places (R), and a description (D).

const D = {};
const C = {};
const R = {};
const KINDS = { i: Int32Array, B: Uint8Array, f: Float32Array, d: Float64Array };
const MISSING = { f: 2 ** -149, d: 5e-324 };
const OK = 0;

function fromLetters(letters) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(letters);
  const text = atob(letters);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function inflate(letters) {
  const stream = new Blob([fromLetters(letters)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** Put the bytes of numbers together: first come all first bytes, then all second ones. */
function unshuffled(buffer, Kind) {
  const planes = new Uint8Array(buffer);
  const size = Kind.BYTES_PER_ELEMENT;
  if (size === 1) return planes;
  const count = planes.length / size;
  const bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < size; plane++) {
    for (let i = 0, from = plane * count, to = plane; i < count; i++, from++, to += size) bytes[to] = planes[from];
  }
  return new Kind(bytes.buffer);
}

function addBits(column, base) {
  const own = new Uint32Array(column.buffer);
  const other = new Uint32Array(base.buffer);
  for (let i = 0; i < own.length; i++) own[i] ^= other[i];
}

/** Read all data of the page. */
async function load() {
  const elements = [...document.querySelectorAll("script[type='text/plain']")];
  const buffers = await Promise.all(elements.map((element) => inflate(element.textContent)));
  const changed = [];
  elements.forEach((element, place) => {
    const [, group, name] = element.id.match(/^data-(\w+)-?(\w*)$/);
    const kind = element.dataset.kind;
    element.textContent = "";
    if (kind === "json") {
      Object.assign(D, JSON.parse(new TextDecoder().decode(buffers[place])));
      return;
    }
    const table = group === "call" ? C : R;
    table[name] = unshuffled(buffers[place], KINDS[kind[0]]);
    if (kind.endsWith("^")) changed.push(name);
  });
  for (const name of changed) addBits(R[name], R[name.slice(0, -1) + "a"]);
  derive();
}

/** Compute what follows from the columns: the first row of each call, its unit, and its greatest difference. */
function derive() {
  const count = C.name.length;
  C.first = new Int32Array(count + 1);
  C.worst = new Float64Array(count);
  C.unit = new Int32Array(count);
  D.units.forEach((unit, number) => C.unit.fill(number, unit.calls[0], unit.calls[1]));
  const outputs = new Uint8Array(D.tables.places.length);
  D.tables.places.forEach((place, number) => { outputs[number] = /^output|^[^.]*$|^parameters_grad/.test(place) ? 1 : 0; });
  const source = D.two ? R.rel : R.Norm_b;
  const missing = MISSING[source instanceof Float32Array ? "f" : "d"];
  const nearZero = D.verdicts.indexOf("near zero");
  let row = 0;
  for (let call = 0; call < count; call++) {
    C.first[call] = row;
    let worst = -1;
    for (const end = row + C.rows[call]; row < end; row++) {
      const value = source[row];
      if (value !== missing && value > worst && (D.two ? R.verdict[row] !== nearZero : outputs[R.place[row]])) worst = value;
    }
    C.worst[call] = worst;
  }
  C.first[count] = row;
  D.isOutput = outputs;
  D.steps = [...new Set(D.units.map((unit) => unit.step))].sort((a, b) => a - b);
  D.rankNames = [...new Set([...D.units.map((unit) => rankName(unit.rank)), ...D.curves.flatMap((curve) => Object.keys(curve.b))])];
}

function rankName(rank) {
  return rank === null ? "-" : String(rank);
}

/** Return a number of a column; null where the dump has none. */
function numberAt(column, place) {
  const value = column[place];
  return value === MISSING[column instanceof Float32Array ? "f" : "d"] ? null : value;
}

function unitOf(step, rank) {
  return D.units.findIndex((unit) => String(unit.step) === String(step) && rankName(unit.rank) === String(rank));
}

/** Return the call with a name in a unit; -1 where there is none. */
function findCall(unit, nameNumber, onlyA = false) {
  if (unit < 0 || nameNumber < 0) return -1;
  const [first, last] = D.units[unit].calls;
  const side = D.states.indexOf("only_a");
  for (let call = first; call < last; call++) {
    if (C.name[call] === nameNumber && (C.state[call] === side) === onlyA) return call;
  }
  return onlyA ? -1 : findCall(unit, nameNumber, true);
}

/** Return the call that a place of a call names as its producer; -1 where it is not in the report. */
function producerOf(call, row) {
  const wanted = R.producer[row];
  if (wanted < 0) return -1;
  const [first, last] = D.units[C.unit[call]].calls;
  let low = first, high = last - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (C.index[middle] === wanted) return middle;
    if (C.index[middle] < wanted) low = middle + 1; else high = middle - 1;
  }
  return -1;
}

/** Return the calls that use an output of a call. */
function usersOf(call) {
  const [first, last] = D.units[C.unit[call]].calls;
  const found = [];
  for (let other = first; other < last; other++) {
    for (let row = C.first[other]; row < C.first[other + 1]; row++) {
      if (R.producer[row] === C.index[call]) { found.push(other); break; }
    }
  }
  return found;
}

const nameOf = (call) => D.tables.names[C.name[call]];
const cellOf = (call) => D.tables.cells[C.cell[call]];
const stateOf = (call) => D.states[C.state[call]];

/** Return the outputs' number that stands for a call over the steps: the norm of its last output. */
function lastNorm(call, side) {
  for (let row = C.first[call + 1] - 1; row >= C.first[call]; row--) {
    const value = numberAt(R["Norm_" + side], row);
    if (value !== null) return value;
  }
  return null;
}

/** Return the calls that have one of these states. */
function callsWith(...names) {
  const wanted = names.map((name) => D.states.indexOf(name));
  const found = [];
  for (let call = 0; call < C.state.length; call++) if (wanted.includes(C.state[call])) found.push(call);
  return found;
}
