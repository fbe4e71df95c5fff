// The server is killed, and the clients come back by themselves with nothing lost and nothing twice.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";

import { Browser, Source } from "./browser.mjs";
import { Provider, STORY } from "./provider.mjs";
import { Feed, oldClient, v2Client } from "./sdk.mjs";
import { Server, recording, until } from "./server.mjs";

const idsOf = (events) => events.map((event) => event.id);

/** A session with readers that nobody will help to reconnect. */
async function watched(t, options) {
  const server = await Server.start(t, options);
  const client = oldClient(server);
  const feeds = {
    "the SDK's first export": await Feed.open("old", client),
    "the SDK's v2": await Feed.open("v2", v2Client(server)),
    "the SDK's global feed": await Feed.open("global", v2Client(server)),
  };
  t.after(() => Promise.all(Object.values(feeds).map((feed) => feed.stop())));
  const { data: session } = await client.session.create({ body: {}, throwOnError: true });
  const page = await (await Browser.open(t)).page(server);
  const events = `/v1/sessions/${session.id}/events`;
  const sources = {
    "EventSource of a session in opencode": await Source.open(page, `${events}?dialect=opencode`),
    "EventSource of a session in tolka": await Source.open(page, `${events}?dialect=tolka`),
    "EventSource of OpenCode's feed": await Source.open(page, "/event"),
  };
  const all = { ...feeds, ...sources };

  const connected = (times) =>
    Promise.all(
      Object.entries(all).map(([name, reader]) =>
        until(`${name} to come back`, async () => {
          const { connections } = reader;
          return (typeof connections === "number" ? connections : await reader.connections()) >= times;
        }, 90_000),
      ),
    );
  await connected(1);

  const prompt = (text) => {
    const parts = [{ type: "text", text }];
    return client.session.promptAsync({ path: { id: session.id }, body: { parts }, throwOnError: true });
  };
  /** Waits until a feed has so many events of a turn that goes on. */
  const inMidTurn = async (more) => {
    const [feed] = Object.values(feeds);
    const before = feed.of(session.id).length;
    const turns = feed.idle(session.id);
    await prompt("go");
    await until(`${more} events`, () => feed.of(session.id).length >= before + more);
    assert.equal(feed.idle(session.id), turns, "the turn was over too soon for this test");
  };
  const idle = (turns) =>
    Promise.all([
      ...Object.entries(feeds).map(([name, feed]) => until(`${name} to be idle`, () => feed.idle(session.id) === turns)),
      ...Object.entries(sources).map(([name, source]) => {
        const end = name.includes("tolka") ? "turn_ended" : "session.idle";
        return until(`${name} to be idle`, async () => (await source.count(end)) === turns);
      }),
    ]);

  /** Every reader must have exactly what a new one gets. */
  const agree = async () => {
    const journal = idsOf(await server.journal(session.id, "opencode"));
    const { "the SDK's global feed": global, ...plain } = feeds;
    for (const [name, feed] of Object.entries(plain)) assert.deepEqual(idsOf(feed.of(session.id)), journal, name);
    assert.deepEqual(idsOf(global.of(session.id)), idsOf(await server.journal(session.id, "opencode-current")));
    const { "EventSource of OpenCode's feed": feed, ...others } = sources;
    assert.deepEqual(idsOf(await others["EventSource of a session in opencode"].events()), journal);
    const facts = (await server.journal(session.id, "tolka")).map((fact) => fact.seq);
    assert.deepEqual((await others["EventSource of a session in tolka"].events()).map((fact) => fact.seq), facts);
    // It was opened after the session was, and tells of the server too.
    const heard = (await feed.events()).filter(({ properties }) => properties.sessionID === session.id);
    assert.deepEqual(idsOf(heard), journal.slice(journal.length - heard.length));
    return journal;
  };
  return { server, client, session: session.id, feeds, connected, prompt, inMidTurn, idle, agree };
}

test("three kills in mid-turn", { timeout: 600_000 }, async (t) => {
  const { server, session, feeds, connected, prompt, inMidTurn, idle, agree } = await watched(t, {
    agent: recording("opencode-rich"),
    pace: 3,
  });
  // Unless it is told otherwise, the SDK waits for three seconds, then six, and never less again.
  for (const feed of Object.values(feeds)) assert.ok(feed.retry <= 250, `the SDK was told to wait for ${feed.retry} ms`);
  for (const [kills, events] of [[1, 6], [2, 20], [3, 40]]) {
    await inMidTurn(events);
    await server.kill();
    await server.run();
    await connected(1 + kills);
    await idle(kills);
  }
  await prompt("to the end");
  await idle(4);
  const journal = await agree();
  assert.equal(new Set(journal).size, journal.length);
  const told = await server.journal(session, "opencode");
  const broken = told.filter((event) => event.type === "session.error").map(({ properties }) => properties.error.name);
  assert.deepEqual(broken, Array(3).fill("MessageAbortedError"));
});

test("a client that has heard nothing yet misses nothing either", { timeout: 600_000 }, async (t) => {
  const server = await Server.start(t, { agent: recording("opencode-rich") });
  const feeds = [await Feed.open("old", oldClient(server)), await Feed.open("v2", v2Client(server))];
  t.after(() => Promise.all(feeds.map((feed) => feed.stop())));
  await server.kill();
  await server.run();
  // The SDK waits for a moment before it comes back: this happens without it.
  const { id } = await server.json("/session", { method: "POST", body: {} });
  for (const feed of feeds) {
    await until("the SDK to come back", () => feed.connections === 2);
    await until("what it missed", () => feed.of(id).length > 0);
    assert.deepEqual(feed.of(id).map((event) => event.type), ["session.created"]);
  }
});

test("a stop in good order, in mid-turn", { timeout: 600_000 }, async (t) => {
  const { server, connected, prompt, inMidTurn, idle, agree } = await watched(t, { agent: recording("opencode-rich"), pace: 3 });
  await inMidTurn(20);
  await server.stop();
  await server.run();
  await connected(2);
  await idle(1);
  await prompt("to the end");
  await idle(2);
  await agree();
});

test("a kill in the middle of a command that was allowed, and on with the next prompt", { timeout: 600_000 }, async (t) => {
  const provider = await Provider.start(t, join(STORY, "story.json"));
  const options = { agent: "native", config: provider.config, workspace: join(STORY, "workspace") };
  const { server, client, session, feeds, connected, prompt, idle, agree } = await watched(t, options);
  const [feed] = Object.values(feeds);
  await prompt("Run something long.");
  const asked = await until("a permission", () => feed.of(session).find(({ type }) => type === "permission.asked"));
  const path = { id: session, permissionID: asked.properties.id };
  await client.postSessionIdPermissionsPermissionId({ path, body: { response: "once" }, throwOnError: true });
  const command = () => feed.of(session).findLast(({ properties: { part } }) => part?.tool === "bash")?.properties.part.state;
  await until("what the command prints", () => command()?.metadata?.output?.includes("started"));
  await server.kill();
  await server.run();
  await connected(2);
  await idle(1);
  assert.equal(command().status, "error");
  const before = (await provider.requests()).length;
  await prompt("Be steered.");
  await provider.open("steered");
  await idle(2);
  await agree();
  const after = (await provider.requests()).slice(before);
  assert.deepEqual(after.map(({ refused }) => refused), [null]);
  const sent = JSON.stringify(after[0].body.messages);
  assert.ok(sent.includes("sleep 60") && sent.includes("not run again"), `the model does not hear what became of its command: ${sent}`);
});
