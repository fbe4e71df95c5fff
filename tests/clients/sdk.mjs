// The official SDK, unmodified, by both of its exports. They differ in how a call is written, not in what it means.

import { createOpencodeClient as createOld } from "@opencode-ai/sdk";
import { createOpencodeClient as createV2 } from "@opencode-ai/sdk/v2";

export const oldClient = (server, options) => createOld({ baseUrl: server.base, ...options });
export const v2Client = (server, options) => createV2({ baseUrl: server.base, ...options });

const SUBSCRIBE = {
  old: (client, options) => client.event.subscribe(options),
  v2: (client, options) => client.event.subscribe({}, options),
  // What OpenCode's terminal client listens to: every event in an envelope that says whose it is.
  global: (client, options) => client.global.event(options),
};

/** `event.subscribe`, kept open until `stop`. */
export class Feed {
  events = [];
  connections = 0;
  retry = undefined;
  #stop = new AbortController();

  /** Resolves when the server has greeted, so that nothing that happens later can be missed. */
  static async open(name, client) {
    const feed = new Feed();
    const options = {
      signal: feed.#stop.signal,
      onSseEvent: ({ retry }) => (feed.retry = retry),
      // Lost connections are the point of some tests; the SDK goes on by itself.
      onSseError: () => {},
    };
    const { stream } = await SUBSCRIBE[name](client, options);
    const { value } = await stream.next();
    const greeting = value?.payload ?? value;
    if (greeting?.type !== "server.connected") throw new Error(`the first event was ${JSON.stringify(greeting)}`);
    feed.connections = 1;
    feed.reading = feed.#read(stream);
    return feed;
  }

  async #read(stream) {
    for await (const told of stream) {
      const event = told.payload ?? told;
      if (event.type === "server.connected") this.connections++;
      else if (event.type !== "server.heartbeat") this.events.push(event);
    }
  }

  of(session) {
    return this.events.filter(({ properties }) => (properties.sessionID ?? properties.part?.sessionID) === session);
  }

  idle(session) {
    return this.of(session).filter((event) => event.type === "session.idle").length;
  }

  async stop() {
    this.#stop.abort();
    await this.reading;
  }
}
