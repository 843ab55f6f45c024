// A conversation as a tree: an edited question or another answer is a branch beside the first one. Nothing is lost.

import { kept } from "./store.js";

const store = kept("sessionStorage", "conversation");

export class Conversation {
  constructor(told = {}) {
    this.session = told.session ?? crypto.randomUUID?.() ?? String(Math.random()).slice(2);
    this.nodes = new Map((told.nodes ?? [{ id: 0, parent: null, children: [], chosen: 0 }]).map((each) => [each.id, each]));
    this.next = Math.max(...this.nodes.keys()) + 1;
  }

  static kept() {
    try {
      const found = new Conversation(JSON.parse(store.get()) ?? {});
      for (const node of found.nodes.values()) if (node.state === "writing") cutShort(node); // the page was left
      return found;
    } catch {
      return new Conversation();
    }
  }

  keep() {
    const told = { session: this.session, nodes: [...this.nodes.values()] };
    if (store.set(JSON.stringify(told))) return;
    // Pictures are too large for the browser's store: the words stay.
    const bare = told.nodes.map((each) => (each.pictures?.length ? { ...each, pictures: [], lost: each.pictures.length } : each));
    if (!store.set(JSON.stringify({ ...told, nodes: bare }))) store.forget();
  }

  get root() { return this.nodes.get(0); }

  add(parent, facts) {
    const node = { id: this.next++, parent: parent.id, children: [], chosen: 0, ...facts };
    this.nodes.set(node.id, node);
    parent.chosen = parent.children.push(node.id) - 1;
    return node;
  }

  parentOf(node) { return this.nodes.get(node.parent); }

  // The messages that are shown: from the beginning, by the branch that was chosen at each of them.
  path(until = null) {
    const found = [];
    for (let node = this.root; node.children.length; ) {
      node = this.nodes.get(node.children[node.chosen]);
      found.push(node);
      if (node === until) break;
    }
    return found;
  }

  get last() { return this.path().at(-1) ?? this.root; }

  branchesAt(node) {
    const { children, chosen } = this.parentOf(node);
    return { count: children.length, number: chosen + 1 };
  }

  choose(node, step) {
    const parent = this.parentOf(node);
    parent.chosen = (parent.chosen + step + parent.children.length) % parent.children.length;
  }
}

// An answer that was not written to its end. A call that broke off was no call.
export function cutShort(node) {
  Object.assign(node, { state: "stopped", calls: [] });
}

// The messages as the server's client sends them.
export function sent(path, system) {
  const found = system.trim() ? [{ type: "system", content: system.trim() }] : [];
  for (const node of path) {
    if (node.role === "human") found.push({ type: "human", content: contentOf(node) });
    else if (node.role === "tool") found.push({ type: "tool", content: node.text, tool_call_id: node.call, name: node.name, status: node.failed ? "error" : "success" });
    else if (node.text || node.calls.length || node.ruins.length) found.push(answerOf(node));
  }
  return found;
}

function contentOf(node) {
  if (!node.pictures?.length) return node.text;
  const pictures = node.pictures.map(({ kind, data }) => ({ type: "image", base64: data, mime_type: kind }));
  return node.text ? [...pictures, { type: "text", text: node.text }] : pictures;
}

function answerOf(node) {
  const content = node.thoughts ? [{ type: "reasoning", reasoning: node.thoughts }, { type: "text", text: node.text }] : node.text;
  return {
    type: "ai",
    content,
    tool_calls: node.calls.map(({ name, args, id }) => ({ type: "tool_call", name, args, id })),
    invalid_tool_calls: node.ruins.map(({ name, raw, error, id }) => ({ type: "invalid_tool_call", name, args: raw, error, id })),
  };
}
