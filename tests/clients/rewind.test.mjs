// Going back and forth with the native agent's files and its conversation, by both exports of OpenCode's SDK and by
// AgentSmithy's routes, while clients of every family look on.

import assert from "node:assert/strict";
import { access, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Browser } from "./browser.mjs";
import { Provider, written } from "./provider.mjs";
import { Scene } from "./scene.mjs";
import { Feed, v2Client } from "./sdk.mjs";
import { Server, until, within } from "./server.mjs";
import { fromMessages } from "./transcript.mjs";

let browser;
const ends = [];
before(async () => (browser = await Browser.open({ after: (end) => ends.push(end) })));
after(() => Promise.all(ends.map((end) => end())));

const call = (name, input) => ({ beats: [{ call: { name, input } }] });
const say = (text) => ({ beats: [{ text }] });
const write = (filePath, content) => call("write", { filePath, content });
const bash = (command) => call("bash", { command, description: "Make it" });

const ALLOWED = '[permissions]\nbash = "allow"\n';

/** What a server with a script of a test's own is told. */
async function scripted(t, answers) {
  const folder = await mkdtemp(join(tmpdir(), "tolka-rewind-"));
  t.after(() => rm(folder, { recursive: true }));
  const provider = await Provider.start(t, await written(folder, answers));
  return { provider, options: { agent: "native", config: provider.config + ALLOWED } };
}

/** One way to call both exports. */
const EXPORTS = {
  old: ({ old }) => {
    const asked = (method) => async (id, body) => (await old.session[method]({ path: { id }, body, throwOnError: true })).data;
    const diff = async (id, messageID) => (await old.session.diff({ path: { id }, query: { messageID }, throwOnError: true })).data;
    return { diff, get: asked("get"), revert: asked("revert"), unrevert: asked("unrevert"), fork: asked("fork"), messages: asked("messages") };
  },
  v2: ({ v2 }) => {
    const asked = (method) => async (sessionID, body) => (await v2.session[method]({ sessionID, ...body }, { throwOnError: true })).data;
    const diff = async (id, messageID) => asked("diff")(id, { messageID });
    return { diff, get: asked("get"), revert: asked("revert"), unrevert: asked("unrevert"), fork: asked("fork"), messages: asked("messages") };
  },
};

const there = (path) => access(path).then(() => true, () => false);

/** The texts of some files, and null for those that are not there. */
const texts = ({ workspace }, ...names) =>
  Promise.all(names.map((name) => readFile(join(workspace, name), "utf8").catch(() => null)));

const spoken = (items) => items.filter(({ role }) => role === "user" || role === "agent");

/** What each family shows of the conversation; one that loads it anew, as a person does who comes back. */
async function shown({ server, session, onyx, v2 }) {
  const asked = (method) => v2.session[method]({ sessionID: session }, { throwOnError: true });
  const [{ data: info }, { data: messages }] = [await asked("get"), await asked("messages")];
  // OpenCode's terminal client draws what stands before the boundary.
  const boundary = messages.findIndex((message) => message.info.id === info.revert?.messageID);
  const { events } = await server.json(`/api/dialogs/${session}/history?limit=100`);
  const roles = { user: "user", chat: "agent" };
  const view = await server.json(`/v1/sessions/${session}/view`);
  const visible = view.messages.filter(({ hidden }) => !hidden);
  return {
    opencode: spoken(fromMessages(boundary < 0 ? messages : messages.slice(0, boundary))),
    onyx: spoken(await onyx.turns.rows()),
    smithy: joined(events.filter(({ type }) => roles[type]).map(({ type, content }) => ({ role: roles[type], text: content }))),
    tolka: joined(visible.flatMap(({ role, parts }) => parts.flatMap((part) => ofPart(role, part)))),
  };
}

/** A prompt's parts are blocks of content, an agent's are texts and calls. */
const ofPart = (role, { content, text }) => (content ?? text ? { role, text: (content ?? text).text } : []);

/** Words in a row of one role are one item. */
const joined = (items) =>
  items.reduce((all, { role, text }) => {
    if (all.at(-1)?.role === role) all.at(-1).text += text;
    else all.push({ role, text });
    return all;
  }, []);

async function assertShown(scene, expected, what) {
  const items = expected.map((text, at) => ({ role: at % 2 ? "agent" : "user", text }));
  for (const [family, told] of Object.entries(await shown(scene))) assert.deepEqual(told, items, `${family}, ${what}`);
}

const FILES = ["app.py", "build/out.txt", "other.py"];

