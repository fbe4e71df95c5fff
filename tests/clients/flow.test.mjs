// What people do with the OpenCode SDK, by both of its exports.

import assert from "node:assert/strict";
import { before, after, test } from "node:test";

import { Feed, oldClient, v2Client } from "./sdk.mjs";
import { Server, recording, until, within } from "./server.mjs";

/** The two exports differ in how a call is written; here both are called in one way. */
const EXPORTS = {
  "the first export": (server) => {
    const client = oldClient(server);
    const at = (id, body) => ({ path: { id }, body });
    return {
      name: "old",
      client,
      create: (body) => client.session.create({ body }),
      get: (id, options) => client.session.get({ ...at(id), ...options }),
      update: (id, body) => client.session.update(at(id, body)),
      remove: (id) => client.session.delete(at(id)),
      children: (id) => client.session.children(at(id)),
      todo: (id) => client.session.todo(at(id)),
      abort: (id) => client.session.abort(at(id)),
      prompt: (id, body) => client.session.prompt(at(id, body)),
      promptAsync: (id, body) => client.session.promptAsync(at(id, body)),
      messages: (id) => client.session.messages(at(id)),
      message: (id, messageID) => client.session.message({ path: { id, messageID } }),
    };
  },
  v2: (server) => {
    const client = v2Client(server);
    const { session } = client;
    const call = (method) => (sessionID, body) => session[method]({ sessionID, ...body });
    const { update, children, todo, abort, prompt, promptAsync, messages } = Object.fromEntries(
      ["update", "children", "todo", "abort", "prompt", "promptAsync", "messages"].map((name) => [name, call(name)]),
    );
    return {
      name: "v2",
      client,
      create: (body) => session.create(body),
      get: (sessionID, options) => session.get({ sessionID }, options),
      remove: call("delete"),
      message: (sessionID, messageID) => session.message({ sessionID, messageID }),
      ...{ update, children, todo, abort, prompt, promptAsync, messages },
    };
  },
};

const ends = [];
let server;
before(async () => (server = await Server.start({ after: (end) => ends.push(end) }, { agent: recording("opencode-rich"), pace: 20 })));
after(() => Promise.all(ends.map((end) => end())));

const parts = [{ type: "text", text: "do it" }];
const ok = ({ data, error, response }) => {
  assert.equal(error, undefined, `${response.url} -> ${response.status} ${JSON.stringify(error)}`);
  return data;
};
const text = (message) => message.parts.filter((part) => part.type === "text").map((part) => part.text).join("");

