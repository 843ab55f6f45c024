// The conversation as it is seen: questions, answers, thoughts, cards of tools, and what each of them can be done with.

import { button, byId, copy, el, grow, keepFocus, seconds, whole } from "./dom.js";
import { GrowingText } from "./markdown.js";

const SUGGESTIONS = ["Explain in one sentence how a ring buffer works.", "Write a short thank-you note to a colleague.", "Which is larger, 9.11 or 9.9?"];
const EVERY = 100; // milliseconds between two draws of an answer that is written: eyes need no more, and the engine does
const STEP = 400; // milliseconds between two steps of the dots before an answer

export class Messages {
  constructor(chat, suggest) {
    this.log = byId("log");
    this.elements = new Map(); // by node
    this.texts = new WeakMap(); // by node, as elements
    this.shapes = new WeakMap(); // by node: what an answer had when it was drawn
    Object.assign(this, { pending: new Set(), planned: null, drawnAt: -EVERY, stale: false });
    Object.assign(this, { chat, suggest, editing: null, opened: new Set() }); // opened: nodes whose thoughts are read
    this.follows = true; // the log's end, until somebody scrolls up
    this.log.addEventListener("scroll", () => {
      this.follows = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 60;
    });
    document.addEventListener("visibilitychange", () => (this.stale ? this.drawAll() : this.plan()));
  }

  // Draw the whole path again, and keep the place of the keyboard and what is being typed.
  drawAll() {
    this.stale = document.hidden; // then it is drawn when somebody looks
    if (this.stale) return;
    const path = this.chat.conversation.path();
    const before = this.elements;
    this.elements = new Map();
    this.pending.clear();
    keepFocus(this.log, () => {
      const made = path.map((node) => {
        const there = node.waits && before.get(node); // a result that somebody may be typing
        if (there) this.elements.set(node, there);
        return there || this.drawn(node);
      });
      this.log.replaceChildren(...(path.length ? made : [this.welcome()]));
    });
    this.toEnd();
  }

  // Draw one node again: at once if the last draw is a while ago, and never while nobody looks.
  draw(node) {
    this.pending.add(node);
    this.plan();
  }

  plan() {
    if (!this.pending.size || this.planned !== null || document.hidden) return;
    const wait = this.drawnAt + EVERY - performance.now();
    if (wait <= 0) this.drawPending();
    else this.planned = setTimeout(() => { this.planned = null; if (!document.hidden) this.drawPending(); }, wait);
  }

  drawPending() {
    this.drawnAt = performance.now();
    for (const node of this.pending) {
      const before = this.elements.get(node);
      if (before?.isConnected && !this.grown(node, before)) keepFocus(this.log, () => before.replaceWith(this.drawn(node)));
    }
    this.pending.clear();
    this.toEnd();
  }

  // Let an answer grow where it stands. False if it has become something else than a longer one.
  grown(node, element) {
    if (node.state !== "writing" || this.shapes.get(node) !== shapeOf(node)) return false;
    this.textOf(node);
    if (node.thoughts) grow(element.querySelector(".thoughts .words").firstChild, node.thoughts);
    for (const [n, each] of [...element.querySelectorAll(".card.call pre")].entries()) grow(each.firstChild, argumentsOf(node.calls[n]));
    return true;
  }

  textOf(node) {
    if (!this.texts.has(node)) this.texts.set(node, new GrowingText());
    return this.texts.get(node).show(node.text);
  }

  toEnd() {
    if (this.follows) this.log.scrollTop = this.log.scrollHeight;
  }

  welcome() {
    return el("section", { class: "welcome" },
      el("h2", {}, "What do you want to know?"),
      el("p", { class: "quiet" }, "The model runs on this server. Nothing that is written here goes anywhere else."),
      el("div", { class: "suggestions" }, SUGGESTIONS.map((text) => button(text, () => this.suggest(text)))));
  }

  drawn(node) {
    const made = { human: this.question, ai: this.answer, tool: this.result }[node.role].call(this, node);
    this.elements.set(node, made);
    return made;
  }

  question(node) {
    if (this.editing?.node === node) return this.editing.form; // with what was typed in it
    return el("article", { class: "question", "aria-label": "You" },
      (node.pictures ?? []).map(({ kind, data }, n) => el("img", { src: `data:${kind};base64,${data}`, alt: `Picture ${n + 1}` })),
      node.lost ? el("p", { class: "quiet" }, `(${node.lost} pictures were too large to be kept when the page was loaded again)`) : null,
      el("div", { class: "words" }, node.text),
      this.actions(node, [["Edit", "edit", () => this.edit(node)], ["Copy", "copy", (event) => copy(node.text, event.currentTarget)]]));
  }

  edit(node) {
    const { form, field } = this.editor(node);
    this.editing = { node, form };
    this.drawAll();
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }

