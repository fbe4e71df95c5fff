// The native agent at work, with every client on its session at once: what one allows, all see.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Browser } from "./browser.mjs";
import { Provider, STORY } from "./provider.mjs";
import { Scene } from "./scene.mjs";
import { until } from "./server.mjs";
import { answered, shown } from "./witnesses.mjs";

let browser;
const ends = [];
before(async () => (browser = await Browser.open({ after: (end) => ends.push(end) })));
after(() => Promise.all(ends.map((end) => end())));

const REASON = "Keep the sources; remove only what you made.";

async function story(t) {
  const provider = await Provider.start(t, join(STORY, "story.json"));
  const options = { agent: "native", config: provider.config, workspace: join(STORY, "workspace") };
  const scene = await Scene.set(t, browser, options);
  const face = await browser.page(scene.server);
  await face.goto(`${scene.server.base}/s/${scene.session}`);
  return { provider, scene, face };
}

/** What OpenCode's terminal client draws while it waits: a call that runs, with its command. */
async function assertDrawable({ feeds, session }, { tool: { callID }, metadata }) {
  for (const feed of Object.values(feeds)) {
    const part = feed.of(session).findLast(({ properties }) => properties.part?.callID === callID).properties.part;
    assert.equal(part.state.status, "running");
    assert.ok(part.state.input.command && part.state.input.command === metadata.command, JSON.stringify({ part, metadata }));
  }
}

/** Each is answered by another client, once all have seen it. */
async function answerTheStory(scene, face) {
  const { old, v2, session, page } = scene;
  const button = (name) => face.getByRole("button", { name });
  const asked = async () => {
    const request = await scene.permission();
    await shown(scene, request.id);
    await until("our page to ask", async () => (await button("Allow once").count()) === 1);
    await assertDrawable(scene, request);
    return request;
  };
  const told = (words) => until(`our page to say ${words}`, async () => (await face.getByText(words).count()) === 1);
  const first = await asked();
  const path = { id: session, permissionID: first.id };
  await old.postSessionIdPermissionsPermissionId({ path, body: { response: "once" }, throwOnError: true });
  await answered(scene, first, "once");
  await told("Allow once, by ");

  // Document 003's client has no button; how to answer stands among the arguments of the call that it shows.
  const second = await asked();
  const call = (await scene.smithy.live()).find(({ args }) => args?.request_id === second.id);
  const [, method, address] = call.args.answer.match(/^(POST) (\S+) with /);
  const always = call.args.options.find((option) => option.kind === "allow_always").id;
  assert.equal(await page.evaluate(send, { method, address, body: { option: always } }), 204);
  await answered(scene, second, "always");
  await told("Always allow `exit *`, by ");

  const third = await asked();
  await v2.permission.reply({ requestID: third.id, reply: "reject", message: REASON }, { throwOnError: true });
  const { error } = await answered(scene, third, "reject");
  assert.ok(error.includes(REASON), error);
  await told("Reject, by ");

  const waiting = async () => (await v2.question.list({}, { throwOnError: true })).data[0];
  const question = await until("a question", waiting);
  // Clients of Onyx know no questions.
  await shown(scene, question.id, ["opencode", "tolka", "smithy"]);
  await face.getByRole("radio", { name: /^Hej/ }).check();
  await button("Answer").click();
  await told("Hej, by ");
}

async function send({ method, address, body }) {
  const response = await fetch(address, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  return response.status;
}

const ofType = (events, type) => events.filter((event) => event.type === type);
const last = (events, type) => ofType(events, type).at(-1);

/** Everything of the story's first turn that a family has a word for, beside the words and the tools. */
async function tellsEverything(scene) {
  const facts = await scene.sources.tolka.events();
  const changed = ofType(facts, "file_changed").map(({ data }) => data);
  const relative = (path) => path.replace(`${scene.server.workspace}/`, "");
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

test("a long task: each permission is answered by one client and seen by all", { timeout: 600_000 }, async (t) => {
  const { provider, scene, face } = await story(t);
  await scene.play([["smithy", "Write a program that greets."]], () => answerTheStory(scene, face));
  const { truth, asks } = await scene.agree();
  assert.deepEqual(asks.map((ask) => ask.replies), [["once"], ["always"], ["reject"]]);
  const tools = truth.filter((item) => item.tool);
  assert.equal(tools.length, 23);
  assert.ok(tools.find((item) => item.tool === "bash" && item.status === "failed").output.includes(REASON));
  await tellsEverything(scene);
  const artifact = face.locator("#artifacts").getByText("Guide", { exact: true });
  await until("our page to show the artifact", async () => (await artifact.count()) === 1);

  const text = (name) => readFile(join(scene.server.workspace, name), "utf8");
  assert.match(await text("src/app.py"), /greet\(" "\.join\(sys\.argv\[1:\]\)\)/);
  assert.match(await text("README.md"), /See \[the guide\]/);
  await assert.rejects(text("made.txt"), /ENOENT/);
  const requests = await provider.requests();
  assert.deepEqual(requests.flatMap(({ refused }) => refused ?? []), []);
  assert.ok(requests.some(({ body }) => JSON.stringify(body).includes(REASON)), "the model was not told why");

  const { sandbox } = await scene.server.json("/v1");
  assert.ok(["bubblewrap", "landlock", "none"].includes(sandbox?.level) && sandbox.cannot_stop.length > 0, JSON.stringify(sandbox));
  const { grants, rules } = await scene.server.json("/v1/permissions");
  assert.ok(rules.some(({ permission, pattern, leave }) => permission === "bash" && pattern === "*" && leave === "ask"), JSON.stringify(rules));
  assert.deepEqual(grants.map(({ permission, pattern }) => [permission, pattern]), [["bash", "exit *"]]);
  await scene.server.json(`/v1/permissions/${grants[0].id}`, { method: "DELETE" });
  assert.deepEqual((await scene.server.json("/v1/permissions")).grants, []);

  await scene.play([["onyx", "Do what you refuse."]]);
  await scene.agree();
  assert.equal(last(scene.onyx.turns.packets, "prompt_response").stopReason, "refusal");
});
