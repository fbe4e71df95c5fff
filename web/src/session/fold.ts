// Facts become state. The rules are those of `View` and `Tip` in crates/facts, and the tests hold the two against each
// other; what only encoders need is left out.
import type {
  Changes, CheckpointSaved, Fact, Head, MessageId, PartId, Time, Tool, ToolChanged, ToolStatus, TurnId, Usage,
} from "../wire";
import type { Entry, SaidEntry, SessionState, Slice, ToolEntry, Turn } from "./state";
import { requestOf } from "./state";

/** What a fact touched: slices, and entries by key. */
export interface Touched {
  slices: Set<Slice>;
  entries: Set<string>;
}

const isOver = (status: ToolStatus) => status === "completed" || status === "failed" || status === "cancelled";

export function toolKey(turn: TurnId, call: string): string {
  return `${turn}/${call}`;
}

/** Agents may use the name of a part again after something else: each run is an entry of its own. */
export function saidKey(state: SessionState, part: PartId): string {
  let key: string = part;
  for (let n = 2; state.entries.has(key); n++) key = `${part}~${n}`;
  return key;
}

/** Folds facts into a state, one after the other. */
export class Fold {
  constructor(
    readonly state: SessionState,
    private readonly touched: Touched,
  ) {}

  apply(fact: Fact): void {
    const { state } = this;
    state.seq = fact.seq;
    state.time = fact.time;
    this.event(fact);
    const { head } = state;
    const [busy, queued, waiting] = [Boolean(state.turn ?? state.rewinding), state.queue.length, state.asks.length];
    if (head.busy !== busy || head.queued !== queued || head.waiting !== waiting) this.head({ busy, queued, waiting });
  }

  private event(fact: Fact): void {
    const { state } = this;
    switch (fact.type) {
      case "session_created": {
        const { workspace, agent, title, mode, model, parent } = fact.data;
        const known = { mode, model, parent };
        const zero = { archived: false, deleted: false, turns: 0, files: 0, added: 0, removed: 0, busy: false, queued: 0, waiting: 0 };
        const head: Head = { id: fact.session, workspace, agent, title, created: fact.time, updated: fact.time, tokens: { input: 0, output: 0 }, ...zero };
        state.head = Object.assign(head, JSON.parse(JSON.stringify(known)) as Partial<Head>);
        return this.slice("head");
      }
      case "session_changed":
        return this.head({ ...fact.data, updated: fact.time });
      case "session_deleted":
        return this.head({ deleted: true });

      case "prompt_queued":
        state.queue = [...state.queue, { seq: fact.seq, time: fact.time, prompt: fact.data }];
        this.slice("queue");
        return this.head({ updated: fact.time });
      case "prompt_dropped":
        return void this.take(fact.data.turn);
      case "prompt_steered":
        this.place(fact.data.turn, fact.data.into, fact);
        return this.head({ updated: fact.time });
      case "turn_started": {
        const message = this.place(fact.data.turn, fact.data.turn, fact);
        state.turn = newTurn(fact.data.turn, fact.time, message ?? "");
        state.rewinds = [];
        this.slice("turn", "rewinds");
        return this.head({ turns: state.head.turns + 1, updated: fact.time });
      }
      case "turn_ended":
        return this.endTurn(fact);
      case "step_started":
        this.endText();
        this.calm();
        if (state.turn) this.turn({ step: fact.data.message, speaking: fact.data.message, steps: state.turn.steps + 1, lastPart: null });
        return;
      case "step_ended":
        this.endText();
        this.count(fact.data.usage);
        if (state.turn) this.turn({ step: null });
        return;

      case "text_appended":
        return this.say("text", fact.data.part, fact.data.text, fact);
      case "thought_appended":
        return this.say("thought", fact.data.part, fact.data.text, fact);
      case "tool_changed": {
        const entry = this.call(fact.data.call, fact);
        if (entry) this.merge(entry, fact.data, fact.time);
        return;
      }
      case "input_appended": {
        const entry = this.call(fact.data.call, fact);
        if (entry) entry.tool = { ...entry.tool, live_input: (entry.tool.live_input ?? "") + fact.data.text };
        return;
      }
      case "output_appended": {
        const entry = this.call(fact.data.call, fact);
        if (entry) entry.tool = { ...entry.tool, live_output: (entry.tool.live_output ?? "") + fact.data.text };
        return;
      }

      case "plan_set":
        state.plan = fact.data.entries;
        return this.slice("plan");
      case "mode_set":
        return this.head({ mode: fact.data.mode });
      case "commands_set":
        state.commands = fact.data.commands;
        return this.slice("commands");
      case "usage_set":
        state.usage = fact.data;
        this.slice("usage");
        this.count(fact.data.subagents);
        return fact.data.cost && this.head({ cost: fact.data.cost });

      case "file_changed": {
        const { files, added, removed } = state.head;
        return this.head({ files: files + 1, added: added + fact.data.added, removed: removed + fact.data.removed });
      }
      case "artifact_saved":
        // Saved again, it is the same artifact as it is now.
        state.artifacts = withArtifact(state.artifacts, fact.data);
        return this.slice("artifacts");

      case "permission_asked":
        return this.ask({ permission: fact.data });
      case "question_asked":
        return this.ask({ question: fact.data });
      case "permission_answered":
      case "question_answered":
        state.asks = state.asks.filter((ask) => requestOf(ask) !== fact.data.request);
        return this.slice("asks");

      case "compaction_started":
        return state.turn ? this.turn({ compaction: fact.data.id }) : undefined;
      case "compaction_ended":
        this.count(fact.data.usage);
        if (state.turn) {
          const compaction = state.turn.compaction === fact.data.id ? null : state.turn.compaction;
          this.turn({ compaction, hasCounted: state.turn.hasCounted || fact.data.usage !== undefined });
        }
        return this.aside(fact);

      case "process_started":
        state.processes = [...state.processes, fact.data];
        this.slice("processes");
        return this.head({ processes: state.processes.length });
      case "process_ended":
        state.processes = state.processes.filter(({ process }) => process !== fact.data.process);
        this.slice("processes");
        return this.head({ processes: state.processes.length });

      case "checkpoint_saved":
        return this.counted((fact.data satisfies CheckpointSaved).total);
      case "approved":
        this.counted({ count: 0, added: 0, removed: 0, files: [] });
        return this.aside(fact);
      case "rewind_started":
        state.rewinding = fact.data;
        return this.slice("rewinding");
      case "rewind_failed":
        state.rewinding = null;
        this.slice("rewinding");
        return this.aside(fact);
      // What they hide and show again is the server's to say: a view knows it.
      case "rewound":
      case "unrewound":
        state.stale = true;
        return this.slice("stale");
      case "message_hidden":
        return this.hide(fact.data.message);
      case "session_forked":
        this.counted({ count: 0, added: 0, removed: 0, files: [] });
        return this.head({ created: fact.time, updated: fact.time });

      case "failed":
        if (state.turn) return this.turn({ failure: fact.data });
        return this.aside(fact);
      case "noticed":
      case "files_moved":
        return this.aside(fact);
      case "retry_scheduled":
        state.retry = { ...fact.data, since: fact.time };
        return this.slice("retry");

      // Kept as they came, for the wire's inspector; nothing of the conversation.
      case "foreign":
      // The server's own, and other families'.
      case "instance_disposed":
      case "version_changed":
      case "update_found":
      case "branch_changed":
      case "pty_changed":
      case "session_chosen":
        return;
      default:
        // A new kind of fact does not pass the compiler; one from a newer server changes nothing.
        fact satisfies never;
    }
  }