  editor(node) {
    const field = el("textarea", { rows: 3, "aria-label": "The question in other words" });
    field.value = node.text;
    const leave = () => {
      this.editing = null;
      this.drawAll();
      this.log.querySelector(`[data-place="${node.id}-edit"]`)?.focus();
    };
    const asked = (event) => {
      event.preventDefault();
      if (this.chat.busy) return; // what was typed stays until the answer is there
      if (!field.value.trim() || field.value.trim() === node.text) return leave();
      this.editing = null;
      this.follows = true;
      this.chat.edit(node, field.value.trim());
      byId("question").focus();
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { event.preventDefault(); leave(); }
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) asked(event);
    });
    const form = el("form", { class: "edit question", on: { submit: asked } }, field,
      el("div", { class: "actions" }, el("button", { class: "main" }, "Ask this instead"), button("Leave it", leave)));
    return { form, field };
  }

  answer(node) {
    const writing = node.state === "writing";
    const silent = isSilent(node);
    this.shapes.set(node, shapeOf(node));
    return el("article", { class: `answer ${node.state}`, "aria-label": node.model || "Answer", "aria-busy": writing ? "true" : "false" },
      node.thoughts ? this.thoughts(node, silent ? "Thinking …" : "Thoughts") : null,
      silent && !node.thoughts ? waiting() : null,
      this.textOf(node),
      node.calls.map((call) => this.call(call)),
      node.ruins.map((ruin) => el("section", { class: "card broken" }, el("h3", {}, `A call of ${ruin.name || "a tool"} that cannot be read`), el("pre", { tabindex: "0" }, ruin.raw), el("p", {}, ruin.error))),
      node.state === "stopped" ? el("p", { class: "quiet" }, "Stopped.") : null,
      node.problem ? el("p", { class: "problem", role: "alert" }, node.problem) : null,
      node.warning ? el("p", { class: "quiet" }, node.warning) : null,
      writing ? null : el("div", { class: "foot" }, this.cost(node) ?? el("span"), this.actions(node, [
        ["Again", "again", () => this.chat.again(node)],
        ...(node.text ? [["Copy", "copy", (event) => copy(node.text, event.currentTarget)]] : []),
      ])));
  }

  thoughts(node, title) {
    const follow = (event) => this.opened[event.target.open ? "add" : "delete"](node);
    return el("details", { class: "thoughts", open: this.opened.has(node), on: { toggle: follow } },
      el("summary", { data: { place: `${node.id}-thoughts` } }, title), el("div", { class: "words" }, node.thoughts));
  }

  call(call) {
    return el("section", { class: "card call" }, el("h3", {}, el("span", { class: "tag" }, "calls"), " ", call.name), el("pre", { tabindex: "0", "aria-label": `Arguments of ${call.name}` }, argumentsOf(call)));
  }

  result(node) {
    const head = el("h3", {}, el("span", { class: `tag ${node.failed ? "bad" : "good"}` }, node.failed ? "failed" : node.waits ? "waits for you" : "gave"), " ", node.name);
    if (!node.waits) return el("section", { class: "card result" }, head, el("pre", { tabindex: "0", "aria-label": `Result of ${node.name}` }, node.text));
    const field = el("textarea", { rows: 2, "aria-label": `Result of ${node.name}`, placeholder: "What does the tool give? This page cannot carry it out." });
    const give = (event) => { event.preventDefault(); this.chat.giveResult(node, field.value); };
    return el("form", { class: "card result", on: { submit: give } }, head, field, el("div", { class: "actions" }, el("button", { class: "main" }, "Give this result")));
  }

  // What an answer cost: the tokens that needed not be read again come first.
  cost(node) {
    const { usage, metadata } = node;
    if (!usage) return null;
    const known = usage.input_token_details?.cache_read ?? 0;
    const times = metadata?.timings ?? {};
    const rate = times.decode_s > 0 ? (usage.output_tokens - 1) / times.decode_s : 0;
    const route = metadata?.route;
    const facts = [
      el("span", { class: "known" }, `${whole(known)} of ${whole(usage.input_tokens)} tokens known`),
      times.first_token_s === undefined ? null : `first token after ${seconds(times.first_token_s)}`,
      `${whole(usage.output_tokens)} written${rate > 0 ? `, ${whole(rate)} a second` : ""}`,
      metadata?.model_name,
      route ? el("span", { title: route.reason ?? "" }, `routed to ${route.size}${route.reason ? `: ${route.reason}` : ""}`) : null,
      metadata?.finish_reason === "length" ? el("strong", {}, "cut off") : null,
    ].filter(Boolean);
    return el("p", { class: "cost" }, facts.map((each) => el("span", {}, each)));
  }

  actions(node, listed) {
    const { busy, conversation } = this.chat;
    const { count, number } = conversation.branchesAt(node);
    const step = (by) => () => this.chat.choose(node, by);
    const branches = count < 2 ? null : el("span", { class: "branches" },
      button("‹", step(-1), { "aria-label": "The branch before", disabled: busy, data: { place: `${node.parent}-before` } }),
      el("span", { "aria-label": `Branch ${number} of ${count}`, role: "img" }, `${number}/${count}`),
      button("›", step(1), { "aria-label": "The next branch", disabled: busy, data: { place: `${node.parent}-next` } }));
    return el("div", { class: "actions" }, branches, listed.map(([text, name, act]) => button(text, act, { disabled: busy && name !== "copy", data: { place: `${node.id}-${name}` } })));
  }
}

// Three dots, of which another is bright at each step. An animation of CSS would have each frame drawn meanwhile, on the
// cores that read the prompt.
function waiting() {
  const found = el("p", { class: "waiting", data: { step: "0" } }, el("span", {}, "Reading"), el("i"), el("i"), el("i"));
  const timer = setInterval(() => {
    if (!found.isConnected) clearInterval(timer);
    else if (!document.hidden) found.dataset.step = String((Number(found.dataset.step) + 1) % 3);
  }, STEP);
  return found;
}

const isSilent = (node) => node.state === "writing" && !node.text && !node.calls.length;

const argumentsOf = (call) => (call.args ? JSON.stringify(call.args, null, 2) : call.raw || "…");

// What an answer consists of, but for the words: as long as that is the same, only words are added.
const shapeOf = (node) => JSON.stringify([node.model, isSilent(node), !node.thoughts, node.calls.map((each) => each.name), node.ruins.length, node.warning]);
