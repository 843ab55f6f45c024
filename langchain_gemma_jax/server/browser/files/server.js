// The server that this page came from, and no other: what it does now, and answers as they come.

import { kept } from "./store.js";

const home = document.baseURI; // the page's own address, so that a path before it is kept

export class ServerProblem extends Error {
  constructor(message, status, name) {
    super(message);
    this.status = status;
    this.name = name || "ServerProblem";
  }

  get wantsKey() { return this.status === 401; }
}

export const key = kept("sessionStorage", "key");

async function asked(path, how = {}) {
  const headers = { ...how.headers };
  if (key.get()) headers.authorization = `Bearer ${key.get()}`;
  let response;
  try {
    response = await fetch(new URL(path, home), { cache: "no-store", ...how, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerProblem("The server does not answer. Is it still running?", 0);
  }
  if (!response.ok) throw problemOf(await response.json().catch(() => ({})), response.status);
  return response;
}

function problemOf(told, status) {
  const { message, name } = told.error ?? {};
  return new ServerProblem(message || `The server answered with the status ${status}.`, status, name);
}

export async function activity() {
  return (await asked("activity")).json();
}

// What the server says while it answers, an object a line: see wire/answer_forms.py.
export async function* answer(calls, messages, options, session, signal) {
  const response = await asked(`${calls}stream`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-session-id": session },
    body: JSON.stringify({ messages, options }),
    signal,
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      if (signal.aborted) throw error;
      return { done: true };
    });
    if (done) throw new ServerProblem("The connection broke before the answer was whole.", 0);
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const told = JSON.parse(line);
      if (told.error) throw problemOf(told, 200);
      if (told.end) return;
      yield told;
    }
  }
}
