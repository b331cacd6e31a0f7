// The cards of a host, one column for each card; values that all cards share are shown once.

const UNKNOWN = "–";

function cardsOf(host) {
  return (host.gpus || []).map(([index, bus, serial, uuid, values, processes]) =>
    ({ index, bus, serial, uuid, processes, values: values.map((place) => data.gpuValues[place]) }));
}

const known = (value) => (value === null || value === "" ? UNKNOWN : String(value));
const gibibytes = (bytes) => (bytes === null ? UNKNOWN : `${(bytes / 2 ** 30).toFixed(1).replace(/\.0$/, "")} GiB`);

function valueCell(text, bad, span) {
  const attributes = { class: bad ? "bad" : null, colspan: span > 1 ? String(span) : null };
  return make("td", attributes, bad ? make("span", { class: "sign" }, "! ") : null, make("bdi", {}, text));
}

/** One row of the comparison: a value that is equal on all cards fills one cell; one that no card reports is left out. */
function comparedLine(label, column, cards) {
  const texts = cards.map((card) => known(card.values[column][0]));
  const bads = cards.map((card) => card.values[column][1]);
  if (texts.every((value) => value === UNKNOWN)) return null;
  const same = texts.every((value, place) => value === texts[0] && bads[place] === bads[0]);
  const cells = same
    ? valueCell(texts[0], bads[0], cards.length)
    : texts.map((value, place) => valueCell(value, bads[place], 1));
  return make("tr", {}, make("th", { scope: "row" }, label), cells);
}

function comparedCards(cards) {
  const heads = cards.map((card) => make("th", { scope: "col" }, String(card.index)));
  return make("div", { class: "frame wide", tabindex: "0", role: "region", "aria-label": "Values of the cards" },
    make("table", { class: "compared" },
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "card"), heads)),
      make("tbody", {}, data.gpuColumns.map((label, column) => comparedLine(label, column, cards)))));
}

function identities(cards) {
  const rows = cards.map((card) => [String(card.index), said(card.bus), said(card.serial, UNKNOWN), said(card.uuid, UNKNOWN)]);
  return table("Addresses of the cards", ["card", "PCI address", "serial", "UUID"], rows, "plain mono");
}

function processesOf(cards) {
  const rows = cards.flatMap((card) => card.processes.map(([pid, name, kind, memory]) =>
    [String(card.index), known(pid), said(name), kind || UNKNOWN, gibibytes(memory)]));
  return rows.length ? [make("h4", {}, "In use by"), table("Programs on the cards", ["card", "pid", "program", "kind", "memory"], rows)] : null;
}

function gpuPart(host) {
  const cards = cardsOf(host);
  if (!cards.length) return null;
  const content = [comparedCards(cards), leftOut(host, "gpus"), identities(cards), processesOf(cards)];
  return part("GPUs", "gpu", content, cards.length);
}
