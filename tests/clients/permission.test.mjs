// Permissions by the SDK's old call and its new one, and who may call at all.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Browser, Source } from "./browser.mjs";
import { Feed, oldClient, v2Client } from "./sdk.mjs";
import { Server, recording, until } from "./server.mjs";

const parts = [{ type: "text", text: "may I?" }];

test("a permission is answered once, by whichever call", async (t) => {
  const server = await Server.start(t, { agent: recording("opencode-perm"), pace: 20 });
  const [old, v2] = [oldClient(server), v2Client(server)];
  const feed = await Feed.open("v2", v2);
  t.after(() => feed.stop());
  const { data: session } = await old.session.create({ body: {}, throwOnError: true });
  const asked = async () => {
    const { data } = await v2.permission.list({}, { throwOnError: true });
    return data.find(({ sessionID }) => sessionID === session.id);
  };
  const answers = {
    "the old call": (permissionID, response) =>
      old.postSessionIdPermissionsPermissionId({ path: { id: session.id, permissionID }, body: { response } }),
    "the new call": (requestID, reply) => v2.permission.reply({ requestID, reply }),
  };
  const told = [];
  for (const [how, reply] of [["the old call", "once"], ["the new call", "always"], ["the new call", "reject"]]) {
    await old.session.promptAsync({ path: { id: session.id }, body: { parts }, throwOnError: true });
    const { id, permission, patterns, tool } = await until("a permission", asked);
    assert.equal(permission, "bash");
    assert.ok(patterns.length > 0 && tool.callID && tool.messageID);
    assert.equal((await answers[how](id, "perhaps")).response.status, 400);
    const { data, error } = await answers[how](id, reply);
    assert.equal(data, true, JSON.stringify(error));
    for (const answer of Object.values(answers)) {
      const { response } = await answer(id, reply);
      assert.ok([404, 409].includes(response.status), `a second answer was answered with ${response.status}`);
    }
    told.push({ sessionID: session.id, requestID: id, reply });
    await until("the end of the turn", () => feed.idle(session.id) === told.length);
  }
  const replies = feed.of(session.id).filter((event) => event.type === "permission.replied");
  assert.deepEqual(replies.map(({ properties: { sessionID, requestID, reply } }) => ({ sessionID, requestID, reply })), told);
  const nothing = await v2.permission.reply({ requestID: "per_nothing", reply: "once" });
  assert.equal(nothing.response.status, 404);
});

test("a server with a token lets in the SDK that has it, as OpenCode's own does", async (t) => {
  const token = "a-secret-of-the-test";
  const server = await Server.start(t, { agent: recording("opencode-rich"), pace: 20, token });
  const basic = (password) => ({ headers: { Authorization: `Basic ${btoa(`opencode:${password}`)}` } });
  for (const [name, make] of [["old", oldClient], ["v2", v2Client]]) {
    for (const options of [{}, basic("wrong")]) {
      const { response } = await make(server, options).session.list();
      assert.equal(response.status, 401);
      assert.match(response.headers.get("www-authenticate") ?? "", /^Basic/i);
    }
    const client = make(server, basic(token));
    const created = name === "old" ? await client.session.create({ body: {} }) : await client.session.create({});
    assert.ok(created.data?.id, JSON.stringify(created.error));
    const feed = await Feed.open(name, client);
    const { id } = created.data;
    await (name === "old" ? client.session.promptAsync({ path: { id }, body: { parts } }) : client.session.promptAsync({ sessionID: id, parts }));
    await until("the end of the turn", () => feed.idle(id) === 1);
    await feed.stop();
  }
  const bare = await fetch(`${server.base}/event`);
  assert.equal(bare.status, 401);
  await bare.body.cancel();
});

test("a browser that was given the link with the token needs nothing else", async (t) => {
  const token = "a-secret-of-the-test";
  const server = await Server.start(t, { agent: recording("opencode-rich"), pace: 20, token });
  const page = await (await Browser.open(t)).chromium.newPage();
  await page.goto(`${server.base}/?token=${token}`);
  assert.ok(!page.url().includes(token), "the token stayed in the address");
  const sources = { "/event": "session.created", "/v1/events": "session_created" };
  for (const path of Object.keys(sources)) sources[path] = [await Source.open(page, path), sources[path]];
  for (const [source] of Object.values(sources)) await until("the stream", () => source.connections());
  await page.evaluate(() => fetch("/session", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" }));
  for (const [source, type] of Object.values(sources)) await until(type, () => source.count(type));
});
