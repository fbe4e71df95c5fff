// Holds the state of one session and tells those who look at a piece of it when that piece changed. Any number of facts
// between two frames of the screen is one change.
import type { Fact, Snapshot } from "../wire";
import { Fold, type Touched } from "./fold";
import { emptyState, prepend, stateOf } from "./snapshot";
import type { Entry, SessionState, Slice } from "./state";

type Listener = () => void;
/** An entry by its key, or a slice by its name with a `#` before it: no key begins with one. */
type Topic = string;

export type Scheduler = (commit: () => void) => void;

/** Frames do not come while nobody looks; the state must not fall behind for it. */
const byFrame: Scheduler = (commit) => {
  if (document.visibilityState === "hidden") setTimeout(commit, 200);
  else requestAnimationFrame(commit);
};

export class SessionStore {
  private state: SessionState = emptyState();
  private touched: Touched = { slices: new Set(), entries: new Set() };
  private fold = new Fold(this.state, this.touched);
  private shown = new Map<string, Entry>();
  private slices = new Map<Slice, unknown>();
  private listeners = new Map<Topic, Set<Listener>>();
  private isScheduled = false;

  constructor(private readonly schedule: Scheduler = byFrame) {
    this.showAll();
  }

  /** The place of the last fact that was folded in, shown or not. */
  get seq(): number {
    return this.state.seq;
  }

  get isStale(): boolean {
    return this.state.stale;
  }

  get before(): number | null {
    return this.state.before;
  }

  load(view: Snapshot): void {
    this.take(stateOf(view));
  }

  /** Turns before the first that is here. */
  prepend(page: Snapshot): void {
    prepend(this.state, page);
    this.take(this.state);
  }

  apply(facts: Fact[]): void {
    for (const fact of facts) this.fold.apply(fact);
    this.commitSoon();
  }

  entry(key: string): Entry | undefined {
    return this.shown.get(key);
  }

  slice<S extends Slice>(name: S): SessionState[S] {
    return this.slices.get(name) as SessionState[S];
  }

  subscribe(topic: Topic, listener: Listener): () => void {
    const here = this.listeners.get(topic) ?? new Set();
    this.listeners.set(topic, here.add(listener));
    return () => {
      here.delete(listener);
      if (!here.size) this.listeners.delete(topic);
    };
  }

  /** Shows what was folded in. Tests call it; else a frame does. */
  commit = (): void => {
    this.isScheduled = false;
    const { slices, entries } = this.touched;
    const topics: Topic[] = [...entries, ...[...slices].map((slice) => `#${slice}`)];
    for (const key of entries) this.show(key);
    for (const slice of slices) this.showSlice(slice);
    entries.clear();
    slices.clear();
    for (const topic of topics) this.listeners.get(topic)?.forEach((listener) => listener());
  };

  private take(state: SessionState): void {
    const known = new Set(this.shown.keys());
    this.state = state;
    this.fold = new Fold(state, this.touched);
    for (const key of [...known, ...state.entries.keys()]) this.touched.entries.add(key);
    for (const slice of SLICES) this.touched.slices.add(slice);
    this.commitSoon();
  }

  private commitSoon(): void {
    if (this.isScheduled || !(this.touched.entries.size + this.touched.slices.size)) return;
    this.isScheduled = true;
    this.schedule(this.commit);
  }

  private show(key: string): void {
    const entry = this.state.entries.get(key);
    // A copy: the fold goes on writing into its own.
    if (entry) this.shown.set(key, { ...entry });
    else this.shown.delete(key);
  }

  private showSlice(name: Slice): void {
    const value = this.state[name];
    this.slices.set(name, name === "order" ? [...(value as string[])] : value);
  }

  private showAll(): void {
    SLICES.forEach((slice) => this.showSlice(slice));
  }
}

const SLICES = [
  "head", "turn", "queue", "asks", "plan", "usage", "processes", "artifacts", "commands", "rewinds", "rewinding", "retry", "order",
  "before", "stale",
] as const satisfies Slice[];
