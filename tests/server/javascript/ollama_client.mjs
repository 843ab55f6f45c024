// Ollama's own client, as npm has it: what each thing that is asked gives, as JSON.
import { Ollama } from "ollama";

const client = new Ollama({ host: process.argv[2] });
const messages = [{ role: "user", content: "Hi" }];
const parameters = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
const tools = [{ type: "function", function: { name: "ring", description: "Rings", parameters } }];
const asked = { model: "sprout-s", messages };
const found = {};

const whole = await client.chat({ ...asked, options: { temperature: 0, num_ctx: 2048 }, keep_alive: "10m" });
found.whole = [whole.message.content, whole.done, whole.done_reason, whole.total_duration > 0];

let text = "", last = null;
for await (const part of await client.chat({ ...asked, stream: true })) {
  text += part.message.content;
  last = part;
}
found.streamed = [text, last.done, last.eval_count > 0];

const called = await client.chat({ ...asked, tools });
found.called = called.message.tool_calls.map((call) => [call.function.name, call.function.arguments]);
const result = { role: "tool", tool_name: "ring", content: "ding" };
found.after = (await client.chat({ ...asked, messages: [...messages, called.message, result], tools })).message.content;

const thought = await client.chat({ ...asked, think: true });
found.thought = [thought.message.thinking.trim(), thought.message.content];
found.object = JSON.parse((await client.chat({ ...asked, format: parameters })).message.content);

found.generated = (await client.generate({ model: "sprout-s", prompt: "Hi" })).response;
text = "";
for await (const part of await client.generate({ model: "sprout-s", prompt: "Hi", stream: true })) text += part.response;
found.generatedLive = text;

found.listed = (await client.list()).models.map((model) => model.name).includes("sprout-s");
found.resident = (await client.ps()).models;
const shown = await client.show({ model: "sprout-s" });
found.shown = [shown.capabilities.includes("tools"), shown.details.family];
found.pulled = (await client.pull({ model: "sprout-s" })).status;
found.version = typeof (await client.version()).version;

found.errors = [];
for (const [what, act] of [
  ["option", () => client.chat({ ...asked, options: { mirostat: 1 } })],
  ["too long", () => client.chat({ ...asked, messages: [{ role: "user", content: "x".repeat(9000) }] })],
  ["unknown model", () => client.show({ model: "llama3" })],
  ["vectors", () => client.embed({ model: "sprout-s", input: ["Hi"] })],
]) {
  try {
    await act();
  } catch (error) {
    found.errors.push([what, error.status_code, error.message.length > 20]);
  }
}

const stopped = await client.chat({ ...asked, stream: true });
for await (const part of stopped) {
  found.stopped = part.message.role;
  stopped.abort();
  break;
}
console.log(JSON.stringify(found));
