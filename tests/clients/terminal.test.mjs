// What OpenCode's terminal client reads to draw a tool and a permission. Without these fields it draws a spinner
// for ever, or asks a person to allow something that it does not show.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Feed, v2Client } from "./sdk.mjs";
import { Server, recording, until } from "./server.mjs";

/** A turn of Claude's, which asks for an edit and for a command; gives what the terminal client had at each ask. */
async function asks(t) {
  const server = await Server.start(t, { agent: recording("claude-rich"), pace: 4 });
  const client = v2Client(server);
  const feed = await Feed.open("global", client);
  t.after(() => feed.stop());
  const { data: session } = await client.session.create({}, { throwOnError: true });
  await client.session.promptAsync({ sessionID: session.id, parts: [{ type: "text", text: "go" }] }, { throwOnError: true });
  const parts = () => new Map(feed.of(session.id).flatMap(({ properties: { part } }) => (part ? [[part.callID ?? part.id, part]] : [])));
  const seen = [];
  for (const what of ["edit", "bash"]) {
    const asked = await until(what, () =>
      feed.of(session.id).find(({ type, properties }) => type === "permission.asked" && properties.permission === what),
    );
    const request = asked.properties;
    seen.push({ request, part: structuredClone(parts().get(request.tool.callID)) });
    await client.permission.reply({ requestID: request.id, reply: "once" }, { throwOnError: true });
  }
  await until("the end of the turn", () => feed.idle(session.id) === 1);
  return { seen, tools: [...parts().values()].filter((part) => part.type === "tool") };
}

test("a call that waits for leave is running, with its input", async (t) => {
  const { seen } = await asks(t);
  assert.deepEqual(seen.map(({ part }) => part.state.status), ["running", "running"]);
  assert.equal(seen[1].part.state.input.command, "ls; exit 3");
});

test("leave for an edit shows the edit", async (t) => {
  const { seen } = await asks(t);
  const { filepath, diff } = seen[0].request.metadata;
  assert.equal(filepath, "/workspace/claude-rich/a.ts");
  assert.match(diff, /^-const x = 1;$/m);
  assert.match(diff, /^\+const x = 2;$/m);
});

test("tools of files name the file as OpenCode does", async (t) => {
  const { tools } = await asks(t);
  const files = tools.filter(({ tool }) => ["read", "edit", "write"].includes(tool));
  assert.deepEqual(files.map(({ state }) => state.input.filePath), ["a.ts", "a.ts", "b.ts"].map((name) => `/workspace/claude-rich/${name}`));
});