  private slice(...slices: Slice[]): void {
    for (const slice of slices) this.touched.slices.add(slice);
  }

  private head(change: Partial<Head>): void {
    this.state.head = { ...this.state.head, ...change };
    this.slice("head");
  }

  private turn(change: Partial<Turn>): void {
    if (!this.state.turn) return;
    this.state.turn = { ...this.state.turn, ...change };
    this.slice("turn");
  }

  private put(entry: Entry): void {
    this.state.entries.set(entry.key, entry);
    this.state.order.push(entry.key);
    this.touched.entries.add(entry.key);
    this.slice("order");
  }

  private aside(fact: Fact): void {
    this.put({ kind: "aside", key: `aside:${fact.seq}`, seq: fact.seq, fact });
  }

  private count(usage: Usage | undefined): void {
    if (usage) this.head({ tokens: sum(this.state.head.tokens, usage) });
  }

  /** A snapshot knows what changed; what was told of it one by one does not add up to more. */
  private counted(total: Changes | undefined): void {
    if (total) this.head({ files: total.count, added: total.added, removed: total.removed });
  }

  private ask(ask: SessionState["asks"][number]): void {
    // Nobody answers what is asked outside of a turn.
    if (!this.state.turn) return;
    this.state.asks = [...this.state.asks, ask];
    this.slice("asks");
  }

  private take(turn: TurnId) {
    const taken = this.state.queue.find((queued) => queued.prompt.turn === turn);
    if (taken) {
      this.state.queue = this.state.queue.filter((queued) => queued !== taken);
      this.slice("queue");
    }
    return taken?.prompt;
  }

  /** A prompt that waited takes its place in a turn. */
  private place(waited: TurnId, turn: TurnId, fact: Fact): MessageId | undefined {
    const queued = this.state.queue.find(({ prompt }) => prompt.turn === waited);
    const prompt = this.take(waited);
    if (!queued || !prompt) return undefined;
    const { message, content } = prompt;
    this.put({ kind: "prompt", key: message, seq: fact.seq, turn, message, content, time: queued.time });
    return message;
  }

