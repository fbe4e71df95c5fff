// What a session looks like after some facts. Plain data, no framework: the fold writes it, the store shows it.
import type {
  ArtifactSaved, Ask, Block, CallId, Command, Fact, Failed, Head, MessageId, PartId, PlanEntry, ProcessStarted, Queued,
  RetryScheduled, Rewind, RewindStarted, Stop, Time, Tool, TurnId, UsageSet,
} from "../wire";

interface Placed {
  /** Never changes, and no other entry of the session has it. */
  key: string;
  /** Where it took its place: entries stand in this order. */
  seq: number;
}

interface OfTurn extends Placed {
  turn: TurnId;
  /** A step's, or the prompt's where the agent tells no steps. */
  message: MessageId;
}

export interface PromptEntry extends OfTurn {
  kind: "prompt";
  content: Block[];
  time: Time;
}

export interface SaidEntry extends OfTurn {
  kind: "text" | "thought";
  part: PartId;
  text: string;
  started: Time;
  last: Time;
  /** It may still grow. */
  open: boolean;
}

export interface ToolEntry extends OfTurn {
  kind: "tool";
  call: CallId;
  tool: Tool;
}

/** How a turn ended, where that is not simply the end of what was said. */
export interface EndEntry extends OfTurn {
  kind: "end";
  stop: Stop;
  failure?: Failed;
}

/** Something beside the conversation: a notice, a summary, a failure between turns. */
export interface AsideEntry extends Placed {
  kind: "aside";
  fact: Fact;
}

export type Entry = PromptEntry | SaidEntry | ToolEntry | EndEntry | AsideEntry;

export interface Turn {
  id: TurnId;
  started: Time;
  /** The prompt's message. */
  message: MessageId;
  /** The open step's message. */
  step: MessageId | null;
  steps: number;
  /** The message that parts go to: the last step's, else the prompt's. */
  speaking: MessageId;
  /** The last part of the message that parts go to now. */
  lastPart: string | null;
  /** The text that is open. */
  openText: string | null;
  failure: Failed | null;
  /** A summary was counted in it already; its end tells that once more. */
  hasCounted: boolean;
  compaction: string | null;
}

/** The model could not be asked; it is asked again. Only whoever is there knows it. */
export type Retry = RetryScheduled & { since: Time };

export interface SessionState {
  seq: number;
  time: Time;
  head: Head;
  turn: Turn | null;
  queue: Queued[];
  asks: Ask[];
  plan: PlanEntry[];
  usage: UsageSet | null;
  processes: ProcessStarted[];
  artifacts: ArtifactSaved[];
  commands: Command[];
  rewinds: Rewind[];
  rewinding: RewindStarted | null;
  retry: Retry | null;
  entries: Map<string, Entry>;
  /** The keys of the entries, in the order of the conversation. */
  order: string[];
  /** Pages of the past are asked for with it. `null`: all is here. */
  before: number | null;
  /** The facts cannot be folded on from here: a view is needed. */
  stale: boolean;
}

/** What the store tells of beside single entries. */
export type Slice = Exclude<keyof SessionState, "entries" | "seq" | "time">;

export const requestOf = (ask: Ask) => ("permission" in ask ? ask.permission : ask.question).request;
