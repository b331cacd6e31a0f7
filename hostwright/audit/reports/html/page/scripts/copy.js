// Commands to copy: a click on the button beside one, also in a page that was opened as a file or over plain HTTP.

/** A command line with its button. */
function command(text) {
  return make("span", { class: "command" }, make("code", {}, text),
    make("button", { type: "button", class: "copy", "aria-label": `Copy: ${text}` }, "Copy"));
}

/** Browsers offer their clipboard to pages from HTTPS and files alone; a selected text can be copied anywhere. */
function copySelected(text) {
  const field = make("textarea", { class: "hidden", readonly: true, "aria-hidden": "true" });
  const before = document.activeElement;
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  before.focus({ preventScroll: true });
  return done;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/** Copy, and say so on the button and to screen readers. */
async function copyFrom(button, text) {
  const done = await copyText(text);
  const word = button.dataset.word || button.textContent;
  button.dataset.word = word;
  button.textContent = done ? "Copied" : "Not copied";
  document.getElementById("told").textContent = done ? `Copied: ${text}` : "This browser does not let the page copy.";
  clearTimeout(Number(button.dataset.timer));
  button.dataset.timer = String(setTimeout(() => { button.textContent = word; }, 2000));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest(".command .copy");
  if (button) copyFrom(button, button.parentElement.querySelector("code").textContent);
});
