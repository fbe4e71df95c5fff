// Real clients on one live session at once: all end with the same transcript.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Browser } from "./browser.mjs";
import { Scene } from "./scene.mjs";
import { recording } from "./server.mjs";

let browser;
const ends = [];
before(async () => (browser = await Browser.open({ after: (end) => ends.push(end) })));
after(() => Promise.all(ends.map((end) => end())));

const tools = (items) => items.filter((item) => item.tool).map(({ tool, status }) => `${tool} ${status}`);
const prompts = (items) => items.filter((item) => item.role === "user").map((item) => item.text);

test("OpenCode's rich turn, prompted by Onyx and by the clients of documents 004, 003 and 001", async (t) => {
  const scene = await Scene.set(t, browser, { agent: recording("opencode-rich"), pace: 6 });
  await scene.play([["onyx", "first, by Onyx"]]);
  await scene.play([["document", "second, by the document"]]);
  await scene.play([["smithy", "third, by document 003's client"]]);
  await scene.play([["steps", "fourth, by document 001's"]]);
  const { truth } = await scene.agree();
  const [first, second] = ["first, by Onyx", "second, by the document"];
  assert.deepEqual(prompts(truth), [first, second, "third, by document 003's client", "fourth, by document 001's"]);
  assert.equal(tools(truth).length, 32);
  assert.ok(tools(truth).includes("glob failed") && tools(truth).includes("bash completed"), tools(truth).join());
  assert.ok(truth.some((item) => item.role === "thought" || item.role === "agent"));
});

test("Claude's rich turn, prompted by the SDK's v2 and by the browser, allowed through Onyx", async (t) => {
  const scene = await Scene.set(t, browser, { agent: recording("claude-rich"), pace: 1 });
  const approve = async () => {
    for (const what of ["edit", "bash"]) {
      const { id, permission } = await scene.permission();
      const { items } = await scene.server.json(`/api/build/approvals/sessions/${scene.session}/live`);
      assert.deepEqual([permission, items.map((item) => item.approval_id)], [what, [id]]);
      await scene.server.json(`/api/build/approvals/${id}/decision`, { method: "POST", body: { decision: "APPROVED" } });
    }
  };
  await scene.play([["v2", "first, by the SDK"]], approve);
  await scene.play([["browser", "second, by the browser"]], approve);
  const { truth, asks } = await scene.agree();
  assert.deepEqual(prompts(truth), ["first, by the SDK", "second, by the browser"]);
  assert.deepEqual(asks.map((ask) => ask.replies), Array(4).fill(["once"]));
});

test("a permission that the SDK answers is seen by all, allowed the new way and refused the old way", async (t) => {
  const scene = await Scene.set(t, browser, { agent: recording("opencode-perm"), pace: 8 });
  await scene.play([["old", "may I?"]], async () => {
    const { id: requestID } = await scene.permission();
    const { data } = await scene.v2.permission.reply({ requestID, reply: "once" }, { throwOnError: true });
    assert.equal(data, true);
  });
  await scene.play([["onyx", "and now?"]], async () => {
    const { id: permissionID } = await scene.permission();
    const path = { id: scene.session, permissionID };
    await scene.old.postSessionIdPermissionsPermissionId({ path, body: { response: "reject" }, throwOnError: true });
  });
  const { truth, asks } = await scene.agree();
  assert.deepEqual(asks.map((ask) => ask.replies), [["once"], ["reject"]]);
  assert.deepEqual(tools(truth), ["bash completed", "bash failed"]);
  assert.deepEqual((await scene.v2.permission.list()).data, []);
});

test("Codex, prompted by the browser and by the SDK's first export", async (t) => {
  const scene = await Scene.set(t, browser, { agent: recording("codex"), pace: 0.4 });
  await scene.play([["browser", "first, by the browser"]]);
  await scene.play([["old", "second, by the SDK"]]);
  const { truth } = await scene.agree();
  assert.deepEqual(prompts(truth), ["first, by the browser", "second, by the SDK"]);
  assert.equal(tools(truth).length, 2);
});

test("the demo, prompted by the browser and, while it runs, by Onyx", async (t) => {
  const scene = await Scene.set(t, browser, { agent: "demo", pace: 4 });
  // What is always allowed is not asked again: the third turn has nothing to ask.
  await scene.play([["browser", "show me"], ["onyx", "once more"], ["smithy", "and again"]], async () => {
    for (const reply of ["once", "always"]) {
      const { id: requestID } = await scene.permission();
      await scene.v2.permission.reply({ requestID, reply }, { throwOnError: true });
    }
  });
  const { truth, asks } = await scene.agree();
  assert.deepEqual(prompts(truth), ["show me", "once more", "and again"]);
  assert.deepEqual(asks.map((ask) => ask.replies), [["once"], ["always"]]);
});
