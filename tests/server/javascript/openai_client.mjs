// OpenAI's own client: what each thing that is asked gives, as JSON.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "none", maxRetries: 0 });
const messages = [{ role: "user", content: "Hi" }];
const parameters = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
const tools = [{ type: "function", function: { name: "ring", description: "Rings", parameters } }];
const asked = { model: "scripted", messages };
const found = {};

const whole = await client.chat.completions.create(asked);
found.whole = [whole.choices[0].message.content, whole.choices[0].finish_reason, whole.usage.total_tokens > 0];

let text = "", usage = null;
for await (const chunk of await client.chat.completions.create({
  ...asked, stream: true, stream_options: { include_usage: true },
})) {
  text += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}
found.streamed = [text, usage.completion_tokens > 0];

const called = await client.chat.completions.create({ ...asked, tools, tool_choice: "required" });
const call = called.choices[0].message.tool_calls[0].function;
found.called = [call.name, JSON.parse(call.arguments), called.choices[0].finish_reason];

const streamedCall = await client.chat.completions.stream({ ...asked, tools }).finalChatCompletion();
found.streamedCall = JSON.parse(streamedCall.choices[0].message.tool_calls[0].function.arguments);

const format = { type: "json_schema", json_schema: { name: "Ring", schema: parameters, strict: true } };
const object = await client.chat.completions.create({ ...asked, response_format: format });
found.object = JSON.parse(object.choices[0].message.content);

const response = await client.responses.create({ model: "scripted", input: "Hi" });
found.response = response.output_text;

found.errors = [];
for (const [what, body] of [
  ["too long", { ...asked, messages: [{ role: "user", content: "x".repeat(9000) }] }],
  ["unknown field", { ...asked, color: "red" }],
]) {
  try {
    await client.chat.completions.create(body);
  } catch (error) {
    found.errors.push([what, error instanceof OpenAI.BadRequestError, error.status, error.code]);
  }
}
try {
  await client.embeddings.create({ model: "scripted", input: "Hi" });
} catch (error) {
  found.errors.push(["embeddings", error instanceof OpenAI.BadRequestError, error.status, error.code]);
}

const stopped = await client.chat.completions.create({ ...asked, stream: true });
for await (const chunk of stopped) {
  found.stopped = chunk.choices[0].delta.role;
  break; // which closes the connection
}
console.log(JSON.stringify(found));