for (const [what, make] of Object.entries(EXPORTS)) {
  test(`${what}: sessions are made, listed, renamed and deleted`, async () => {
    const sdk = make(server);
    const session = ok(await sdk.create({ title: "one" }));
    assert.match(session.id, /^ses_/);
    assert.deepEqual([session.title, session.directory], ["one", server.workspace]);
    assert.deepEqual(ok(await sdk.get(session.id)), session);
    assert.equal(ok(await sdk.update(session.id, { title: "two" })).title, "two");
    const child = ok(await sdk.create({ parentID: session.id, title: "child" }));
    assert.deepEqual(ok(await sdk.children(session.id)).map(({ id }) => id), [child.id]);
    const listed = ok(await sdk.client.session.list()).map(({ id }) => id);
    assert.ok(listed.includes(session.id) && listed.includes(child.id));
    assert.deepEqual(ok(await sdk.todo(session.id)), []);
    assert.equal(ok(await sdk.remove(child.id)), true);
    assert.equal((await sdk.get(child.id)).response.status, 404);
    assert.ok(!ok(await sdk.client.session.list()).some(({ id }) => id === child.id));
  });

  test(`${what}: a prompt that waits gives the last message, which the lists have too`, async () => {
    const sdk = make(server);
    const { id } = ok(await sdk.create({}));
    const answer = ok(await within("the answer", sdk.prompt(id, { parts })));
    assert.deepEqual([answer.info.role, answer.info.sessionID, answer.info.finish], ["assistant", id, "stop"]);
    assert.ok(answer.info.time.completed >= answer.info.time.created);
    const messages = ok(await sdk.messages(id));
    assert.deepEqual(messages.at(-1), answer);
    assert.equal(messages[0].info.role, "user");
    assert.equal(text(messages[0]), "do it");
    assert.equal(answer.info.parentID, messages[0].info.id);
    assert.deepEqual(ok(await sdk.message(id, answer.info.id)), answer);
    const todo = ok(await sdk.todo(id));
    assert.equal(todo.length, 2);
    assert.ok(todo.every(({ content, status }) => content && status));
  });

  test(`${what}: a prompt that does not wait is told on the feed`, async (t) => {
    const sdk = make(server);
    const { id } = ok(await sdk.create({}));
    const feed = await Feed.open(sdk.name, sdk.client);
    t.after(() => feed.stop());
    const { response } = await sdk.promptAsync(id, { parts, messageID: `msg_${sdk.name}_of_the_client` });
    assert.equal(response.status, 204);
    await until("the session to be idle", () => feed.idle(id) === 1);
    const statuses = feed.of(id).filter((event) => event.type === "session.status");
    assert.deepEqual(statuses.map(({ properties }) => properties.status.type), ["busy", "idle"]);
    assert.equal(ok(await sdk.client.session.status())[id], undefined);
    assert.equal(ok(await sdk.messages(id))[0].info.id, `msg_${sdk.name}_of_the_client`);
  });

  test(`${what}: a turn is aborted`, async (t) => {
    const sdk = make(server);
    // It asks for leave before it is done, whatever the pace: nobody is too late to abort it.
    const { id } = ok(await sdk.create({ agent: "demo" }));
    const feed = await Feed.open(sdk.name, sdk.client);
    t.after(() => feed.stop());
    const waiting = sdk.prompt(id, { parts });
    await until("the turn to begin", () => feed.of(id).some((event) => event.type === "message.part.delta"));
    assert.equal(ok(await sdk.client.session.status())[id]?.type, "busy");
    assert.equal(ok(await sdk.abort(id)), true);
    await until("the session to be idle", () => feed.idle(id) === 1);
    assert.equal(ok(await waiting).info.error.name, "MessageAbortedError");
    const errors = feed.of(id).filter((event) => event.type === "session.error");
    assert.deepEqual(errors.map(({ properties }) => properties.error.name), ["MessageAbortedError"]);
    assert.equal(ok(await sdk.messages(id)).at(-1).info.error.name, "MessageAbortedError");
    assert.equal(ok(await sdk.abort(id)), true);
  });

  test(`${what}: what a client looks up before it starts`, async () => {
    const { client } = make(server);
    assert.equal(ok(await client.path.get()).directory, server.workspace);
    assert.equal(ok(await client.project.current()).worktree, server.workspace);
    const { providers, default: defaults } = ok(await client.config.providers());
    for (const { id, models } of providers) assert.ok(models[defaults[id]], `${id} has no default model`);
    const [provider, ...rest] = ok(await client.config.get()).model.split("/");
    assert.ok(providers.find(({ id }) => id === provider).models[rest.join("/")]);
    assert.ok(ok(await client.app.agents()).some(({ mode }) => mode === "primary"));
    assert.ok(ok(await client.provider.list()).connected.length > 0);
    for (const nothing of [client.command.list(), client.lsp.status(), client.formatter.status()]) assert.deepEqual(ok(await nothing), []);
  });

  test(`${what}: mistakes are answered in OpenCode's shapes`, async () => {
    const sdk = make(server);
    const { id } = ok(await sdk.create({}));
    const failed = async (call, status, name) => {
      const { error, response } = await call;
      assert.deepEqual([response.status, error?.name], [status, name], JSON.stringify(error));
      assert.ok(error.data.message.length > 0);
    };
    const nobody = "ses_00000000000000000000000000";
    await failed(sdk.get(nobody), 404, "NotFoundError");
    await assert.rejects(sdk.get(nobody, { throwOnError: true }), /Session not found/);
    await failed(sdk.messages(nobody), 404, "NotFoundError");
    await failed(sdk.prompt(nobody, { parts }), 404, "NotFoundError");
    await failed(sdk.promptAsync(nobody, { parts }), 404, "NotFoundError");
    await failed(sdk.remove(nobody), 404, "NotFoundError");
    await failed(sdk.message(id, "msg_nothing"), 404, "NotFoundError");
    await failed(sdk.get("not-a-session"), 400, "BadRequest");
    for (const bad of [[], [{ type: "text" }], [{ type: "nonsense", text: "x" }], "text", undefined]) {
      await failed(sdk.prompt(id, { parts: bad }), 400, "BadRequest");
    }
    assert.deepEqual(ok(await sdk.messages(id)), []);
  });
}
