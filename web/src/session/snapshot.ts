// A view becomes state: what the page draws first. Facts after the view's position go on from there.
import type { Fact, Message, OpenTurn, Part, Snapshot, View } from "../wire";
import { newTurn, saidKey, toolKey, withArtifact } from "./fold";
import type { Entry, SessionState } from "./state";

/** Asides that the conversation shows. Answers stand on what was asked, and what was rewound is not there. */
const isShown = ({ type }: Fact) => type !== "permission_answered" && type !== "question_answered" && type !== "process_ended";

export function emptyState(): SessionState {
  const head: SessionState["head"] = {
    id: "", workspace: "", agent: "", title: "", created: 0, updated: 0, archived: false, deleted: false, turns: 0,
    tokens: { input: 0, output: 0 }, files: 0, added: 0, removed: 0, busy: false, queued: 0, waiting: 0,
  };
  return {
    seq: 0, time: 0, head, turn: null, queue: [], asks: [], plan: [], usage: null, processes: [], artifacts: [], commands: [],
    rewinds: [], rewinding: null, retry: null, entries: new Map(), order: [], before: null, stale: false,
  };
}

export function stateOf(view: View & Partial<Pick<Snapshot, "before">>): SessionState {
  const { tip } = view;
  const state: SessionState = {
    ...emptyState(),
    seq: tip.seq, time: tip.time, head: tip.head, queue: tip.queue ?? [], asks: tip.turn?.asks ?? [], plan: tip.plan ?? [],
    usage: tip.usage ?? null, processes: tip.processes ?? [], commands: view.commands ?? [],
    artifacts: (view.artifacts ?? []).reduce(withArtifact, [] as SessionState["artifacts"]),
    rewinds: tip.rewinds ?? [], rewinding: tip.rewinding ?? null, before: view.before ?? null,
  };
  put(state, entriesOf(view, state), view.asides ?? []);
  if (tip.turn) state.turn = turnOf(tip.turn, state, view);
  return state;
}

/** A page of the past takes its place before what is there. What a turn that was cut has twice is whole in the later page. */
export function prepend(state: SessionState, page: Snapshot): void {
  const earlier: SessionState = { ...emptyState(), entries: new Map(state.entries) };
  const fresh = entriesOf(page, earlier).filter((entry) => !isKnown(state, entry));
  const later = { entries: state.entries, order: state.order };
  state.entries = new Map();
  state.order = [];
  put(state, fresh, page.asides ?? []);
  const prompts = new Map(fresh.flatMap((entry) => (entry.kind === "prompt" ? [[entry.turn, entry.message] as const] : [])));
  for (const [key, entry] of later.entries) {
    // What was cut off from its prompt belongs to it again.
    if (entry.kind !== "aside" && !entry.message) entry.message = prompts.get(entry.turn) ?? "";
    state.entries.set(key, entry);
  }
  const known = new Set(later.order);
  state.order = [...state.order.filter((key) => !known.has(key)), ...later.order];
  state.before = page.before ?? null;
}

function isKnown(state: SessionState, entry: Entry): boolean {
  if (entry.kind === "text" || entry.kind === "thought") return state.entries.has(entry.part);
  return state.entries.has(entry.key);
}

function put(state: SessionState, entries: Entry[], asides: Fact[]): void {
  const beside = asides.filter(isShown).map((fact): Entry => ({ kind: "aside", key: `aside:${fact.seq}`, seq: fact.seq, fact }));
  // Stable: parts keep their order where the place of one is not known.
  const all = [...entries, ...beside].sort((a, b) => a.seq - b.seq);
  for (const entry of all) {
    state.entries.set(entry.key, entry);
    state.order.push(entry.key);
  }
}

function entriesOf(view: View, names: SessionState): Entry[] {
  const prompts = new Map(view.messages.filter(({ role }) => role === "user").map(({ turn, id }) => [turn, id] as const));
  const waits = new Set((view.tip.queue ?? []).map(({ prompt }) => prompt.turn));
  const shown = view.messages.filter((message) => !message.hidden && !(message.role === "user" && waits.has(message.turn)));
  return shown.flatMap((message) => ofMessage(message, prompts, view, names));
}

function ofMessage(message: Message, prompts: Map<string, string>, view: View, names: SessionState): Entry[] {
  const { turn, role, placed = 0, created: time } = message;
  const id = message.id || (prompts.get(turn) ?? view.tip.turn?.message ?? "");
  const entries: Entry[] = [];
  if (role === "user") {
    const content = message.parts.flatMap((part) => ("content" in part ? [part.content] : []));
    entries.push({ kind: "prompt", key: id, seq: placed, turn, message: id, content, time });
  } else {
    for (const part of message.parts) {
      const entry = ofPart(part, turn, id, view, names);
      if (entry) {
        entries.push(entry);
        names.entries.set(entry.key, entry);
      }
    }
  }
  const { stop, stopped, failure } = message;
  if (stop && (stop !== "end_turn" || failure)) {
    entries.push({ kind: "end", key: `end:${turn}`, seq: stopped ?? view.tip.seq, turn, message: id, stop, ...(failure && { failure }) });
  }
  return entries;
}

function ofPart(part: Part, turn: string, message: string, view: View, names: SessionState): Entry | null {
  if ("tool" in part) {
    const { call, first_seq: seq } = part.tool;
    return { kind: "tool", key: toolKey(turn, call), seq, turn, message, call, tool: part.tool };
  }
  if ("content" in part) return null;
  const kind = "text" in part ? "text" : "thought";
  const said = "text" in part ? part.text : part.thought;
  const open = view.tip.turn?.text;
  const isOpen = open?.part === said.part && open.voice === kind && open.first_seq === said.first_seq;
  const { first_seq: seq, started, last, text } = said;
  return { kind, key: saidKey(names, said.part), seq, turn, message, part: said.part, text, started, last, open: isOpen };
}

function turnOf(open: OpenTurn, state: SessionState, view: View): SessionState["turn"] {
  const answers = view.messages.filter(({ role, turn }) => role === "agent" && turn === open.id);
  const speaking = (open.step?.message ?? answers.at(-1)?.id) || open.message;
  const parts = state.order.filter((key) => {
    const entry = state.entries.get(key);
    const isPart = entry?.kind === "text" || entry?.kind === "thought" || entry?.kind === "tool";
    return isPart && entry.turn === open.id && entry.message === speaking;
  });
  const isOpen = (key: string) => {
    const entry = state.entries.get(key);
    return (entry?.kind === "text" || entry?.kind === "thought") && entry.open;
  };
  return {
    ...newTurn(open.id, open.started, open.message),
    step: open.step?.message ?? null,
    steps: open.steps,
    speaking,
    lastPart: parts.at(-1) ?? null,
    openText: parts.find(isOpen) ?? null,
    failure: open.failure ?? null,
    hasCounted: open.has_counted ?? false,
    compaction: open.compaction ?? null,
  };
}
