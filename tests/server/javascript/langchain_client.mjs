// LangChain's chat model for OpenAI, in JavaScript.
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";

const model = new ChatOpenAI({
  model: "scripted", apiKey: "none", maxRetries: 0, configuration: { baseURL: `${process.argv[2]}/v1` },
});
const Ring = z.object({ n: z.number().int() });
const ring = tool(({ n }) => "ding".repeat(n), { name: "ring", description: "Rings", schema: Ring });
const found = {};

found.whole = (await model.invoke("Hi")).text;
found.streamed = "";
for await (const chunk of await model.stream("Hi")) found.streamed += chunk.text;

const said = await model.bindTools([ring]).invoke("Hi");
found.called = [said.tool_calls[0].name, said.tool_calls[0].args];
const result = await ring.invoke(said.tool_calls[0]);
found.after = (await model.bindTools([ring]).invoke([new HumanMessage("Hi"), said, result])).text;
found.result = result instanceof ToolMessage;
found.object = await model.withStructuredOutput(Ring, { method: "jsonSchema" }).invoke("Hi");
try {
  await model.invoke("x".repeat(9000));
} catch (error) {
  found.error = [error.status, error.code];
}
console.log(JSON.stringify(found));
