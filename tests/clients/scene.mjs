// One session with every client on it at once, each by its own family's means.

import assert from "node:assert/strict";

import { Source } from "./browser.mjs";
import { Document001, inDocument001 } from "./document-001.mjs";
import { Document003, inDocument003 } from "./document-003.mjs";
import { Document004 } from "./document-004.mjs";
import { OnyxReader } from "./onyx-reader.mjs";
import { Feed, oldClient, v2Client } from "./sdk.mjs";
import { Server, until, within } from "./server.mjs";
import { asksOf, asksOfFacts, fromMessages, ofFacts, ofOpenCode, withKinds, withoutPrompts } from "./transcript.mjs";

export class Scene {
  turns = 0;
  #asked = new Set();

  static async set(t, browser, options) {
    const scene = new Scene();
    const server = await Server.start(t, options);
    const [old, v2] = [oldClient(server), v2Client(server)];
    const feeds = { old: await Feed.open("old", old), v2: await Feed.open("v2", v2) };
    t.after(() => Promise.all([feeds.old.stop(), feeds.v2.stop()]));
    const { data: session } = await old.session.create({ body: { title: "All at once" }, throwOnError: true });
    const page = await browser.page(server);
    const events = `/v1/sessions/${session.id}/events`;
    const sources = {
      tolka: await Source.open(page, `${events}?dialect=tolka`),
      opencode: await Source.open(page, `${events}?dialect=opencode`),
    };
    await until("the browser's streams", async () => (await sources.tolka.connections()) && sources.opencode.connections());
    const onyx = { turns: new OnyxReader(server, session.id), session: new OnyxReader(server, session.id) };
    const stop = new AbortController();
    t.after(() => stop.abort());
    await onyx.session.followSession(stop.signal);
    const document = new Document004(server, session.id);
    const steps = new Document001(server, session.id);
    const smithy = new Document003(page, server, session.id);
    // It never prompts. A page of its own: a browser has few connections for each.
    const viewer = new Document003(await browser.page(server), server, session.id);
    const clients = { page, sources, onyx, document, steps, smithy, viewer };
    return Object.assign(scene, { server, old, v2, feeds, session: session.id, ...clients });
  }

  /**
   * Prompts, each by one of the families and all at once: those that come while a turn runs wait for it. Resolves
   * when every client has seen every turn to its end.
   */
  async play(prompts, duringIt = async () => {}) {
    const { complete } = await this.document.respond(prompts.length);
    const seen = [complete];
    for (const [by, text] of prompts) {
      const readers = { onyx: this.onyx.turns, steps: this.steps, smithy: this.smithy, viewer: this.viewer };
      for (const [name, reader] of Object.entries(readers)) seen.push(by === name ? reader.prompt(text) : reader.follow());
      if (!(by in readers)) seen.push(this.prompt(by, text));
      const turn = ++this.turns;
      await until("the prompt to be taken", async () => (await this.sources.tolka.count("prompt_queued")) === turn);
    }
    await within("the turns", Promise.all([...seen, duringIt()]));
    await until("the SDK's feeds", () => Object.values(this.feeds).every((feed) => feed.idle(this.session) === this.turns));
    await until("the browser", async () => (await this.sources.tolka.count("turn_ended")) === this.turns);
    await until("the browser", async () => (await this.sources.opencode.count("session.idle")) === this.turns);
    await until("the Onyx reader", () => this.onyx.session.turnsEnded === this.turns);
  }

  async prompt(by, text) {
    const parts = [{ type: "text", text }];
    const [path, sessionID] = [{ id: this.session }, this.session];
    if (by === "old") await this.old.session.prompt({ path, body: { parts }, throwOnError: true });
    else if (by === "v2") await this.v2.session.promptAsync({ sessionID, parts }, { throwOnError: true });
    else if (by === "document") await this.document.prompt(text);
    else if (by === "browser") await this.page.evaluate(promptInPage, { session: this.session, text });
    else assert.fail(`nobody prompts by ${by}`);
  }

  /** The next permission that waits, as the newer SDK lists it. */
  async permission() {
    const waiting = async () => (await this.v2.permission.list({}, { throwOnError: true })).data;
    const found = await until("a permission", async () => (await waiting()).find(({ id }) => !this.#asked.has(id)));
    this.#asked.add(found.id);
    return found;
  }

  /** Every client must tell the same. Gives what that is. */
  async agree() {
    const { old, v2 } = this.feeds;
    const facts = await this.sources.tolka.events();
    const truth = ofFacts(facts);
    const is = (told, what, expected = truth) => assert.deepEqual(told, expected, `${what} tells another story`);
    is(ofOpenCode(old.of(this.session), { knowsDeltas: false }), "the SDK's first export");
    is(ofOpenCode(v2.of(this.session), { knowsDeltas: true }), "the SDK's v2");
    is(ofOpenCode(await this.sources.opencode.events(), { knowsDeltas: true }), "the browser in opencode");
    const { data: messages } = await this.v2.session.messages({ sessionID: this.session }, { throwOnError: true });
    is(fromMessages(messages), "the SDK's list of messages");
    // The document's client shows what the agent says; prompts come without a `delta` and are not shown.
    is(this.document.transcript, "the document's client", withoutPrompts(truth));
    // An Onyx stream has no prompts in it and tells the kind of a tool, not its name. A reload has the prompts.
    is(this.onyx.turns.transcript, "the Onyx reader of turns", withKinds(withoutPrompts(truth)));
    is(this.onyx.session.transcript, "the Onyx reader of the session", withKinds(withoutPrompts(truth)));
    is(await this.onyx.turns.rows(), "a reload of Onyx's page", withKinds(truth));
    is(this.steps.transcript, "the reader of document 001", inDocument001(withoutPrompts(truth)));
    is(this.smithy.transcript, "document 003's client", inDocument003(truth));
    is(this.viewer.transcript, "a second client of document 003", inDocument003(truth));
    const asks = asksOfFacts(facts);
    is(asksOf(old.of(this.session)), "the SDK's first export", asks);
    is(asksOf(v2.of(this.session)), "the SDK's v2", asks);
    is(asksOf(await this.sources.opencode.events()), "the browser in opencode", asks);
    return { truth, asks };
  }
}

async function promptInPage({ session, text }) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`/v1/sessions/${session}/prompt`, { method: "POST", headers, body: JSON.stringify({ text }) });
  if (response.status !== 202) throw new Error(`the prompt was answered with ${response.status}`);
}
