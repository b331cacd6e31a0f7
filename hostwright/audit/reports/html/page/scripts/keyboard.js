// Keys: / goes to the filter, Escape closes the details or clears the filter, arrows move between hosts, n and p
// open the next and the previous one.

const typing = (target) => target instanceof HTMLInputElement;

/** The buttons of the hosts and folded rows that are visible, from top to bottom. */
function stops() {
  return [...document.querySelectorAll("#matrix .open, #matrix .unfold")].filter((button) => button.getClientRects().length > 0);
}

const MOVES = {
  ArrowDown: (place) => place + 1,
  ArrowUp: (place) => place - 1,
  Home: () => 0,
  End: (place, last) => last,
};

function move(event) {
  const move = MOVES[event.key];
  if (!move || !event.target.closest("#matrix th button")) return;
  const all = stops();
  const next = all[Math.min(all.length - 1, Math.max(0, move(all.indexOf(event.target.closest("button")), all.length - 1)))];
  event.preventDefault();
  next.focus();
}

/** Open the host after, or before, the one whose details are shown. */
function openBeside(step) {
  const all = stops().filter((button) => button.matches(".open"));
  const here = all.findIndex((button) => button.closest("tr.current"));
  const next = all[here < 0 ? (step > 0 ? 0 : all.length - 1) : here + step];
  if (next) openPanel(Number(next.closest("tr").dataset.host), undefined, next);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !typing(event.target)) {
    event.preventDefault();
    input.focus();
  } else if ((event.key === "n" || event.key === "p") && !typing(event.target)) {
    openBeside(event.key === "n" ? 1 : -1);
  } else if (event.key === "Escape") {
    if (!panel.hidden) closePanel();
    else if (typing(event.target)) clearFilter();
  } else {
    move(event);
  }
});

applyFilter();
openAddressed();