for (const [name, ways] of Object.entries(EXPORTS)) {
  test(`back and forth by the SDK's ${name}, and every family shows the same`, { timeout: 600_000 }, async (t) => {
    const script = [
      write("app.py", "one\n"), say("Written."),
      call("edit", { filePath: "app.py", oldString: "one", newString: "two" }), bash("mkdir -p build && echo x > build/out.txt"), say("Edited."),
      write("other.py", "other\n"), say("Other."),
    ];
    const { provider, options } = await scripted(t, script);
    const scene = await Scene.set(t, browser, options);
    const { server, session } = scene;
    const sdk = ways(scene);
    await writeFile(join(server.workspace, "mine.txt"), "mine\n");
    await scene.play([[name, "Write it."]]);
    await scene.play([["smithy", "Edit it."]]);
    await scene.agree();
    assert.deepEqual(await texts(server, ...FILES), ["two\n", "x\n", null]);
    const prompts = (await sdk.messages(session)).filter(({ info }) => info.role === "user").map(({ info }) => info.id);
    const [first, second] = prompts;
    const brief = (diffs) => diffs.map(({ file, status, additions, deletions }) => [file, status, additions, deletions]);
    assert.deepEqual(brief(await sdk.diff(session, second)), [["app.py", "modified", 1, 1], ["build/out.txt", "added", 1, 0]]);
    assert.deepEqual(brief(await sdk.diff(session)), [["app.py", "added", 1, 0], ["build/out.txt", "added", 1, 0]]);
    const [{ patch }] = await sdk.diff(session, second);
    assert.match(patch, /^-one\n\+two$/m);

    const all = ["Write it.", "Written.", "Edit it.", "Edited."];
    await assertShown(scene, all, "before anything was taken back");
    for (let times = 0; times < 2; times++) {
      const reverted = await sdk.revert(session, { messageID: second });
      assert.equal(reverted.revert.messageID, second);
      assert.deepEqual(await texts(server, ...FILES), ["one\n", null, null]);
      assert.equal(await there(join(server.workspace, "build")), false);
      await assertShown(scene, all.slice(0, 2), "after a revert");
      const back = await sdk.unrevert(session);
      assert.equal(back.revert, undefined);
      assert.deepEqual(await texts(server, ...FILES), ["two\n", "x\n", null]);
      await assertShown(scene, all, "after the revert was taken back");
    }
    for (const feed of Object.values(scene.feeds)) {
      const told = feed.events.filter(({ type, properties }) => type === "session.updated" && properties.info.id === session);
      const boundaries = () => told.map(({ properties }) => properties.info.revert?.messageID ?? null);
      await until("the feed to tell of both", () => boundaries().filter(Boolean).length >= 2);
      assert.equal(boundaries().at(-1), null);
    }

    await sdk.revert(session, { messageID: second });
    await scene.play([[name, "Something else."]]);
    assert.deepEqual(await texts(server, ...FILES, "mine.txt"), ["one\n", null, "other\n", "mine\n"]);
    const now = ["Write it.", "Written.", "Something else.", "Other."];
    await assertShown(scene, now, "after a new prompt");
    assert.equal((await sdk.get(session)).revert, undefined);
    const listed = (await sdk.messages(session)).map(({ info }) => info.id);
    assert.ok(!listed.includes(second) && listed[0] === first, "what was taken back is gone for good");
    for (const feed of Object.values(scene.feeds)) {
      const removed = feed.events.filter(({ type }) => type === "message.removed").map(({ properties }) => properties.messageID);
      assert.ok(removed.includes(second) && removed.length > 1, "clients are told what to remove");
    }
    const heard = JSON.stringify((await provider.requests()).at(-1).body.messages);
    assert.ok(heard.includes("Write it.") && !heard.includes("Edit it."), "the model knows nothing of what was taken back");

    const fork = await sdk.fork(session, { messageID: listed.at(-2) });
    const copied = await sdk.messages(fork.id);
    assert.deepEqual(spoken(fromMessages(copied)).map(({ text }) => text), ["Write it.", "Written."]);
    assert.equal(fork.directory, server.workspace);
    assert.ok(copied.every(({ info }) => !listed.includes(info.id)));
    await assertShown(scene, now, "after a fork");
  });
}

