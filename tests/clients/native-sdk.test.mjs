// What people do with the native agent through OpenCode's SDK, and what its model hears of it.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "node:test";

import { Provider, STORY, written } from "./provider.mjs";
import { Feed, v2Client } from "./sdk.mjs";
import { Server, until, within } from "./server.mjs";

const ofType = (events, type) => events.filter((event) => event.type === type);
const last = (events, type) => ofType(events, type).at(-1);

/** A server with a script, which is a file or a list of answers; `config` is more of what the server is told. */
async function scripted(t, script, { config = "", feed: name = "v2" } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "tolka-script-"));
  t.after(() => rm(folder, { recursive: true }));
  const provider = await Provider.start(t, Array.isArray(script) ? await written(folder, script) : script);
  const options = { agent: "native", config: provider.config + config, workspace: join(STORY, "workspace") };
  const server = await Server.start(t, options);
  const client = v2Client(server);
  const feed = await Feed.open(name, client);
  t.after(() => feed.stop());
  const { data: session } = await client.session.create({}, { throwOnError: true });
  return { provider, server, client, feed, session: session.id };
}

const parts = (text) => [{ type: "text", text }];
const partsOf = (feed, session) => feed.of(session).flatMap(({ properties: { part } }) => part ?? []);

test("the SDK lists the models and the ways of working, and a plan changes nothing", { timeout: 600_000 }, async (t) => {
  const write = { name: "write", input: { filePath: "src/new.py", content: "print()\n" } };
  const script = [{ beats: [{ call: write }] }, { beats: [{ text: "I would write src/new.py." }] }];
  const { provider, server, client, session } = await scripted(t, script);

  const { data: agents } = await client.app.agents({}, { throwOnError: true });
  const ways = [["build", "primary"], ["plan", "primary"], ["explore", "subagent"], ["general", "subagent"]];
  assert.deepEqual(agents.map(({ name, mode }) => [name, mode]), ways);
  const { data: known } = await client.config.providers({}, { throwOnError: true });
  const models = known.providers.find(({ id }) => id === "scripted").models;
  assert.deepEqual(Object.keys(models), ["story"]);
  const { name, limit, capabilities } = models.story;
  // The terminal client shows the name beside every answer.
  assert.deepEqual([name, limit.context, capabilities.attachment], ["story", 100_000, true]);
  assert.equal((await client.config.get({}, { throwOnError: true })).data.model, "scripted/story");

  const prompt = { sessionID: session, agent: "plan", parts: parts("Plan a new file.") };
  const { data: answer } = await within("the plan", client.session.prompt(prompt, { throwOnError: true }));
  assert.deepEqual([answer.info.finish, answer.info.agent ?? answer.info.mode], ["stop", "plan"]);
  const { data: messages } = await client.session.messages({ sessionID: session }, { throwOnError: true });
  const call = messages.flatMap((message) => message.parts).find(({ type }) => type === "tool");
  assert.deepEqual([call.tool, call.state.input.tool, call.state.status], ["invalid", "write", "error"]);
  assert.match(call.state.error, /plan mode/);
  await assert.rejects(readFile(join(server.workspace, "src/new.py")), /ENOENT/);
  const { body } = (await provider.requests()).at(-1);
  const told = body.messages.find(({ role }) => role === "tool");
  assert.match(JSON.stringify(told.content), /plan mode/);
});

test("allowed by Onyx, aborted by the SDK in the middle of the command, and steered", { timeout: 600_000 }, async (t) => {
  const { provider, server, client, feed, session } = await scripted(t, join(STORY, "story.json"));
  await client.session.promptAsync({ sessionID: session, parts: parts("Run something long.") }, { throwOnError: true });
  const live = async () => (await server.json(`/api/build/approvals/sessions/${session}/live`)).items[0];
  const { approval_id: approval } = await until("an approval", live);
  await server.json(`/api/build/approvals/${approval}/decision`, { method: "POST", body: { decision: "APPROVED" } });
  const replied = ({ properties }) => properties.requestID === approval && properties.reply === "once";
  await until("the SDK to see the answer", () => ofType(feed.of(session), "permission.replied").some(replied));
  const command = () => partsOf(feed, session).findLast(({ tool }) => tool === "bash");
  await until("what the command prints", () => command()?.state.metadata?.output?.includes("started"));

  const began = Date.now();
  await client.session.abort({ sessionID: session }, { throwOnError: true });
  await until("the session to be idle", () => feed.idle(session) === 1);
  assert.ok(Date.now() - began < 30_000, `the abort took ${Date.now() - began} ms`);
  assert.equal(command().state.status, "error");
  assert.equal(last(feed.of(session), "session.error").properties.error.name, "MessageAbortedError");

  await client.session.promptAsync({ sessionID: session, parts: parts("Be steered.") }, { throwOnError: true });
  await until("the first words", () => partsOf(feed, session).some(({ text }) => text === "I begin."));
  const steered = { text: "Make it shorter.", steer: true };
  const accepted = await server.json(`/v1/sessions/${session}/prompt`, { method: "POST", body: steered });
  assert.ok(accepted.steers);
  await provider.open("steered");
  await until("the session to be idle", () => feed.idle(session) === 2);
  const { data: messages } = await client.session.messages({ sessionID: session }, { throwOnError: true });
  const said = messages.map(({ info, parts }) => [info.role, parts.flatMap(({ text }) => text ?? []).join("")]);
  assert.deepEqual(said.slice(-4), [
    ["user", "Be steered."], ["assistant", "I begin. And go on."], ["user", "Make it shorter."], ["assistant", "Shorter, then."],
  ]);
});

