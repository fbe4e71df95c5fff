// The client of the AgentSmithy document, as printed: its code stands in tests/data and is run unchanged, in a page of
// the server's own. Only the handlers, which the document leaves to the reader, are ours.

import { readFile } from "node:fs/promises";

import { Transcript } from "./transcript.mjs";
import { Turns } from "./turns.mjs";

const PRINTED = await readFile(new URL("../data/documents/003/client.js", import.meta.url), "utf8");
const HANDLERS = [
  "handleChatStart", "handleChat", "handleChatEnd", "handleReasoningStart", "handleReasoning", "handleReasoningEnd",
  "handleToolCall", "handleUserMessage", "handleFileEdit", "handleError", "handleDone",
];

export class Document003 {
  /** Events per turn, in the order of the turns. */
  turns = [];
  #active;
  #live = null;

  constructor(page, server, dialog) {
    Object.assign(this, { page, dialog });
    this.#active = new Turns(server, dialog);
  }

  /** Sends a prompt by the printed code and reads the answer to its end. */
  async prompt(content) {
    const told = this.#begin();
    await this.#run(told, { messages: [{ role: "user", content }], stream: true, dialog_id: this.dialog }, null);
  }

  /** Follows the next turn that somebody else asked for: the printed code, on the address of that turn. */
  async follow() {
    const told = this.#begin();
    const turn = await this.#active.next();
    await this.#run(told, {}, `/api/chat?dialog_id=${this.dialog}&turn=${turn}`);
  }

  #begin() {
    const told = [];
    this.turns.push(told);
    return told;
  }

  async #run(told, body, elsewhere) {
    const kept = (this.#live = await this.page.evaluateHandle(() => ({ events: [], turn: null })));
    await kept.evaluate(runPrinted, { printed: PRINTED, names: HANDLERS, body, elsewhere });
    const { events, turn } = await kept.jsonValue();
    if (turn) this.#active.know(turn);
    told.push(...events);
    if (events.at(-1)?.type !== "done") throw new Error(`a stream ended with ${events.at(-1)?.type}`);
  }

  /** What it was told so far of the turn that it reads. */
  async live() {
    return this.#live ? this.#live.evaluate((kept) => kept.events) : [];
  }

  get events() {
    return this.turns.flat();
  }

  get transcript() {
    return ofEvents(this.events);
  }
}

/** In the page. The printed code calls handlers that it does not define; each of ours keeps what it is given. */
async function runPrinted(kept, { printed, names, body, elsewhere }) {
  const load = async (url, options) => {
    const response = await (elsewhere ? fetch(elsewhere) : fetch(url, options));
    kept.turn = response.headers.get("tolka-turn");
    return response;
  };
  // `handleDone` is called without the event.
  const handlers = names.map((name) => (data) => kept.events.push(data ?? { type: "done" }) && name);
  const streamChat = new Function("fetch", ...names, `${printed}\nreturn streamChat;`)(load, ...handlers);
  await streamChat(body);
}

/** What its handlers would draw. A tool's end and its result are not on this wire. */
export function ofEvents(events) {
  const transcript = new Transcript();
  for (const { type, content, name } of events) {
    if (type === "user") transcript.say("user", content);
    if (type === "chat") transcript.say("agent", content);
    if (type === "reasoning") transcript.say("thought", content);
    if (type === "done") transcript.endTurn();
    if (type === "tool_call" && !["request_permission", "ask_question"].includes(name)) transcript.call(name);
  }
  return transcript.items.map((item) => (item.tool ? { tool: item.tool } : item));
}

const NAMES = {
  bash: "run_command", read: "read_file", write: "write_to_file", edit: "replace_in_file", delete: "delete_file",
  list: "list_files", grep: "search_files", webfetch: "web_fetch", websearch: "web_search",
};

/** A transcript as far as this wire tells it: tools by the document's names, without their ends. */
export const inDocument003 = (items) =>
  items.map((item) => (item.tool ? { tool: NAMES[item.tool.toLowerCase()] ?? item.tool } : item));