test("document 003's clients restore, approve and reset", { timeout: 600_000 }, async (t) => {
  const script = [
    write("app.py", "one\n"), say("Written."),
    call("edit", { filePath: "app.py", oldString: "one", newString: "two" }), bash("echo x > made.txt"), say("Changed."),
    call("edit", { filePath: "app.py", oldString: "two", newString: "three" }), say("Again."),
  ];
  const { options } = await scripted(t, script);
  const server = await Server.start(t, options);
  const { id } = await server.json("/api/dialogs", { method: "POST", body: {} });
  const ask = (route) => server.json(`/api/dialogs/${id}/${route}`);
  const tell = (route, body = {}) => server.json(`/api/dialogs/${id}/${route}`, { method: "POST", body });
  const chat = (content) => within("the answer", server.json("/api/chat", { method: "POST", body: { messages: [{ role: "user", content }], dialog_id: id, stream: false } }));
  const first = await chat("Write it.");
  assert.match(first.metadata.checkpoint, /^[0-9a-f]{40}$/);
  assert.equal(first.metadata.session, "session_1");
  const changed = await ask("session");
  assert.deepEqual([changed.active_session, changed.session_ref, changed.has_unapproved], ["session_1", "refs/heads/session_1", true]);
  assert.deepEqual(changed.changed_files.map(({ path, status, base_content: base }) => [path, status, base]), [["app.py", "added", null]]);
  const approved = await tell("approve", { message: "Good." });
  assert.equal(approved.new_session, "session_2");
  assert.deepEqual((await ask("session")).changed_files, []);

  const second = await chat("Change it.");
  assert.equal(second.metadata.session, "session_2");
  const reset = await tell("reset");
  assert.deepEqual([reset.reset_to, reset.new_session, reset.kept], [approved.approved_commit, "session_3", []]);
  assert.deepEqual(await texts(server, "app.py", "made.txt"), ["one\n", null]);
  // The real server answers 404 to what it gave out itself.
  const restored = await tell("restore", { checkpoint_id: reset.pre_reset_checkpoint });
  assert.equal(restored.restored_to, reset.pre_reset_checkpoint);
  assert.deepEqual(await texts(server, "app.py", "made.txt"), ["two\n", "x\n"]);

  await chat("Again.");
  await writeFile(join(server.workspace, "app.py"), "by hand\n");
  const kept = await tell("restore", { checkpoint_id: first.metadata.checkpoint });
  assert.deepEqual(kept.kept.map(({ path, why }) => [path, why]), [["app.py", "conflict"]]);
  assert.deepEqual(await texts(server, "app.py", "made.txt"), ["by hand\n", null]);
  const { checkpoints, initial_checkpoint: initial } = await ask("checkpoints");
  assert.deepEqual([initial, checkpoints[0].commit_id], [first.metadata.checkpoint, first.metadata.checkpoint]);
  const { events } = await ask("history");
  const users = events.filter(({ type }) => type === "user");
  assert.deepEqual(users.slice(0, 2).map(({ checkpoint }) => checkpoint), [first, second].map(({ metadata }) => metadata.checkpoint));
});

test("two sessions in one folder: what both touched is kept, and the other's clients are told what moved", { timeout: 600_000 }, async (t) => {
  const script = [
    write("own.txt", "one\n"), write("shared.txt", "one\n"), say("First."),
    call("edit", { filePath: "shared.txt", oldString: "one", newString: "two" }), write("theirs.txt", "two\n"), say("Second."),
  ];
  const { options } = await scripted(t, script);
  const server = await Server.start(t, options);
  const client = v2Client(server);
  const feed = await Feed.open("v2", client);
  t.after(() => feed.stop());
  const create = async () => (await client.session.create({}, { throwOnError: true })).data.id;
  const prompt = async (sessionID, text) =>
    (await within("the answer", client.session.prompt({ sessionID, parts: [{ type: "text", text }] }, { throwOnError: true }))).data;
  const [one, two] = [await create(), await create()];
  const answer = await prompt(one, "Go first.");
  await prompt(two, "Go second.");
  const moves = () => feed.events.filter(({ type }) => type === "file.watcher.updated").map(({ properties }) => properties);
  await client.session.revert({ sessionID: one, messageID: answer.info.parentID }, { throwOnError: true });
  assert.deepEqual(await texts(server, "own.txt", "shared.txt", "theirs.txt"), [null, "two\n", "two\n"]);
  const facts = await server.journal(one, "tolka");
  const { data: rewound } = facts.find(({ type }) => type === "rewound");
  assert.deepEqual(rewound.kept.map(({ path, why }) => [path, why]), [["shared.txt", "conflict"], ["theirs.txt", "not_ours"]]);
  const moved = (await server.journal(two, "tolka")).filter(({ type }) => type === "files_moved").map(({ data }) => data);
  assert.deepEqual(moved.map(({ by, changes }) => [by, changes.files.map(({ path }) => path)]), [[one, ["own.txt"]]]);
  await until("the feed to name the file", () => moves().some(({ file, event }) => file === join(server.workspace, "own.txt") && event === "unlink"));
  await client.session.unrevert({ sessionID: one }, { throwOnError: true });
  assert.deepEqual(await texts(server, "own.txt", "shared.txt", "theirs.txt"), ["one\n", "two\n", "two\n"]);
});
