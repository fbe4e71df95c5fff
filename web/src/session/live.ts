// One session, followed: a view first, then facts by position; a view again where facts cannot go on.
import { type Fact, Follower, type Link, type SessionId, wire, WireError } from "../wire";
import { SessionStore } from "./store";

export type LiveLink =
  | { state: "loading" }
  | { state: "live"; caughtUp: number | null }
  | { state: "lost"; tries: number; seq: number }
  /** There is no such session, or nobody here may see it. */
  | { state: "gone"; error: WireError };

/** What came while nobody was connected is told to people for this long. */
const SHOWN = 2000;

export class LiveSession {
  readonly store = new SessionStore();
  private follower: Follower | null = null;
  private stopping = new AbortController();
  private listeners = new Set<() => void>();
  private current: LiveLink = { state: "loading" };
  private lostAt: number | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isLoadingEarlier = false;

  constructor(readonly id: SessionId) {
    void this.load();
  }

  get link(): LiveLink {
    return this.current;
  }

  watch = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  close(): void {
    this.stopping.abort();
    this.follower?.stop();
    clearTimeout(this.timer);
  }

  /** The turns before the first that is here, if there are any. */
  async loadEarlier(): Promise<void> {
    const { before } = this.store;
    if (before === null || this.isLoadingEarlier) return;
    this.isLoadingEarlier = true;
    try {
      const page = await wire.view(this.id, before, this.stopping.signal);
      if (this.store.before === before) this.store.prepend(page);
    } finally {
      this.isLoadingEarlier = false;
    }
  }

  private async load(tries = 0): Promise<void> {
    this.follower?.stop();
    try {
      const view = await wire.view(this.id, undefined, this.stopping.signal);
      if (this.stopping.signal.aborted) return;
      this.store.load(view);
      this.follow(view.position);
    } catch (error) {
      if (this.stopping.signal.aborted) return;
      if (error instanceof WireError && error.status >= 400 && error.status < 500) return this.show({ state: "gone", error });
      this.show({ state: "lost", tries: tries + 1, seq: this.store.seq });
      this.timer = setTimeout(() => void this.load(tries + 1), Math.min(8000, 500 * 2 ** tries));
    }
  }

  private follow(position: string): void {
    this.follower = new Follower({
      path: `v1/sessions/${encodeURIComponent(this.id)}/events`,
      position,
      tell: (messages) => this.hear(messages.map(({ data }) => JSON.parse(data) as Fact)),
      link: (link) => this.linked(link),
    });
  }

  private hear(facts: Fact[]): void {
    const fresh = facts.filter(({ seq }) => seq > this.store.seq);
    if (fresh.some(({ seq }, at) => seq !== this.store.seq + at + 1)) return void this.load();
    this.store.apply(fresh);
    if (this.store.isStale) void this.load();
  }

  private linked(link: Link): void {
    if (link.state === "lost") {
      this.lostAt ??= this.store.seq;
      this.show({ state: "lost", tries: link.tries, seq: this.store.seq });
    } else if (link.state === "live") {
      void this.back();
    } else if (link.state === "refused") {
      // The journal is another one, or was cut: what is known here may be wrong.
      if (link.error.status === 410) void this.load();
      else this.show({ state: "gone", error: link.error });
    }
  }

  /** Says how much was missed. The stream brings it; the server only says how much there is. */
  private async back(): Promise<void> {
    const lostAt = this.lostAt;
    this.lostAt = null;
    this.show({ state: "live", caughtUp: null });
    if (lostAt === null) return;
    const session = await wire.session(this.id).catch(() => null);
    if (!session || this.current.state !== "live") return;
    this.show({ state: "live", caughtUp: Math.max(0, Number.parseInt(session.position, 10) - lostAt) });
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.current.state === "live" && this.show({ state: "live", caughtUp: null }), SHOWN);
  }

  private show(link: LiveLink): void {
    this.current = link;
    this.listeners.forEach((listener) => listener());
  }
}
