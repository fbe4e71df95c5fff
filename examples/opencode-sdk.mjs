// OpenCode's own SDK, unchanged, against Tolka: makes a session, prompts it, prints the feed, allows what is asked.
//
//   npm install @opencode-ai/sdk && node opencode-sdk.mjs "add a test for the parser"

import { createOpencodeClient } from "@opencode-ai/sdk/v2";

const baseUrl = process.env.TOLKA ?? "http://127.0.0.1:4096";
const token = process.env.TOLKA_TOKEN;
const client = createOpencodeClient({ baseUrl, throwOnError: true, headers: token ? { authorization: `Bearer ${token}` } : {} });
const text = process.argv.slice(2).join(" ") || "Show me what you can do.";

// Subscribed first, so that nothing is missed. The SDK comes back by itself, with the id of the last event it has.
const { stream } = await client.event.subscribe({});
const { data: session } = await client.session.create({ title: text.slice(0, 80) });
await client.session.promptAsync({ sessionID: session.id, parts: [{ type: "text", text }] });

const states = new Map();
for await (const { type, properties } of stream) {
  const { sessionID = properties.part?.sessionID } = properties;
  if (sessionID !== session.id) continue;
  if (type === "message.part.delta" && properties.field === "text") process.stdout.write(properties.delta);
  if (type === "message.part.updated" && properties.part.type === "tool") showTool(properties.part);
  if (type === "permission.asked") {
    console.log(`\n[asked] ${properties.permission} ${properties.patterns.join(", ")}: once`);
    await client.permission.reply({ requestID: properties.id, reply: "once" });
  }
  if (type === "session.error") console.log(`\n[error] ${properties.error.data?.message ?? properties.error.name}`);
  if (type === "session.idle") break;
}
console.log(`\n${baseUrl}/s/${session.id}`);
process.exit(0);

/** A tool's part is told again whenever something changes; only a new status is news here. */
function showTool({ callID, tool, state }) {
  if (states.get(callID) === state.status) return;
  states.set(callID, state.status);
  console.log(`\n[${state.status}] ${tool} ${state.title ?? JSON.stringify(state.input)}`);
}
