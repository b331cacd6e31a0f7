// Which hosts are shown: by words, by status, by known failure. A folded row opens when only some of its hosts match.

const rows = [...document.querySelectorAll("tr.row")];
const folds = [...document.querySelectorAll("tr.fold")];
const input = document.getElementById("filter");
const tiles = [...document.querySelectorAll(".tile")];
const chips = [...document.querySelectorAll(".chip")];
const wantedOnly = { status: "", rule: "" };
let shownNames = [];

/** All words that the filter searches for a host. */
function wordsOf(host) {
  const statuses = data.shared[host.layers];
  const [, short, long] = data.statuses[host.status];
  const rules = (host.findings || []).map(([rule]) => data.rules[rule][0]);
  const layers = data.layers.map((layer, place) => `${layer}:${statuses[place]}`);
  const warned = statuses.includes("warning") ? "warning" : "";
  return [host.name, ...data.shared[host.groups], host.stack, host.status, short, long, warned, ...rules, ...layers]
    .join("\n").toLowerCase();
}

const searched = data.hosts.map(wordsOf);
const rulesOf = data.hosts.map((host) => new Set((host.findings || []).map(([rule]) => data.rules[rule][0])));

function matches(place, words) {
  const host = data.hosts[place];
  return (!wantedOnly.status || host.status === wantedOnly.status)
    && (!wantedOnly.rule || rulesOf[place].has(wantedOnly.rule))
    && words.every((word) => searched[place].includes(word));
}

/** A folded row stays folded when all its hosts match; otherwise those that match get rows of their own. */
function showFold(fold, matching) {
  const members = rows.filter((row) => row.dataset.fold === fold.dataset.number);
  const hits = members.filter((row) => matching.has(Number(row.dataset.host)));
  const whole = hits.length === members.length;
  const open = fold.querySelector(".unfold").getAttribute("aria-expanded") === "true";
  fold.hidden = !whole;
  for (const row of members) {
    row.hidden = false;
    row.classList.toggle("shown", whole ? open : matching.has(Number(row.dataset.host)));
  }
}

function applyFilter() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = new Set(data.hosts.keys());
  for (const place of matching) if (!matches(place, words)) matching.delete(place);
  for (const row of rows) if (!row.dataset.fold) row.hidden = !matching.has(Number(row.dataset.host));
  for (const fold of folds) showFold(fold, matching);
  document.getElementById("nothing").hidden = matching.size > 0 || data.hosts.length === 0;
  const all = data.hosts.length.toLocaleString("en");
  const of = matching.size === data.hosts.length ? all : `${matching.size.toLocaleString("en")} of ${all}`;
  shownNames = [...matching].map((place) => data.hosts[place].name);
  document.getElementById("shown").textContent = `${of} host${data.hosts.length === 1 ? "" : "s"}`;
}

/** At most one button of a group is pressed; pressing it again releases it. */
function choose(kind, buttons, value) {
  wantedOnly[kind] = wantedOnly[kind] === value ? "" : value;
  for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset[kind] === wantedOnly[kind]));
  applyFilter();
}

function clearFilter() {
  input.value = "";
  choose("status", tiles, wantedOnly.status);
  choose("rule", chips, wantedOnly.rule);
  applyFilter();
}

function toggleFold(fold) {
  const button = fold.querySelector(".unfold");
  const open = button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", String(open));
  applyFilter();
}

input.addEventListener("input", applyFilter);
for (const tile of tiles) tile.addEventListener("click", () => choose("status", tiles, tile.dataset.status));
for (const chip of chips) chip.addEventListener("click", () => choose("rule", chips, chip.dataset.rule));
for (const fold of folds) fold.addEventListener("click", () => { if (!String(getSelection())) toggleFold(fold); });
const namesButton = document.getElementById("copy-names");
namesButton.addEventListener("click", () => copyFrom(namesButton, `--hosts ${shownNames.join(",")}`));
document.getElementById("clear").addEventListener("click", () => { clearFilter(); input.focus(); });
