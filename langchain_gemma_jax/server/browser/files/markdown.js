// A model's text as elements: what models write of Markdown, and nothing that could ask for anything.

import { button, copy, el } from "./dom.js";

const INLINE = /(`+)(.+?)\1|\*\*(.+?)\*\*|__(.+?)__|(?<!\w)\*(?=\S)(.+?)(?<=\S)\*(?!\w)|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)/s;
const ITEM = /^(\s*)(?:[-*+]|(\d+)[.)])\s+(.*)$/;

export function shown(text) {
  const lines = text.split("\n");
  const found = document.createDocumentFragment();
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const fence = line.match(/^\s*(```+|~~~+)\s*([\w+#.-]*)/);
    if (!line.trim()) at++;
    else if (fence) at = code(lines, at, fence, found);
    else if (/^\s*#{1,6}\s/.test(line)) found.append(el("p", { class: "heading" }, inline(lines[at++].replace(/^\s*#+\s*/, ""))));
    else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) { found.append(el("hr")); at++; }
    else if (/^\s*>/.test(line)) at = quote(lines, at, found);
    else if (ITEM.test(line)) at = list(lines, at, found);
    else if (line.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[at + 1] ?? "")) at = table(lines, at, found);
    else at = paragraph(lines, at, found);
  }
  return found;
}

function code(lines, at, [, fence, language], found) {
  const inside = [];
  for (at++; at < lines.length && !lines[at].trim().startsWith(fence); at++) inside.push(lines[at]);
  const text = inside.join("\n");
  const told = button("Copy", (event) => copy(text, event.currentTarget), { "aria-label": "Copy this code" });
  found.append(el("figure", { class: "code" }, el("figcaption", {}, el("span", {}, language || "text"), told), el("pre", { tabindex: "0" }, el("code", {}, text))));
  return at + 1;
}

function quote(lines, at, found) {
  const inside = [];
  for (; at < lines.length && /^\s*>/.test(lines[at]); at++) inside.push(lines[at].replace(/^\s*>\s?/, ""));
  found.append(el("blockquote", {}, shown(inside.join("\n"))));
  return at;
}

function list(lines, at, found) {
  const open = []; // lists, from the outermost one
  for (; at < lines.length; at++) {
    const item = lines[at].match(ITEM);
    if (!item) {
      if (!lines[at].trim() || !/^\s{2,}/.test(lines[at])) break;
      open.at(-1).list.lastChild.append(" ", inline(lines[at].trim()));
      continue;
    }
    const [, space, number, text] = item;
    while (open.length > 1 && space.length < open.at(-1).depth) open.pop();
    if (!open.length || space.length > open.at(-1).depth) {
      const made = el(number ? "ol" : "ul", number && number !== "1" ? { start: Number(number) } : {});
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
