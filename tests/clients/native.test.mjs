// The native agent at work, with every client on its session at once: what one allows, all see.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Browser } from "./browser.mjs";
import { Provider, STORY, written } from "./provider.mjs";
import { Scene } from "./scene.mjs";
import { Feed, v2Client } from "./sdk.mjs";
import { Server, until, within } from "./server.mjs";
import { answered, shown } from "./witnesses.mjs";

let browser;
const ends = [];
before(async () => (browser = await Browser.open({ after: (end) => ends.push(end) })));
after(() => Promise.all(ends.map((end) => end())));

const REASON = "Keep the sources; remove only what you made.";

async function story(t) {
  const provider = await Provider.start(t, join(STORY, "story.json"));
  const options = { agent: "native", config: provider.config, workspace: join(STORY, "workspace") };
  return { provider, scene: await Scene.set(t, browser, options) };
}

/** Each is answered by another client, once all have seen it. */
async function answerTheStory(scene) {
  const { old, v2, session, page } = scene;
  const asked = async () => {
    const request = await scene.permission();
    await shown(scene, request.id);
    return request;
  };
  const first = await asked();
  const path = { id: session, permissionID: first.id };
  await old.postSessionIdPermissionsPermissionId({ path, body: { response: "once" }, throwOnError: true });
  await answered(scene, first, "once");

  // Document 003's client has no button; how to answer stands among the arguments of the call that it shows.
  const second = await asked();
  const call = (await scene.smithy.live()).find(({ args }) => args?.request_id === second.id);
  const [, method, address] = call.args.answer.match(/^(POST) (\S+) with /);
  const always = call.args.options.find((option) => option.kind === "allow_always").id;
  assert.equal(await page.evaluate(send, { method, address, body: { option: always } }), 204);
  await answered(scene, second, "always");

  const third = await asked();
  await v2.permission.reply({ requestID: third.id, reply: "reject", message: REASON }, { throwOnError: true });
  const { error } = await answered(scene, third, "reject");
  assert.ok(error.includes(REASON), error);

  const waiting = async () => (await v2.question.list({}, { throwOnError: true })).data[0];
  const question = await until("a question", waiting);
  await shown(scene, question.id, ["opencode", "tolka", "smithy"]);
  await v2.question.reply({ requestID: question.id, answers: [["Hej"]] }, { throwOnError: true });
}

