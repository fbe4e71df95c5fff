// What a session was, as a person would read it, whichever client tells it:
//
//   { role: "user" | "agent" | "thought", text }
//   { tool, status: "completed" | "failed", output }
//
// Words in a row of one role are one item within a turn: not every wire says where one part ends and the next begins.

export class Transcript {
  items = [];
  #open = null;

  say(role, text) {
    if (!text) return;
    if (this.#open?.role !== role) this.items.push((this.#open = { role, text: "" }));
    this.#open.text += text;
  }

  endTurn() {
    this.#open = null;
  }

  /** Gives the item, so that what comes later of the call can be put in it. */
  call(tool) {
    const item = { tool, status: "pending", output: "" };
    this.items.push((this.#open = item));
    return item;
  }
}

/**
 * Today's OpenCode client: parts are replaced by `message.part.updated` and grow by `message.part.delta`.
 * The older one knows no deltas, and must come to the same by whole parts alone.
 */
export function ofOpenCode(events, { knowsDeltas }) {
  const messages = new Map();
  const message = (id) => messages.get(id) ?? messages.set(id, { parts: new Map() }).get(id);
  for (const { type, properties } of events) {
    const { info, part, messageID, partID, field, delta } = properties;
    if (type === "message.updated") message(info.id).info = info;
    if (type === "message.removed") messages.delete(messageID);
    if (type === "message.part.updated") message(part.messageID).parts.set(part.id, structuredClone(part));
    if (type === "message.part.delta" && knowsDeltas) message(messageID).parts.get(partID)[field] += delta;
  }
  return fromMessages([...messages.values()].map(({ info, parts }) => ({ info, parts: [...parts.values()] })));
}

/** Messages as `GET /session/{id}/message` gives them. Clients of this family sort by id, so the order tests the ids. */
export function fromMessages(messages) {
  const byId = (a, b) => (a.id < b.id ? -1 : 1);
  const sorted = messages.toSorted((a, b) => byId(a.info, b.info));
  const transcript = new Transcript();
  const tell = ({ info, parts }) => parts.toSorted(byId).forEach((part) => tellPart(transcript, info.role, part));
  for (const prompt of sorted.filter(({ info }) => info.role === "user")) {
    tell(prompt);
    sorted.filter(({ info }) => info.parentID === prompt.info.id).forEach(tell);
  }
  return transcript.items;
}

function tellPart(transcript, role, part) {
  if (part.type === "text") transcript.say(role === "user" ? "user" : "agent", part.text);
  if (part.type === "reasoning") transcript.say("thought", part.text);
  if (part.type === "tool") Object.assign(transcript.call(part.tool), endOf(part.state));
}

export function endOf({ status, output, error }) {
  return status === "error" ? { status: "failed", output: error } : { status, output };
}

/** OpenCode's wire has its own names for the tools of other agents. */
const OPENCODE_NAMES = { exec_command: "bash" };

/** Our own wire: facts, with updates of a call merged. Nothing long is in the recordings, so no blob is read. */
export function ofFacts(facts) {
  const transcript = new Transcript();
  const prompts = new Map();
  const calls = new Map();
  for (const { type, data } of facts) {
    if (type === "prompt_queued") prompts.set(data.turn, data.content);
    if (type === "turn_started") prompts.get(data.turn).forEach((block) => transcript.say("user", block.text));
    if (type === "text_appended") transcript.say("agent", data.text);
    if (type === "thought_appended") transcript.say("thought", data.text);
    if (type === "turn_ended") transcript.endTurn();
    if (type === "output_appended") calls.get(data.call).live += data.text;
    if (type !== "tool_changed") continue;
    if (!calls.has(data.call)) calls.set(data.call, { live: "", item: transcript.call() });
    const call = Object.assign(calls.get(data.call), data);
    call.item.tool = OPENCODE_NAMES[call.name] ?? call.name;
    call.item.status = call.status === "cancelled" ? "failed" : call.status;
    call.item.output = outputOf(call);
  }
  return transcript.items;
}

function outputOf({ status, error, output, content = [], live }) {
  if (status === "failed" || status === "cancelled") return error ?? output?.error ?? "";
  const shown = content.filter((piece) => piece.type === "content").map((piece) => piece.block.text);
  if (typeof output === "string") return output;
  return output?.output ?? (live || shown.join("\n"));
}

/** What was asked and what was answered, in today's words of OpenCode. */
export function asksOf(events) {
  const asked = events.filter((event) => event.type === "permission.asked").map(({ properties }) => properties);
  return asked.map(({ id, permission }) => {
    const answers = events.filter(({ type, properties }) => type === "permission.replied" && properties.requestID === id);
    return { id, permission, replies: answers.map(({ properties }) => properties.reply) };
  });
}

const REPLY = { allow_once: "once", allow_always: "always", reject_once: "reject", reject_always: "reject" };

export function asksOfFacts(facts) {
  const asked = facts.filter((fact) => fact.type === "permission_asked").map((fact) => fact.data);
  return asked.map(({ request, permission, options }) => {
    const answers = facts.filter(({ type, data }) => type === "permission_answered" && data.request === request);
    const kind = ({ data }) => options.find((option) => option.id === data.option)?.kind;
    return { id: request, permission, replies: answers.map((answer) => REPLY[kind(answer)]) };
  });
}

/** Without the prompts, for streams that do not carry what clients said. */
export const withoutPrompts = (items) => items.filter((item) => item.role !== "user");

const KINDS = {
  execute: ["bash"],
  read: ["read"],
  edit: ["edit", "write"],
  search: ["glob", "grep", "list"],
  delete: ["delete"],
};

/** Onyx's documents carry the kind of a tool; its name only where an agent made it the title. */
export function withKinds(items) {
  const kind = (name) => Object.keys(KINDS).find((kind) => KINDS[kind].includes(name.toLowerCase())) ?? "other";
  return items.map((item) => (item.tool ? { ...item, tool: kind(item.tool) } : item));
}
