// The client of the OpenCode document, to the letter: raw HTTP, text by `delta` alone, tools by their state, and
// the response is complete when the session is idle. What it does to its screen is the transcript.

import { Transcript, endOf } from "./transcript.mjs";

/** "Parse SSE format: data: {...}\n\n" */
async function* subscribe(base, signal) {
  const response = await fetch(`${base}/event`, { headers: { Accept: "text/event-stream" }, signal });
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    buffer += decoder.decode(value, { stream: true });
    const chunks = buffer.split("\n\n");
    buffer = chunks.pop();
    for (const chunk of chunks) {
      const data = chunk.split("\n").find((line) => line.startsWith("data: "));
      if (data) yield JSON.parse(data.slice("data: ".length));
    }
  }
}

export class Document004 {
  #screen = new Transcript();
  #tools = new Map();

  constructor(server, session) {
    Object.assign(this, { base: server.base, mySessionId: session });
  }

  /** Connects, then gives a promise of so many complete responses: a session may have more prompts than ours. */
  async respond(responses) {
    const stop = new AbortController();
    const stream = subscribe(this.base, stop.signal);
    const { value: connected } = await stream.next();
    if (connected?.type !== "server.connected") throw new Error(`the first event was ${connected?.type}`);
    return { complete: this.#read(stream, responses).finally(() => stop.abort()) };
  }

  async prompt(text) {
    const body = JSON.stringify({ parts: [{ type: "text", text }] });
    const url = `${this.base}/session/${this.mySessionId}/prompt_async`;
    const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
    if (response.status !== 204) throw new Error(`${url} -> ${response.status}`);
  }

  async #read(stream, responses) {
    for await (const event of stream) {
      if (event.type === "session.idle" && event.properties.sessionID === this.mySessionId) {
        this.#screen.endTurn();
        if (--responses === 0) return;
      }
      if (event.type === "session.error" && event.properties.sessionID === this.mySessionId) {
        throw new Error(JSON.stringify(event.properties.error));
      }
      if (event.type === "message.part.updated") this.#show(event.properties);
    }
    throw new Error("the stream ended before the session was idle");
  }

  #show({ part, delta }) {
    if (part.sessionID !== this.mySessionId) return;
    switch (part.type) {
      case "text":
        if (delta) this.#screen.say("agent", delta);
        break;
      case "reasoning":
        if (delta) this.#screen.say("thought", delta);
        break;
      case "tool":
        // "Tool call parsed but empty input - often skip this"
        if (part.state.status === "pending") break;
        if (!this.#tools.has(part.id)) this.#tools.set(part.id, this.#screen.call(part.tool));
        if (part.state.status !== "running") Object.assign(this.#tools.get(part.id), endOf(part.state));
        break;
    }
  }

  get transcript() {
    return this.#screen.items;
  }
}
