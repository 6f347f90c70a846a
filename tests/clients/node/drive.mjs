// Drives a running service with OpenAI's own Node client and prints what it saw as one JSON object.
// Usage: node drive.mjs BASE_URL USER
import OpenAI from "openai";

const [baseURL, user] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "unused", maxRetries: 0 });
const base = { model: "fake-chat", user, memory_id: "t1" };
const weather = {
  type: "function",
  function: { name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } } } },
};
const seen = {};

const plain = await client.chat.completions.create({ ...base, messages: [{ role: "user", content: "Hello." }] });
seen.plain = plain.choices[0].message.content;
seen.usage = plain.usage;
seen.hits = plain.memory_hits;

const stream = await client.chat.completions.create({
  ...base,
  messages: [{ role: "user", content: [{ type: "text", text: "Count." }] }],
  stream: true,
  stream_options: { include_usage: true },
});
seen.streamed = "";
for await (const chunk of stream) {
  seen.streamed += chunk.choices[0]?.delta?.content ?? "";
  seen.finish = chunk.choices[0]?.finish_reason ?? seen.finish;
  seen.streamUsage = chunk.usage ?? seen.streamUsage;
  seen.last = Object.keys(chunk);
}

const runner = client.chat.completions.runTools({
  ...base,
  messages: [{ role: "user", content: "Does it rain in Oslo?" }],
  tools: [
    {
      type: "function",
      function: { ...weather.function, parse: JSON.parse, function: ({ city }) => `It rains in ${city}.` },
    },
  ],
});
seen.tools = await runner.finalContent();

seen.models = [];
for await (const model of client.models.list()) seen.models.push(model.id);

seen.errors = [];
const messages = [{ role: "user", content: "Hello." }];
for (const wrong of [{ model: "nope" }, { user: "a b" }, { n: 2 }, { messages: [] }]) {
  try {
    await client.chat.completions.create({ ...base, messages, ...wrong });
  } catch (error) {
    seen.errors.push([error.status, error.param, error.code, error.type]);
  }
}

const left = await client.chat.completions.create({
  ...base,
  messages: [{ role: "user", content: "A long story." }],
  stream: true,
});
for await (const chunk of left) {
  if (chunk.choices[0].delta.content) break; // Closes the connection.
}
console.log(JSON.stringify(seen));
