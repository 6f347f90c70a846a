// Asks a running service for responses with the AI SDK, and prints what it saw as one JSON object.
// Usage: node ai_sdk.mjs BASE_URL USER
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [baseURL, user] = process.argv.slice(2);
const headers = { "X-Memory-User": user, "X-Memory-Id": "t1" };
const model = createOpenAI({ baseURL, apiKey: "unused", headers }).responses("fake-chat");
const tools = {
  get_weather: tool({
    description: "The weather of a city.",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => `It rains in ${city}.`,
  }),
};
const base = { model, maxRetries: 0 };
const seen = {};

const messages = [{ role: "user", content: "Hello." }];
const plain = await generateText({ ...base, messages });
seen.plain = plain.text;
seen.usage = plain.usage.totalTokens;
messages.push(...plain.response.messages, { role: "user", content: "Count." });

const streamed = streamText({ ...base, messages });
seen.streamed = "";
for await (const text of streamed.textStream) seen.streamed += text;
messages.push(...(await streamed.response).messages, { role: "user", content: "Does it rain in Oslo?" });

const asked = streamText({ ...base, messages, tools, stopWhen: stepCountIs(3) });
seen.tools = "";
for await (const text of asked.textStream) seen.tools += text;
messages.push(...(await asked.response).messages, { role: "user", content: "Why?" });

// The calls before are sent as references to items of earlier responses.
seen.afterwards = (await generateText({ ...base, messages, tools, stopWhen: stepCountIs(3) })).text;
console.log(JSON.stringify(seen));