async function send({ method, address, body }) {
  const response = await fetch(address, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  return response.status;
}

const ofType = (events, type) => events.filter((event) => event.type === type);
const last = (events, type) => ofType(events, type).at(-1);

/** Everything of the story's first turn that a family has a word for, beside the words and the tools. */
async function tellsEverything({ scene, server = scene.server }) {
  const facts = await scene.sources.tolka.events();
  const changed = ofType(facts, "file_changed").map(({ data }) => data);
  const relative = (path) => path.replace(`${server.workspace}/`, "");
  const names = changed.map(({ operation, path }) => `${operation} ${relative(path)}`);
  assert.deepEqual(names, [
    "create src/app.py", "update src/app.py", "update src/greet.py", "create docs/guide.md", "update README.md",
    "delete src/farewell.py", "create made.txt", "delete notes/old.txt", "delete made.txt",
  ]);
  const done = ["completed", "completed", "completed", "completed"];

  for (const feed of Object.values(scene.feeds)) {
    const events = feed.of(scene.session);
    const statuses = ofType(events, "session.status").map(({ properties }) => properties.status);
    assert.deepEqual(statuses.map(({ type }) => type), ["busy", "retry", "busy", "retry", "busy", "idle"]);
    const retries = statuses.filter(({ type }) => type === "retry");
    assert.ok(retries.every(({ attempt, next }) => attempt === 1 && next > 0) && /429/.test(retries[0].message), JSON.stringify(retries));
    assert.deepEqual(ofType(feed.events, "file.edited").map(({ properties }) => properties.file), changed.map(({ path }) => path));
    assert.deepEqual(last(events, "todo.updated").properties.todos.map(({ status }) => status), done);
    assert.deepEqual(last(events, "question.replied").properties.answers, [["Hej"]]);
    const edits = events.filter(({ properties: { part } }) => part?.tool === "edit" && part.state.status === "completed");
    assert.deepEqual(edits.map(({ properties: { part } }) => part.state.metadata.diff), changed.slice(1, 3).map(({ diff }) => diff));
    const commands = events.filter(({ properties: { part } }) => part?.tool === "bash" && part.state.status === "completed");
    assert.deepEqual(commands.map(({ properties: { part } }) => part.state.metadata.exit), [0, 3]);
  }

  for (const { packets } of Object.values(scene.onyx)) {
    assert.deepEqual(last(packets, "agent_plan_update").entries.map(({ status }) => status), done);
    assert.deepEqual(ofType(packets, "artifact_created").map(({ artifact }) => artifact.path), ["docs/guide.md"]);
    const ended = ofType(packets, "tool_call_progress").filter(({ status }) => status === "completed");
    const diffs = ended.flatMap(({ content }) => content ?? []).filter(({ type }) => type === "diff");
    // Those of the tools for files; this family's commands show what they printed.
    const files = ["src/app.py", "src/app.py", "src/greet.py", "docs/guide.md", "README.md", "src/farewell.py", "made.txt"];
    assert.deepEqual(diffs.map(({ path }) => relative(path)), files);
    assert.equal(last(packets, "prompt_response").stopReason, "end_turn");
  }

  const { packets: steps } = scene.steps;
  assert.deepEqual(ofType(steps, "file_write").map(({ operation, path }) => `${operation} ${path}`), names);
  assert.deepEqual(ofType(steps, "artifact_created").map(({ artifact }) => artifact.path), ["docs/guide.md"]);
  assert.deepEqual(last(steps, "plan").entries.map(({ status }) => status), done);

  for (const { events } of [scene.smithy, scene.viewer]) {
    const [{ data: started }] = ofType(facts, "turn_started");
    assert.match(started.checkpoint, /^[0-9a-f]{40}$/);
    assert.deepEqual(ofType(events, "user").map(({ checkpoint }) => checkpoint), [started.checkpoint]);
    const edits = ofType(events, "file_edit").map(({ file, diff }) => ({ file, diff }));
    assert.deepEqual(edits, changed.map(({ path, diff }) => ({ file: path, diff })));
    assert.equal(ofType(events, "error").length, 0);
  }
}

test("a long task: each permission is answered by one client and seen by all", { timeout: 180_000 }, async (t) => {
  const { provider, scene } = await story(t);
  await scene.play([["smithy", "Write a program that greets."]], () => answerTheStory(scene));
  const { truth, asks } = await scene.agree();
  assert.deepEqual(asks.map((ask) => ask.replies), [["once"], ["always"], ["reject"]]);
  const tools = truth.filter((item) => item.tool);
  assert.equal(tools.length, 23);
  assert.ok(tools.find((item) => item.tool === "bash" && item.status === "failed").output.includes(REASON));
  await tellsEverything({ scene });

  const text = (name) => readFile(join(scene.server.workspace, name), "utf8");
  assert.match(await text("src/app.py"), /greet\(" "\.join\(sys\.argv\[1:\]\)\)/);
  assert.match(await text("README.md"), /See \[the guide\]/);
  await assert.rejects(text("made.txt"), /ENOENT/);
  const requests = await provider.requests();
  assert.deepEqual(requests.flatMap(({ refused }) => refused ?? []), []);
  assert.ok(requests.some(({ body }) => JSON.stringify(body).includes(REASON)), "the model was not told why");

  await scene.play([["onyx", "Do what you refuse."]]);
  await scene.agree();
  assert.equal(last(scene.onyx.turns.packets, "prompt_response").stopReason, "refusal");
});

/** A server with a script of the test's own, and the SDK. */
async function scripted(t, script) {
  const provider = await Provider.start(t, script);
  const options = { agent: "native", config: provider.config, workspace: join(STORY, "workspace") };
  const server = await Server.start(t, options);
  const client = v2Client(server);
  const feed = await Feed.open("v2", client);
  t.after(() => feed.stop());
  const { data: session } = await client.session.create({}, { throwOnError: true });
  return { provider, server, client, feed, session: session.id };
}

const parts = (text) => [{ type: "text", text }];
const partsOf = (feed, session) => feed.of(session).flatMap(({ properties: { part } }) => part ?? []);

test("the SDK lists the models and the ways of working, and a plan changes nothing", { timeout: 120_000 }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tolka-script-"));
  t.after(() => rm(folder, { recursive: true }));
  const write = { name: "write", input: { filePath: "src/new.py", content: "print()\n" } };
  const script = await written(folder, [{ beats: [{ call: write }] }, { beats: [{ text: "I would write src/new.py." }] }]);
  const { provider, server, client, session } = await scripted(t, script);

  const { data: agents } = await client.app.agents({}, { throwOnError: true });
  assert.deepEqual(agents.map(({ name, mode }) => [name, mode]), [["build", "primary"], ["plan", "primary"]]);
  const { data: known } = await client.config.providers({}, { throwOnError: true });
  const models = known.providers.find(({ id }) => id === "scripted").models;
  assert.deepEqual(Object.keys(models), ["story"]);
  assert.deepEqual([models.story.limit.context, models.story.capabilities.attachment], [100_000, true]);
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

test("allowed by Onyx, aborted by the SDK in the middle of the command, and steered", { timeout: 120_000 }, async (t) => {
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
  assert.ok(Date.now() - began < 10_000, `the abort took ${Date.now() - began} ms`);
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
