// A reader of Onyx's first packets, those of steps, tools and output, by what their document says of each.

import { packets } from "./onyx-reader.mjs";
import { Transcript } from "./transcript.mjs";
import { Turns } from "./turns.mjs";

export class Document001 {
  #base;
  #turns = [];
  #active;

  constructor(server, session) {
    this.#base = `${server.base}/api/build/sessions/${session}`;
    this.#active = new Turns(server, session);
  }

  async prompt(content) {
    const told = this.#begin();
    const headers = { "Content-Type": "application/json" };
    const url = `${this.#base}/send-message?packets=steps`;
    const response = await this.#open(url, { method: "POST", headers, body: JSON.stringify({ content }) });
    this.#active.know(response.headers.get("tolka-turn"));
    await this.#read(told, response);
  }

  /** Follows the next turn that somebody else asked for. */
  async follow() {
    const told = this.#begin();
    const turn = await this.#active.next();
    await this.#read(told, await this.#open(`${this.#base}/turns/${turn}/events?packets=steps`));
  }

  async #open(url, options) {
    const response = await fetch(url, options);
    if (!response.ok) throw new Error(`${url} -> ${response.status}: ${await response.text()}`);
    return response;
  }

  #begin() {
    const told = [];
    this.#turns.push(told);
    return told;
  }

  async #read(told, response) {
    for await (const packet of packets(response)) told.push(packet);
    const last = told.at(-1)?.type;
    if (last !== "done" && last !== "error") throw new Error(`a turn's stream ended with ${last}`);
  }

  get packets() {
    return this.#turns.flat();
  }

  get transcript() {
    return ofSteps(this.packets);
  }
}

export function ofSteps(packets) {
  const transcript = new Transcript();
  const calls = new Map();
  for (const { type, content, tool_call_id: id, tool_name: name, status, result } of packets) {
    if (type === "output_delta") transcript.say("agent", content);
    if (type === "step_delta") transcript.say("thought", content);
    if (type === "done" || type === "error") transcript.endTurn();
    if (type === "tool_start") calls.set(id, transcript.call(name.toLowerCase()));
    if (type !== "tool_end") continue;
    if (!calls.has(id)) throw new Error(`an end of ${id}, which never started`);
    Object.assign(calls.get(id), { status: status === "success" ? "completed" : "failed", output: result ?? "" });
  }
  return transcript.items;
}

/** Where it differs from ours in more than its capital letters. */
const NAMES = { list: "ls" };

/** A transcript as far as this wire tells it. */
export function inDocument001(items) {
  const named = (tool) => NAMES[tool.toLowerCase()] ?? tool.toLowerCase();
  return items.map((item) => (item.tool ? { ...item, tool: named(item.tool) } : item));
}
