// A model's text as elements: what models write of Markdown, and nothing that could ask for anything.

import { button, copy, el, merge } from "./dom.js";

// Each with a most length: else text full of openers takes the square of its length, with each frame.
const INLINE = /(`{1,9})(.{1,2000}?)\1|\*\*(.{1,2000}?)\*\*|__(.{1,2000}?)__|(?<!\w)\*(?=\S)(.{1,2000}?)(?<=\S)\*(?!\w)|\[([^\]\n]{1,500})\]\((https?:\/\/[^\s)]{1,2000})\)/s;
const FENCE = /^(\s*)(```+|~~~+)\s*([\w+#.-]*)/;
const DEEPEST = 8; // quotes in quotes, lists in lists: what goes deeper is shown as text
const ITEM = /^(\s*)(?:[-*+]|(\d+)[.)])\s+(.*)$/;

export function shown(text, depth = 0) {
  const lines = text.split("\n");
  const found = document.createDocumentFragment();
  for (let at = 0; at < lines.length; ) at = block(lines, at, found, depth);
  return found;
}

// A text that grows, as an element. What can no longer change is read once: a block depends on its own lines and on the
// two after them, and the text's last line may go on.
export class GrowingText {
  constructor() {
    this.element = el("div", { class: "text" });
    Object.assign(this, { text: "", from: 0, fixed: 0 }); // where what may change begins, and how many elements are before
  }

  show(text) {
    if (text === this.text) return this.element;
    if (!text.startsWith(this.text)) Object.assign(this, { from: 0, fixed: 0 });
    this.text = text;
    const lines = text.slice(this.from).split("\n");
    const made = document.createDocumentFragment();
    let whole = 0;
    let elements = 0;
    for (let at = 0; at < lines.length; ) {
      at = block(lines, at, made, 0);
      if (at + 2 < lines.length) [whole, elements] = [at, made.childNodes.length];
    }
    merge(this.element, made, this.fixed);
    this.fixed += elements;
    for (const line of lines.slice(0, whole)) this.from += line.length + 1;
    return this.element;
  }
}

// Show the block at a line, and return the line after it.
function block(lines, at, found, depth) {
  const line = lines[at];
  const fence = line.match(FENCE);
  if (!line.trim()) return at + 1;
  if (fence) return code(lines, at, fence, found);
  if (/^\s*#{1,6}\s/.test(line)) found.append(el("p", { class: "heading" }, inline(line.replace(/^\s*#+\s*/, ""))));
  else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) found.append(el("hr"));
  else if (/^\s*>/.test(line) && depth < DEEPEST) return quote(lines, at, found, depth);
  else if (ITEM.test(line)) return list(lines, at, found);
  else if (line.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[at + 1] ?? "")) return table(lines, at, found);
  else return paragraph(lines, at, found);
  return at + 1;
}

function code(lines, at, [, space, fence, language], found) {
  const inside = [];
  const outer = new RegExp(`^\\s{0,${space.length}}`); // as far as the fence is indented, so is the code
  for (at++; at < lines.length && !lines[at].trim().startsWith(fence); at++) inside.push(lines[at].replace(outer, ""));
  const text = inside.join("\n");
  const shows = el("code", {}, text); // which may grow after this
  const told = button("Copy", (event) => copy(shows.textContent, event.currentTarget), { "aria-label": "Copy this code" });
  found.append(el("figure", { class: "code" }, el("figcaption", {}, el("span", {}, language || "text"), told), el("pre", { tabindex: "0" }, shows)));
  return at + 1;
}

function quote(lines, at, found, depth) {
  const inside = [];
  for (; at < lines.length && /^\s*>/.test(lines[at]); at++) inside.push(lines[at].replace(/^\s*>\s?/, ""));
  found.append(el("blockquote", {}, shown(inside.join("\n"), depth + 1)));
  return at;
}

function list(lines, at, found) {
  const open = []; // lists, from the outermost one
  for (; at < lines.length; at++) {
    const item = lines[at].match(ITEM);
    const inside = open.at(-1)?.list.lastChild;
    const fence = lines[at].match(FENCE);
    if (!item) {
      const next = lines[at].trim() ? lines[at] : (lines[at + 1] ?? "");
      if (!/^\s{2,}\S/.test(next) && !(next !== lines[at] && ITEM.test(next))) break;
      if (fence) at = code(lines, at, fence, inside) - 1;
      else if (lines[at].trim()) inside.append(" ", inline(lines[at].trim()));
      continue;
    }
    const [, space, number, text] = item;
    const kind = number ? "OL" : "UL";
    const ended = ({ list, depth }) => (space.length < depth && open.length > 1) || (space.length <= depth && list.tagName !== kind);
    while (open.length && ended(open.at(-1))) open.pop();
    if (inside && !open.length) return at; // the next list
    if (!open.length || (space.length > open.at(-1).depth && open.length < DEEPEST)) {
      const made = el(kind, number && number !== "1" ? { start: Number(number) } : {});
      (open.length ? open.at(-1).list.lastChild : found).append(made);
      open.push({ list: made, depth: space.length });
    }
    open.at(-1).list.append(el("li", {}, inline(text)));
  }
  return at;
}

function table(lines, at, found) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((each) => each.trim());
  const head = el("tr", {}, cells(lines[at]).map((each) => el("th", { scope: "col" }, inline(each))));
  const rows = [];
  for (at += 2; at < lines.length && lines[at].includes("|"); at++) rows.push(el("tr", {}, cells(lines[at]).map((each) => el("td", {}, inline(each)))));
  found.append(el("div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" }, el("table", {}, el("thead", {}, head), el("tbody", {}, rows))));
  return at;
}

function paragraph(lines, at, found) {
  const inside = [lines[at++]];
  for (; at < lines.length && lines[at].trim() && !/^\s*(```|~~~|#{1,6}\s|>)/.test(lines[at]) && !ITEM.test(lines[at]); at++) inside.push(lines[at]);
  found.append(el("p", {}, inline(inside.join("\n"))));
  return at;
}

function inline(text) {
  const found = [];
  for (let match; (match = text.match(INLINE)); text = text.slice(match.index + match[0].length)) {
    found.push(text.slice(0, match.index));
    const [, , code, bold, strong, slanted, words, link] = match;
    if (code !== undefined) found.push(el("code", {}, code.trim()));
    else if (link) found.push(el("a", { href: link, target: "_blank", rel: "noopener noreferrer" }, words));
    else if (slanted !== undefined) found.push(el("em", {}, inline(slanted)));
    else found.push(el("strong", {}, inline(bold ?? strong)));
  }
  return [...found, text];
}
