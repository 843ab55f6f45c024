// The course of a conversation: questions go out, answers come in, tools are carried out, branches begin.

import { cutShort, sent } from "./conversation.js";
import { answer } from "./server.js";
import { carriedOut } from "./tools.js";

const MOST_ROUNDS = 10; // calls of tools in a row, for one question
const NO_RESULT = "No result was given."; // to a call after which something else was asked

export class Chat {
  // `how` tells what is asked for: {calls, options, system}. `changed` gets each node that looks otherwise now, and null
  // when the path itself does; `keyWanted` a refusal for want of a key; `tell` what belongs to no answer.
  constructor(conversation, { how, changed, keyWanted, tell }) {
    Object.assign(this, { conversation, how, changed, keyWanted, tell, stopping: null });
  }

  get busy() { return this.stopping !== null; }

  begin(conversation) {
    this.stop();
    const before = this.conversation;
    this.conversation = conversation;
    this.saved(null);
    return before;
  }

  stop() { this.stopping?.abort(); }

  // Each of these waits for nothing and does nothing while an answer is written: a question would stay without one.
  ask(text, pictures) {
    const { conversation } = this;
    if (this.busy) return undefined;
    for (const node of conversation.path()) if (node.waits) Object.assign(node, { waits: false, failed: true, text: NO_RESULT });
    return this.run(conversation.add(conversation.last, { role: "human", text, pictures }));
  }

  // A question in other words: a branch beside it.
  edit(node, text) {
    const { conversation } = this;
    if (this.busy) return undefined;
    return this.run(conversation.add(conversation.parentOf(node), { role: "human", text, pictures: node.pictures ?? [] }));
  }

  // Another answer to the same question: a branch beside the first.
  again(node) { return this.run(this.conversation.parentOf(node)); }

  choose(node, step) {
    this.conversation.choose(node, step);
    this.saved(null);
  }

  // A person gives the result of a call that this page cannot carry out.
  giveResult(node, text) {
    Object.assign(node, { text, waits: false });
    this.saved(node);
    const path = this.conversation.path();
    return path.some((each) => each.waits) ? undefined : this.run(path.at(-1));
  }

  async run(parent) {
    if (this.busy) return;
    const { conversation } = this;
    this.stopping = new AbortController();
    try {
      for (let round = 0; round < MOST_ROUNDS; round++) {
        const path = conversation.path(parent);
        const node = conversation.add(parent, { role: "ai", text: "", thoughts: "", calls: [], ruins: [], state: "writing" });
        this.saved(null);
        await this.write(node, path);
        if (node.state !== "done" || !node.calls.length) return;
        parent = this.carryOut(node);
        if (conversation.path().some((each) => each.waits)) return;
      }
      this.tell(`The model called tools ${MOST_ROUNDS} times without an answer. Ask in smaller steps.`);
    } finally {
      this.stopping = null;
      this.saved(null);
    }
  }

  carryOut(node) {
    let parent = node;
    for (const call of node.calls) {
      const result = carriedOut(call);
      const facts = result ?? { text: "", failed: false, waits: true };
      parent = this.conversation.add(parent, { role: "tool", name: call.name, call: call.id, ...facts });
    }
    this.saved(null);
    return parent;
  }

  async write(node, path) {
    const { conversation, stopping: { signal } } = this;
    try {
      const { calls, options, system } = await this.how();
      for await (const told of answer(calls, sent(path, system), options, conversation.session, signal)) {
        take(node, told);
        this.changed(node);
      }
      node.state = "done";
      node.calls = node.calls.filter((call) => call.args);
    } catch (error) {
      cutShort(node);
      if (!signal.aborted) {
        Object.assign(node, { state: "failed", problem: error.message });
        if (error.wantsKey) this.keyWanted(error);
      }
    }
    this.saved(node);
  }

  saved(node) {
    this.conversation.keep();
    this.changed(node);
  }
}

function take(node, told) {
  if (told.model) node.model = told.model;
  if (told.warning) node.warning = String(told.warning.message ?? told.warning.arguments?.[0] ?? "The server warned.");
  if (told.usage) Object.assign(node, { usage: told.usage, metadata: told.metadata });
  for (const [kind, ...facts] of told.events ?? []) {
    const call = node.calls.at(-1);
    if (kind === "text") node.text += facts[0];
    else if (kind === "thought") node.thoughts += facts[0];
    else if (kind === "call") node.calls.push({ name: facts[0], raw: "", args: null, id: `call-${node.id}-${node.calls.length}` });
    else if (kind === "arguments") call.raw += facts[0];
    else if (kind === "called") call.args = facts[0];
    else if (kind === "invalid") {
      if (call && !call.args) node.calls.pop();
      node.ruins.push({ raw: facts[0], error: facts[1], name: facts[2] ?? "", id: `ruin-${node.id}-${node.ruins.length}` });
    }
  }
}
