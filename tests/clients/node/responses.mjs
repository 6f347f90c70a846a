// Asks a running service for responses with OpenAI's own Node client, and prints what it saw as one JSON object.
// Usage: node responses.mjs BASE_URL USER
import OpenAI from "openai";

const [baseURL, user] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "unused", maxRetries: 0, defaultHeaders: { "X-Memory-User": user } });
const model = "fake-chat";
const tools = [
  {
    type: "function",
    name: "get_weather",
    strict: false,
    parameters: { type: "object", properties: { city: { type: "string" } } },
  },
];
const seen = {};

const plain = await client.responses.create({ model, input: "Hello.", conversation: "t1" });
seen.plain = plain.output_text;
seen.usage = plain.usage.total_tokens;

seen.events = [];
const stream = await client.responses.create({
  model,
  input: "Count.",
  previous_response_id: plain.id,
  stream: true,
});
for await (const event of stream) {
  if (event.type !== seen.events.at(-1)) seen.events.push(event.type);
  if (event.type === "response.completed") seen.streamed = event.response.output[0].content[0].text;
}

const asked = await client.responses.stream({ model, input: "Does it rain?", conversation: "t1", tools }).finalResponse();
const call = asked.output.find((item) => item.type === "function_call");
const answered = await client.responses.create({
  model,
  previous_response_id: asked.id,
  tools,
  input: [{ type: "function_call_output", call_id: call.call_id, output: "It rains." }],
});
seen.tools = answered.output_text;
seen.retrieved = (await client.responses.retrieve(answered.id)).output_text;

const talk = await client.conversations.create({});
await client.responses.create({ model, input: "Hi.", conversation: talk.id });
seen.items = [];
for await (const item of client.conversations.items.list(talk.id, { order: "asc", limit: 1 })) seen.items.push(item.role);
await client.conversations.delete(talk.id);

console.log(JSON.stringify(seen));