const PIXEL = (await readFile(join(STORY, "workspace/logo.png"))).toString("base64");

test("what a person attaches reaches the model, and a file outside of the workspace is asked for first", { timeout: 600_000 }, async (t) => {
  const { provider, server, client, session } = await scripted(t, [{ beats: [{ text: "I see." }], times: 0 }]);
  const outside = join(server.folder, "outside.txt");
  await writeFile(outside, "From elsewhere.\n");
  const file = (path, query = "") => ({ type: "file", mime: "text/plain", url: `${pathToFileURL(path)}${query}` });
  const attached = [
    ...parts("Look at these."),
    { type: "file", mime: "image/png", filename: "pixel.png", url: `data:image/png;base64,${PIXEL}` },
    file(join(server.workspace, "src/greet.py"), "?start=1&end=1"),
    file(outside),
  ];
  const answer = client.session.prompt({ sessionID: session, parts: attached }, { throwOnError: true });
  const asked = await until("a permission", async () => (await client.permission.list({}, { throwOnError: true })).data[0]);
  assert.equal(asked.permission, "outside");
  assert.ok(asked.metadata.filepath === outside, JSON.stringify(asked.metadata));
  assert.deepEqual(await provider.requests(), [], "the model was asked before the person");
  await client.permission.reply({ requestID: asked.id, reply: "once" }, { throwOnError: true });
  assert.equal((await within("the answer", answer)).data.info.finish, "stop");
  const [{ body, refused }] = await provider.requests();
  assert.equal(refused, null);
  const sent = JSON.stringify(body.messages);
  for (const words of ["Look at these.", `data:image/png;base64,${PIXEL}`, "def greet(name):", "From elsewhere."]) {
    assert.ok(sent.includes(words), `the model was not sent ${words}: ${sent}`);
  }
  assert.ok(!sent.includes("if not name"), "a line that nobody attached was sent");

  // Document 003's editor sends along what it shows.
  const current = { path: "src/greet.py", language: "python", content: "def greet(name):\n", selection: "greet(name)" };
  const chat = { messages: [{ role: "user", content: "And this?" }], context: { current_file: current }, dialog_id: session, stream: false };
  assert.equal((await server.json("/api/chat", { method: "POST", body: chat })).content, "I see.");
  const heard = JSON.stringify((await provider.requests()).at(-1).body.messages.at(-1).content);
  assert.ok(heard.includes("And this?") && heard.includes("greet(name)") && heard.includes("src/greet.py"), heard);
});

test("the terminal client is shown the edit that it is to allow, and what is rejected is not done", { timeout: 600_000 }, async (t) => {
  const edit = { name: "edit", input: { filePath: "README.md", oldString: "A program", newString: "Two programs" } };
  const script = [{ beats: [{ call: edit }] }, { beats: [{ text: "Then not." }] }];
  const { provider, server, client, feed, session } = await scripted(t, script, { config: '[permissions]\nedit = "ask"\n', feed: "global" });
  await client.session.promptAsync({ sessionID: session, parts: parts("Change it.") }, { throwOnError: true });
  const { properties: asked } = await until("a permission", () => last(feed.of(session), "permission.asked"));
  const readme = join(server.workspace, "README.md");
  const before = await readFile(readme, "utf8");
  assert.equal(asked.permission, "edit");
  assert.match(asked.metadata.diff, /^-A program that greets\.$/m);
  assert.match(asked.metadata.diff, /^\+Two programs that greets\.$/m);
  assert.ok(asked.metadata.filepath.endsWith("README.md"));
  const call = partsOf(feed, session).findLast(({ callID }) => callID === asked.tool.callID);
  assert.deepEqual([call.state.status, call.state.input], ["running", edit.input]);
  await client.permission.reply({ requestID: asked.id, reply: "reject", message: "One is enough." }, { throwOnError: true });
  await until("the session to be idle", () => feed.idle(session) === 1);
  assert.equal(await readFile(readme, "utf8"), before);
  assert.match(JSON.stringify((await provider.requests()).at(-1).body.messages.at(-1)), /One is enough\./);
});

test("each prompt of the SDK chooses its model", { timeout: 600_000 }, async (t) => {
  const config = '[[providers.scripted.models]]\nid = "other"\n';
  const { provider, client, session } = await scripted(t, [{ beats: [{ text: "Yes." }], times: 0 }], { config });
  for (const modelID of ["other", "story"]) {
    const prompt = { sessionID: session, model: { providerID: "scripted", modelID }, parts: parts("Who is there?") };
    const { data } = await within("the answer", client.session.prompt(prompt, { throwOnError: true }));
    assert.deepEqual([data.info.providerID, data.info.modelID], ["scripted", modelID]);
  }
  assert.deepEqual((await provider.requests()).map(({ body }) => body.model), ["other", "story"]);
  const nobody = { sessionID: session, model: { providerID: "scripted", modelID: "nobody" }, parts: parts("And you?") };
  const { error, response } = await client.session.prompt(nobody);
  assert.equal(response.status, 400);
  assert.match(error.data.message, /scripted\/nobody/);
});
