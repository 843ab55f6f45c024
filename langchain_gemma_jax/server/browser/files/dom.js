// Elements, made without markup in strings: a model's words can never become elements.

export function el(tag, facts = {}, ...inside) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) found.addEventListener(event, act);
    else if (name === "class") found.className = value;
    else if (name === "data") Object.assign(found.dataset, value);
    else if (name in found && typeof value !== "string") found[name] = value;
    else found.setAttribute(name, value === true ? "" : value);
  }
  found.append(...inside.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false));
  return found;
}

export function svg(tag, facts = {}, ...inside) {
  const found = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(facts)) found.setAttribute(name, value);
  found.append(...inside.flat());
  return found;
}

export const byId = (id) => document.getElementById(id);

export function button(text, act, facts = {}) {
  return el("button", { type: "button", ...facts, on: { click: act } }, text);
}

// Change what is in an element, and leave the keyboard where it was: at what stays, or at what stands in its `place` now.
export function keepFocus(inside, change) {
  const before = document.activeElement;
  const was = inside.contains(before);
  change();
  if (!was || document.activeElement === before) return;
  const now = before.isConnected ? before : inside.querySelector(`[data-place="${before.dataset.place ?? ""}"]:not(:disabled)`);
  (now ?? inside).focus({ preventScroll: true });
}

// Make what is there equal to what was made, with few changes: a text that grew is appended to. `from`: how many
// elements stay as they are. What can be pressed stays too, as somebody may be there.
export function merge(there, made, from = 0) {
  const before = [...there.childNodes].slice(from);
  const now = [...made.childNodes];
  for (const [n, each] of now.entries()) {
    const old = before[n];
    if (!old) there.append(each);
    else if (old.nodeType === Node.TEXT_NODE && each.nodeType === Node.TEXT_NODE) grow(old, each.data);
    else if (!alike(old, each)) old.replaceWith(each);
    else if (old.nodeName !== "BUTTON") merge(old, each);
  }
  for (const each of before.slice(now.length)) each.remove();
}

function alike(one, other) {
  if (one.nodeName !== other.nodeName) return false;
  if (one.nodeName === "BUTTON") return true;
  return one.attributes.length === other.attributes.length && [...one.attributes].every(({ name, value }) => other.getAttribute(name) === value);
}

export function grow(text, data) {
  if (data.startsWith(text.data)) {
    if (data.length > text.data.length) text.appendData(data.slice(text.data.length));
  } else text.data = data;
}

export async function copy(text, told) {
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch { // without https, browsers have no clipboard but the old one
    const field = el("textarea", { class: "only-heard", "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    done = document.execCommand("copy");
    field.remove();
    told.focus();
  }
  say(told, done ? "Copied" : "The browser does not let this page copy");
}

function say(told, text) {
  told.dataset.text ??= told.textContent;
  told.textContent = text;
  setTimeout(() => { told.textContent = told.dataset.text; }, 1500);
}

export const whole = (number) => Math.round(number).toLocaleString("en-US");

export function seconds(value) {
  if (value < 0.0995) return `${Math.round(value * 1000)} ms`;
  return value < 9.95 ? `${value.toFixed(1)} s` : `${Math.round(value)} s`;
}

export function bytes(value) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000;
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