  private endText(): void {
    const open = this.state.turn?.openText;
    if (!open) return;
    const entry = this.state.entries.get(open) as SaidEntry | undefined;
    if (entry) {
      entry.open = false;
      this.touched.entries.add(open);
    }
    this.turn({ openText: null });
  }

  /** The model answered: what it was waited for is over. */
  private calm(): void {
    if (!this.state.retry) return;
    this.state.retry = null;
    this.slice("retry");
  }

  private say(kind: "text" | "thought", part: PartId, text: string, fact: Fact): void {
    const { turn, entries } = this.state;
    if (!turn) return;
    const last = turn.lastPart ? entries.get(turn.lastPart) : undefined;
    if (last && last.kind === kind && last.part === part) {
      last.text += text;
      last.last = fact.time;
      last.open = true;
      this.touched.entries.add(last.key);
      if (turn.openText !== last.key) this.turn({ openText: last.key });
      return;
    }
    this.endText();
    this.calm();
    const key = saidKey(this.state, part);
    const at = { key, seq: fact.seq, turn: turn.id, message: turn.speaking };
    this.put({ ...at, kind, part, text, started: fact.time, last: fact.time, open: true });
    this.turn({ lastPart: key, openText: key });
  }

  /** The call to change, made on first sight; nothing comes after its end. */
  private call(call: string, fact: Fact): ToolEntry | null {
    const { turn, entries } = this.state;
    if (!turn) return null;
    const key = toolKey(turn.id, call);
    const known = entries.get(key);
    if (known?.kind === "tool") {
      if (isOver(known.tool.status)) return null;
      this.touched.entries.add(key);
      return known;
    }
    this.endText();
    this.calm();
    const message = turn.step ?? turn.message;
    const tool: Tool = { call, first_seq: fact.seq, first_time: fact.time, message, kind: "other", title: "", status: "pending" };
    const entry: ToolEntry = { kind: "tool", key, seq: fact.seq, turn: turn.id, message: turn.speaking, call, tool };
    this.put(entry);
    this.turn({ lastPart: key });
    return entry;
  }

  /** What an update names replaces, what it does not stays; a call that runs does not wait again. */
  private merge(entry: ToolEntry, change: ToolChanged, time: Time): void {
    const { status, ...rest } = change;
    const tool: Tool = { ...entry.tool, ...rest };
    if (rest.kind && rest.kind !== entry.tool.kind) this.slice("order");
    const isStepBack = status === "pending" && entry.tool.status !== "pending";
    if (status && !isStepBack) {
      tool.status = status;
      if (status !== "pending") tool.started ??= time;
      if (isOver(status)) tool.ended ??= time;
    }
    entry.tool = tool;
  }

  private endTurn(fact: Fact & { type: "turn_ended" }): void {
    const { turn, head } = this.state;
    this.endText();
    this.calm();
    const { stop, usage } = fact.data;
    if (usage && (!turn || (turn.steps === 0 && !turn.hasCounted))) this.count(usage);
    const failure = turn?.failure ?? undefined;
    if (turn && (stop !== "end_turn" || failure)) {
      const at = { key: `end:${turn.id}`, seq: fact.seq, turn: turn.id, message: turn.speaking };
      this.put({ ...at, kind: "end", stop, ...(failure && { failure }) });
    }
    this.state.turn = null;
    this.state.asks = [];
    this.slice("turn", "asks");
    if (head.updated !== fact.time) this.head({ updated: fact.time });
  }

  private hide(message: MessageId): void {
    const hidden = this.state.order.filter((key) => {
      const entry = this.state.entries.get(key);
      return entry && entry.kind !== "aside" && entry.message === message;
    });
    if (!hidden.length) return;
    hidden.forEach((key) => this.state.entries.delete(key));
    this.state.order = this.state.order.filter((key) => !hidden.includes(key));
    this.slice("order");
  }
}

export function newTurn(id: TurnId, started: Time, message: MessageId): Turn {
  return {
    id, started, message, step: null, steps: 0, speaking: message, lastPart: null, openText: null, failure: null, hasCounted: false, compaction: null,
  };
}

export function withArtifact(known: SessionState["artifacts"], saved: SessionState["artifacts"][number]) {
  const isKnown = known.some(({ path }) => path === saved.path);
  return isKnown ? known.map((old) => (old.path === saved.path ? saved : old)) : [...known, saved];
}

function sum(a: Usage, b: Usage): Usage {
  const add = (x = 0, y = 0) => x + y;
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    ...nonZero("reasoning", add(a.reasoning, b.reasoning)),
    ...nonZero("cache_read", add(a.cache_read, b.cache_read)),
    ...nonZero("cache_write", add(a.cache_write, b.cache_write)),
  };
}

const nonZero = (name: keyof Usage, count: number) => (count ? { [name]: count } : {});
