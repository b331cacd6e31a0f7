// The details of one host, part by part, problems first.

const lasting = (since) => (since ? make("span", { class: "since" }, `since ${since}`) : null);
const layerName = (layer) => make("span", { class: "layer" }, layer);

function facts(host) {
  const [stack, at, run, operator] = host.record || [];
  const groups = data.shared[host.groups];
  const standIns = data.shared[host.standIns];
  const rows = [
    ["stack", said(host.stack)],
    ["audited", host.at],
    ["groups", groups.length ? said(groups.join(", ")) : null],
    ["last good run", host.record ? [said(stack), `, ${at}, by `, said(operator), ", run ", said(run)] : "none recorded"],
    ["stand-ins", standIns.length ? said(standIns.join(", ")) : null],
  ];
  return make("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([key, value]) =>
    make("div", {}, make("dt", {}, key), make("dd", {}, value))));
}

function layersOf(host) {
  const statuses = data.shared[host.layers];
  const own = data.layers.map((layer, place) => [layer, statuses[place]]).filter(([, status]) => status !== "absent");
  return make("ul", { class: "layers", "aria-label": "Layers" }, own.map(([layer, status]) =>
    make("li", { class: `s-${status}` },
      make("span", { class: "sign", "aria-hidden": "true" }, data.statuses[status][0]), ` ${layer}`,
      make("span", { class: "hidden" }, ` ${data.statuses[status][1]}`))));
}

function finding([rule, evidence, since]) {
  const [name, layer, grave, cause, cure, provision, link] = data.rules[rule];
  const status = grave ? "failing" : "warning";
  return make("article", { class: `finding s-${status}`, "data-layer": layer },
    make("header", {}, badge(status), make("h4", {}, make("bdi", {}, name)), layerName(layer), lasting(since)),
    make("p", { class: "cause" }, `${cause}.`),
    make("p", { class: "cure" }, make("b", {}, "What to do: "), `${cure}.`),
    evidence.length ? make("ul", { class: "evidence", "aria-label": "Evidence" },
      evidence.map((line) => make("li", {}, make("bdi", {}, line)))) : null,
    make("footer", {}, make("span", {}, make("code", {}, "hostwright provision"), provision ? " fixes it" : " does not fix it"),
      make("a", { class: "to-failure", href: `#failure-${encodeURIComponent(name)}` }, "all hosts with this failure"),
      make("span", { class: "link" }, "more: ", make("code", {}, link))));
}

function commandsOf(host) {
  if (!host.commands) return null;
  return make("dl", { class: "commands" }, host.commands.map(([what, line]) =>
    make("div", {}, make("dt", {}, what), make("dd", {}, command(line)))));
}

function deviation([layer, what, have, want, why, since]) {
  return make("article", { class: "deviation", "data-layer": layer },
    make("header", {}, badge(why), make("h4", {}, make("bdi", {}, what)), layerName(layer), lasting(since)),
    make("p", { class: "change" }, make("span", { class: "hidden" }, "have "), said(have),
      make("span", { class: "to", "aria-hidden": "true" }, "→"), make("span", { class: "hidden" }, " want "), said(want)));
}

function xid([number, bus, at, text, count, advice]) {
  const [meaning, action] = data.shared[advice];
  const times = count > 1 ? `, ${count} times` : "";
  return make("article", { class: "xid", "data-layer": "gpu" },
    make("header", {}, make("h4", {}, `Xid ${number}`), make("span", { class: "soft" }, `on ${bus}${times}${at ? `, last ${at}` : ""}`)),
    make("p", { class: "cause" }, `${meaning}.`),
    make("p", { class: "cure" }, make("b", {}, "What to do: "), `${action.charAt(0).toUpperCase()}${action.slice(1)}.`),
    text ? make("ul", { class: "evidence" }, make("li", {}, make("bdi", {}, text))) : null);
}

/** Checks that could not be made, by reason. */
function notChecked(host) {
  const reasons = new Map();
  for (const [layer, check, reason] of data.shared[host.notChecked]) {
    reasons.set(reason, [...(reasons.get(reason) || []), `${layer} ${check}`]);
  }
  if (!reasons.size) return null;
  return make("dl", { class: "reasons" }, [...reasons].map(([reason, checks]) =>
    make("div", {}, make("dt", {}, make("bdi", {}, reason)), make("dd", {}, make("bdi", {}, checks.join(", "))))));
}

function wanted(want, differs) {
  if (want === null) return make("span", { class: "soft" }, "not pinned");
  if (!differs) return make("span", { class: "same" }, "= same");
  return make("span", { class: "differs" }, make("span", { class: "sign" }, "≠ "), said(want));
}

function readings(host) {
  const shape = data.shapes[host.shape];
  const groups = Map.groupBy
    ? Map.groupBy(shape.keys(), (place) => shape[place][0])
    : shape.reduce((places, [layer], place) => places.set(layer, [...(places.get(layer) || []), place]), new Map());
  return [...groups].map(([layer, places]) => {
    const rows = places.map((place) => {
      const [, name, want] = shape[place];
      const differs = (host.differs || []).includes(place);
      return { attributes: { class: differs ? "differs" : null }, cells: [make("bdi", {}, name), said(host.have[place]), wanted(want, differs)] };
    });
    return make("div", { "data-layer": layer, class: "group" }, make("h4", {}, layer), table(`Values of ${layer}`, ["value", "have", "stack"], rows, "plain readings"));
  });
}

function contentOf(host) {
  const findings = host.findings || [];
  const deviations = host.deviations || [];
  const xids = host.xids || [];
  const checks = notChecked(host);
  const calm = !findings.length && !deviations.length && !host.sentence;
  return [
    host.sentence ? make("p", { class: "notice sentence" }, make("b", {}, "Could not be read. "), make("bdi", {}, host.sentence)) : null,
    (host.notes || []).map((note) => make("p", { class: "notice" }, make("bdi", {}, note))),
    layersOf(host),
    calm ? make("p", { class: "empty" }, "Nothing differs from the stack, and no known failure was found.") : null,
    part("Known problems", "findings", findings.length ? [findings.map(finding), leftOut(host, "findings")] : null, findings.length),
    part("Not as desired", "deviations", deviations.length ? [deviations.map(deviation), leftOut(host, "deviations")] : null, deviations.length),
    part("Commands", "commands", commandsOf(host)),
    part("Xids", "xids", xids.length ? [xids.map(xid), leftOut(host, "xids")] : null, xids.length),
    gpuPart(host),
    part("Not checked", "checks", checks ? [make("p", { class: "soft" }, "These checks could not be made; they are not problems of the host."), checks, leftOut(host, "notChecked")] : null),
    part("Values", "readings", (host.have || []).length ? [readings(host), leftOut(host, "readings")] : null, (host.have || []).length),
    part("About", "about", facts(host)),
  ];
}
