// The cards of a host, one column for each card; values that all cards share are shown once.

const UNKNOWN = "–";

function cardsOf(host) {
  return (host.gpus || []).map((row) => Object.fromEntries(data.gpuFields.map((field, place) => [field, row[place]])));
}

const known = (value, unit = "") => (value === null || value === "" ? UNKNOWN : `${value}${unit}`);
const yes = (value) => (value === null ? UNKNOWN : value ? "yes" : "no");
const onOff = (value) => (value === null ? UNKNOWN : value ? "on" : "off");
const gibibytes = (bytes) => (bytes === null ? UNKNOWN : `${(bytes / 2 ** 30).toFixed(1).replace(/\.0$/, "")} GiB`);
const ofMost = (have, most) => (have === null && most === null ? UNKNOWN : `${known(have)}/${known(most)}`);
const pair = (counts) => (counts === null ? UNKNOWN : `${known(counts[1])}/${known(counts[0])}`);
const positive = (counts, place) => counts !== null && counts[place] > 0;

function links(value) {
  if (value === null) return UNKNOWN;
  const [total, down] = value;
  return down.length ? `${total - down.length} of ${total}; down: ${down.join(", ")}` : `${total} of ${total}`;
}

/** The values of each card: label, text, and whether it needs attention. Errors: uncorrected / corrected. */
const LINES = [
  ["model", (g) => known(g.model)],
  ["VBIOS", (g) => known(g.vbios)],
  ["memory", (g) => gibibytes(g.memory)],
  ["memory used", (g) => gibibytes(g.used)],
  ["PCIe generation, current/maximum", (g) => ofMost(g.generation, g.generationMax)],
  ["PCIe lanes, current/maximum", (g) => ofMost(g.width, g.widthMax), (g) => g.width !== null && g.width < g.widthMax],
  ["PCIe replays", (g) => known(g.replays)],
  ["ECC", (g) => onOff(g.ecc), (g) => g.ecc === false],
  ["ECC errors since driver load, uncorr./corr.", (g) => pair(g.volatile), (g) => positive(g.volatile, 1)],
  ["ECC errors in total, uncorr./corr.", (g) => pair(g.aggregate), (g) => positive(g.aggregate, 1)],
  ["retired pages, double/single bit", (g) => pair(g.retired), (g) => positive(g.retired, 1)],
  ["retirement pending", (g) => yes(g.retirementPending), (g) => g.retirementPending],
  ["remapped rows, uncorr./corr.", (g) => pair(g.remapped), (g) => positive(g.remapped, 1)],
  ["remap pending", (g) => yes(g.remapPending), (g) => g.remapPending],
  ["remap failed", (g) => yes(g.remapFailed), (g) => g.remapFailed],
  ["temperature", (g) => known(g.temperature, " °C"),
    (g) => g.temperature !== null && g.temperatureSlowdown !== null && g.temperature >= g.temperatureSlowdown],
  ["slows down at", (g) => known(g.temperatureSlowdown, " °C")],
  ["power", (g) => (g.power === null ? UNKNOWN : `${Math.round(g.power)} W`)],
  ["power limit", (g) => (g.powerLimit === null ? UNKNOWN : `${Math.round(g.powerLimit)} W`)],
  ["performance state", (g) => known(g.performance)],
  ["slowed down by", (g) => g.slowdowns.join(", ") || UNKNOWN],
  ["persistence", (g) => onOff(g.persistence)],
  ["NVLinks up", (g) => links(g.links), (g) => g.links !== null && g.links[1].length > 0],
  ["MIG", (g) => (g.mig ? `on, ${known(g.instances)} instances` : onOff(g.mig))],
];

function valueCell(text, bad, span) {
  const attributes = { class: bad ? "bad" : null, colspan: span > 1 ? String(span) : null };
  return make("td", attributes, bad ? make("span", { class: "sign" }, "! ") : null, make("bdi", {}, text));
}

/** One row of the comparison: a value that is equal on all cards fills one cell; one that no card reports is left out. */
function comparedLine([label, text, wrong], cards) {
  const texts = cards.map(text);
  const bads = cards.map((card) => Boolean(wrong && wrong(card)));
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
      make("tbody", {}, LINES.map((line) => comparedLine(line, cards)))));
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
