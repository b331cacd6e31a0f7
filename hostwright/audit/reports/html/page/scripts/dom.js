"use strict";

// Builds elements. Text is only added as text nodes, so that nothing from a host is ever parsed as HTML.

const data = JSON.parse(document.getElementById("data").textContent);

/** An element with attributes and children; strings become text, null is skipped. */
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** Text from a host, isolated from the words around it, whatever its writing direction. */
function said(text, empty = "nothing") {
  return text === "" ? make("i", { class: "soft" }, empty) : make("bdi", { class: "said" }, text);
}

/** A status as symbol and word. */
function badge(status, word) {
  const [sign, short] = data.statuses[status];
  return make("span", { class: `badge s-${status}` },
    make("span", { class: "sign", "aria-hidden": "true" }, sign), ` ${word || short}`);
}

/** A part of the panel with a title; null when it is empty. */
function part(title, key, content, count) {
  if (!content || (Array.isArray(content) && content.length === 0)) return null;
  const heading = make("h3", {}, title, count ? make("span", { class: "count" }, String(count)) : null);
  return make("section", { "data-part": key }, heading, content);
}

/** A table with these column heads; the first cell of each row is its head. No other one of the page has its label. */
function table(label, heads, rows, kind = "plain") {
  const cells = (row) => row.map((cell, place) =>
    place === 0 ? make("th", { scope: "row" }, cell) : make("td", {}, cell));
  return make("div", { class: "frame wide", tabindex: "0", role: "region", "aria-label": label },
    make("table", { class: kind },
      make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, rows.map((row) => make("tr", row.attributes || {}, cells(row.cells || row))))));
}

function leftOut(host, key) {
  const more = host.cut && host.cut[key];
  return more ? make("p", { class: "soft" }, `… and ${more.toLocaleString("en")} more, not included in this page`) : null;
}
