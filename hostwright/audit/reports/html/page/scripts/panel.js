// The panel beside the matrix: opened by a host's name or one of its cells, closed by Escape.

const panel = document.getElementById("panel");
const state = { opener: null };

const buttonOf = (place) => document.querySelector(`tr[data-host="${place}"] .open`);

function head(host) {
  const close = make("button", { type: "button", class: "close", "aria-label": "Close details" }, "×");
  close.addEventListener("click", closePanel);
  return make("header", { class: "panel-head" },
    make("div", {}, make("h2", { id: "panel-title", tabindex: "-1" }, make("bdi", {}, host.name)),
      make("p", {}, badge(host.status, data.statuses[host.status][2]), lasting(host.since))),
    close);
}

/** Mark the host whose details are shown, in the matrix and in the page's address. */
function mark(place) {
  for (const row of document.querySelectorAll("tr.current")) {
    row.classList.remove("current");
    row.querySelector(".open").setAttribute("aria-expanded", "false");
  }
  const button = buttonOf(place);
  if (button) {
    button.setAttribute("aria-expanded", "true");
    button.closest("tr").classList.add("current");
  }
  const address = place < 0 ? location.pathname + location.search : `#host=${encodeURIComponent(data.hosts[place].name)}`;
  try {
    history.replaceState(null, "", address);
  } catch {
    // a page without its own address, as in a frame, cannot keep it
  }
}

function openPanel(place, layer, opener) {
  const host = data.hosts[place];
  if (!host) return;
  state.opener = opener || buttonOf(place);
  const row = buttonOf(place).closest("tr");
  const before = row.getBoundingClientRect().top;
  panel.replaceChildren(head(host), make("div", { class: "panel-body" }, contentOf(host).flat().filter(Boolean)));
  panel.hidden = false;
  document.body.classList.add("beside");
  mark(place);
  scrollBy({ top: row.getBoundingClientRect().top - before });
  panel.querySelector(".panel-body").scrollTop = 0;
  document.getElementById("panel-title").focus({ preventScroll: true });
  if (layer !== undefined) showLayer(data.layers[layer]);
}

/** Scroll to a layer in the details: to its failures or differences, otherwise to its values. */
function showLayer(layer) {
  const parts = [...panel.querySelectorAll("[data-layer]")].filter((element) => element.dataset.layer === layer);
  const target = parts[0] || (layer === "gpu" && panel.querySelector("[data-part=gpu]"));
  if (!target) return;
  for (const element of parts) element.classList.add("lit");
  target.scrollIntoView({ block: "start" });
}

function closePanel() {
  if (panel.hidden) return;
  panel.hidden = true;
  panel.replaceChildren();
  document.body.classList.remove("beside");
  mark(-1);
  const back = state.opener;
  if (back && back.isConnected) back.focus();
}

/** The host that the page's address names. */
function openAddressed() {
  const match = /^#host=(.{1,400})$/.exec(location.hash);
  if (!match) return;
  let wanted = "";
  try {
    wanted = decodeURIComponent(match[1]);
  } catch {
    return;
  }
  const place = data.hosts.findIndex((host) => host.name === wanted);
  if (place >= 0) openPanel(place);
}

document.getElementById("matrix").addEventListener("click", (event) => {
  const row = event.target.closest("tr[data-host]");
  if (!row || String(getSelection())) return;
  const cell = event.target.closest("td[data-layer]");
  openPanel(Number(row.dataset.host), cell ? Number(cell.dataset.layer) : undefined);
});

for (const button of document.querySelectorAll(".to-host")) {
  button.addEventListener("click", () => openPanel(Number(button.dataset.host), undefined, button));
}
addEventListener("hashchange", openAddressed);

// a link from the details to a failure's section: the details make room for it
panel.addEventListener("click", (event) => {
  const link = event.target.closest(".to-failure");
  if (!link) return;
  event.preventDefault();
  const section = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  closePanel();
  if (!section) return;
  section.scrollIntoView({ block: "start" });
  section.focus({ preventScroll: true });
});
