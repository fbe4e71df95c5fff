import assert from "node:assert/strict";
import { test } from "node:test";
import { Feed, oldClient, v2Client } from "./sdk.mjs";
import { Server, recording, until } from "./server.mjs";
import { Browser, Source } from "./browser.mjs";
test("many kills", async (t) => {
  const server = await Server.start(t, { agent: recording("opencode-rich"), pace: 10 });
  const old = oldClient(server), v2 = v2Client(server);
  const got = { old: [], v2: [], glob: [] }; let conns = { old: 0, v2: 0, glob: 0 };
  const ac = new AbortController();
  t.after(() => ac.abort());
  const opt = { signal: ac.signal, sseSleepFn: () => new Promise((r) => setTimeout(r, 30)), onSseError() {} };
  const read = async (n, s) => { for await (let e of s.stream) { if (n === "glob") e = e.payload; if (e.type === "server.connected") conns[n]++; else if (e.type !== "server.heartbeat") got[n].push(e.id); } };
  read("old", await old.event.subscribe(opt)); read("v2", await v2.event.subscribe({}, opt)); read("glob", await v2.global.event(opt));
  await until("greet", () => conns.old && conns.v2 && conns.glob);
  const { data: { id } } = await old.session.create({ body: {} });
  for (let k = 1; k <= 40; k++) {
    await old.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text: "go " + k }] } });
    await new Promise((r) => setTimeout(r, Math.random() * 1100));
    await server.kill();
    const t0 = performance.now(); await server.run();
    if (k % 10 === 0) console.log("restart ms", performance.now() - t0, got.old.length);
    // sometimes prompt before they are back
    if (k % 3) await until("back", () => conns.old > k && conns.v2 > k && conns.glob > k);
    else await until("back", () => conns.old > 0);
  }
  await old.session.prompt({ path: { id }, body: { parts: [{ type: "text", text: "last" }] } });
  const j = (await server.journal(id, "opencode")).map((e) => e.id);
  const jc = (await server.journal(id, "opencode-current")).map((e) => e.id);
  await until("all", () => got.old.at(-1) === j.at(-1) && got.v2.at(-1) === j.at(-1) && got.glob.at(-1) === jc.at(-1));
  assert.deepEqual(got.old, j); assert.deepEqual(got.v2, j); assert.deepEqual(got.glob, jc);
  console.log("events", j.length, "global", jc.length, "conns", conns);
});
test("a wait of over 20 s", async (t) => {
  const server = await Server.start(t, { agent: recording("opencode-perm"), pace: 20 });
  const old = oldClient(server), v2 = v2Client(server);
  const { data: { id } } = await old.session.create({ body: {} });
  const waiting = old.session.prompt({ path: { id }, body: { parts: [{ type: "text", text: "x" }] } });
  const perm = await until("p", async () => (await v2.permission.list()).data[0]);
  await new Promise((r) => setTimeout(r, 42_000));
  await v2.permission.reply({ requestID: perm.id, reply: "once" });
  const { data, error } = await waiting; console.log("late", error, data?.info?.finish, data?.parts?.length);
  const w2 = v2.session.prompt({ sessionID: id, parts: [{ type: "text", text: "x" }] });
  await until("p", async () => (await v2.permission.list()).data[0]);
  await server.stop();
  const r2 = await w2; console.log("stopped while waiting", r2.response?.status, JSON.stringify(r2.error), JSON.stringify(r2.data)?.slice(0, 100));
});
test("browser with a link", async (t) => {
  const server = await Server.start(t, { agent: recording("opencode-rich"), pace: 20, token: "sekret" });
  const browser = await Browser.open(t);
  const page = await browser.chromium.newPage();
  const bare = await page.goto(server.base); console.log("bare", bare.status());
  const r = await page.goto(server.base + "/?token=sekret"); console.log("link", r.status(), page.url());
  const s = await Source.open(page, "/event");
  await until("open", () => s.connections());
  const n = await page.evaluate(async () => (await fetch("/session", { method: "POST", body: "{}", headers: { "content-type": "application/json" } })).status);
  console.log("create", n); await until("ev", () => s.count("session.created"));
});
