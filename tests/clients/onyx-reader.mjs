// A plain reader of Onyx Build Mode. It splits the stream as Onyx's own page does: by `\n`, each `data:` line
// alone, comments and other fields ignored, and a last line without its `\n` dropped. It never reconnects.

import { Transcript } from "./transcript.mjs";
import { Turns } from "./turns.mjs";

export async function* packets(response) {
  const decoder = new TextDecoder();
  let rest = "";
  let event = "message";
  for await (const bytes of response.body) {
    rest += decoder.decode(bytes, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("event:")) event = line.slice("event:".length).trim();
      if (!line.startsWith("data:")) continue;
      // Onyx's page only logs what it cannot parse; here it is a failure.
      const packet = JSON.parse(line.slice("data:".length).trim());
      if (!packet.type && event !== "message") packet.type = event;
      yield packet;
    }
  }
}

/** The client of the documents reads the answer to its own prompt; today's follows whatever turn is active. */
export class OnyxReader {
  #base;
  /** A list of packets per turn, in the order of the prompts: two streams may be read at a time. */
  #turns = [];
  #active;

  constructor(server, session) {
    this.#base = `${server.base}/api/build/sessions/${session}`;
    this.#active = new Turns(server, session);
    this.server = server;
    this.session = session;
  }

  async #open(url, options) {
    const response = await fetch(url, options);
    if (!response.ok) throw new Error(`${url} -> ${response.status}: ${await response.text()}`);
    return response;
  }

  async #readTurn(told, response) {
    for await (const packet of packets(response)) told.push(packet);
    const last = told.at(-1)?.type;
    if (last !== "prompt_response" && last !== "error") throw new Error(`a turn's stream ended with ${last}`);
  }

  /** Reads the answer to the end. */
  async prompt(content) {
    const told = this.#begin();
    const headers = { "Content-Type": "application/json" };
    const body = JSON.stringify({ content });
    const response = await this.#open(`${this.#base}/send-message`, { method: "POST", headers, body });
    this.#active.know(response.headers.get("tolka-turn"));
    await this.#readTurn(told, response);
  }

  /** Follows the next turn that somebody else asked for. */
  async follow() {
    const told = this.#begin();
    const turn = await this.#active.next();
    await this.#readTurn(told, await this.#open(`${this.#base}/turns/${turn}/events?profile=documented`));
  }

  #begin() {
    const told = [];
    this.#turns.push(told);
    return told;
  }

  /** Everything from the first turn to the last, on one stream that never ends; resolves when it is open. */
  async followSession(signal) {
    const response = await this.#open(`${this.server.base}/v1/sessions/${this.session}/events?dialect=onyx`, { signal });
    const told = this.#begin();
    const read = async () => {
      for await (const packet of packets(response)) told.push(packet);
    };
    // Cut by the test or by the server's end; what matters is what was read.
    this.reading = read().catch(() => {});
  }

  get packets() {
    return this.#turns.flat();
  }

  get turnsEnded() {
    return this.packets.filter(({ type }) => type === "prompt_response" || type === "error").length;
  }

  get transcript() {
    return ofPackets(this.packets);
  }

  /** What a reload shows. */
  async rows() {
    const { messages } = await (await this.#open(`${this.#base}/messages`)).json();
    return ofPackets(messages.map((row) => row.message_metadata));
  }
}

export function ofPackets(packets) {
  const transcript = new Transcript();
  const calls = new Map();
  const start = (packet) => calls.set(packet.toolCallId, transcript.call(packet.kind));
  for (const packet of packets) {
    const { type, content, toolCallId, kind, status, rawOutput } = packet;
    if (type === "user_message") transcript.say("user", content.text);
    if (type === "agent_message_chunk" || type === "agent_message") transcript.say("agent", content.text);
    if (type === "agent_thought_chunk" || type === "agent_thought") transcript.say("thought", content.text);
    if (type === "prompt_response" || type === "error") transcript.endTurn();
    if (type === "tool_call_start") start(packet);
    if (type !== "tool_call_progress") continue;
    // Stored rows have no start; a live progress without one updates nothing on Onyx's page.
    if (!calls.has(toolCallId) && packets.every((other) => other.type !== "tool_call_start")) start(packet);
    const item = calls.get(toolCallId);
    if (!item) throw new Error(`a progress of ${toolCallId}, which never started`);
    const output = status === "failed" ? rawOutput.error : rawOutput?.output;
    Object.assign(item, { tool: kind, status, output: output ?? "" });
  }
  return transcript.items;
}
