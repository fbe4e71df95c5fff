// The list of sessions, kept up to date by the feed: a session that something happened in is asked for anew.
import { useSyncExternalStore } from "react";
import { messageOf } from "../ui/words";
import { Follower, type Session, type SessionId, wire, WireError } from "../wire";

export interface SessionList {
  state: "loading" | "ready" | "failed";
  sessions: Session[];
  error: string | null;
  /** Whether the server can be heard. */
  isLive: boolean;
  next: string | null;
}

const PAGE = 100;
/** Facts that change nothing that a list shows. Most of the feed is these, and none of it is read further. */
const QUIET = /"type":"(?:text_appended|thought_appended|input_appended|output_appended|tool_changed|step_started|foreign)"/;
const SESSION = /"session":"([^"]+)"/;
/** Long enough to gather a burst, short enough not to be seen. */
const GATHER = 150;

class Sessions {
  private list: SessionList = { state: "loading", sessions: [], error: null, isLive: false, next: null };
  private listeners = new Set<() => void>();
  private dirty = new Set<SessionId>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private follower: Follower | null = null;

  get = (): SessionList => this.list;

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    if (this.listeners.size === 1) {
      document.addEventListener("visibilitychange", this.look);
      this.look();
    }
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size) return;
      document.removeEventListener("visibilitychange", this.look);
      this.rest();
    };
  };

  async reload(): Promise<void> {
    try {
      const { sessions, next } = await wire.sessions(PAGE);
      this.show({ state: "ready", sessions, next, error: null });
    } catch (error) {
      if (this.list.state !== "ready") this.show({ state: "failed", error: messageOf(error) });
    }
  }

  async more(): Promise<void> {
    if (!this.list.next) return;
    const { sessions, next } = await wire.sessions(PAGE, this.list.next);
    const known = new Set(this.list.sessions.map(({ id }) => id));
    this.show({ sessions: [...this.list.sessions, ...sessions.filter(({ id }) => !known.has(id))], next });
  }

  /** A session that was just made, before the feed tells of it. */
  put(session: Session): void {
    const rest = this.list.sessions.filter(({ id }) => id !== session.id);
    this.show({ sessions: [session, ...rest] });
  }

  /** A list that nobody sees is not followed: browsers have six connections for all tabs together. */
  private look = (): void => {
    if (document.visibilityState === "hidden") this.rest();
    else this.follower ??= this.start();
  };

  private rest(): void {
    this.follower?.stop();
    this.follower = null;
  }

  private start(): Follower {
    return new Follower({
      path: "v1/events",
      position: null,
      tell: (messages) => this.hear(messages.map(({ data }) => data.slice(0, 240))),
      link: (link) => {
        this.show({ isLive: link.state === "live" });
        // What happened before the feed began, or while it was away.
        if (link.state === "live") void this.reload();
        if (link.state === "refused") this.show({ state: "failed", error: link.error.message });
      },
    });
  }

  private hear(heads: string[]): void {
    for (const head of heads) {
      const id = QUIET.test(head) ? null : SESSION.exec(head)?.[1];
      if (id?.startsWith("ses_")) this.dirty.add(id);
    }
    if (this.dirty.size) this.timer ??= setTimeout(() => void this.refresh(), GATHER);
  }

  private async refresh(): Promise<void> {
    this.timer = undefined;
    const ids = [...this.dirty];
    this.dirty.clear();
    const found = await Promise.all(ids.map((id) => wire.session(id).catch((error: unknown) => (isGone(error) ? id : null))));
    const sessions = new Map(this.list.sessions.map((session) => [session.id, session]));
    for (const one of found) {
      if (typeof one === "string") sessions.delete(one);
      // A subagent's is told inside its parent's.
      else if (one && one.parent?.kind !== "subagent") sessions.set(one.id, one);
    }
    this.show({ sessions: [...sessions.values()] });
  }

  private show(change: Partial<SessionList>): void {
    this.list = { ...this.list, ...change };
    this.listeners.forEach((listener) => listener());
  }
}

const isGone = (error: unknown) => error instanceof WireError && error.status === 404;

export const sessions = new Sessions();
export const useSessions = (): SessionList => useSyncExternalStore(sessions.subscribe, sessions.get);

export interface Group {
  name: "Needs you" | "Running" | "Today" | "Yesterday" | "Older";
  sessions: Session[];
}

/** Sessions by what they ask of a person, the latest changed first. */
export function grouped(all: readonly Session[], now: Date): Group[] {
  const midnight = new Date(now).setHours(0, 0, 0, 0) * 1000;
  const yesterday = new Date(new Date(now).setDate(now.getDate() - 1)).setHours(0, 0, 0, 0) * 1000;
  const nameOf = ({ waiting, busy, updated }: Session): Group["name"] => {
    if (waiting > 0) return "Needs you";
    if (busy) return "Running";
    return updated >= midnight ? "Today" : updated >= yesterday ? "Yesterday" : "Older";
  };
  const shown = all.filter(({ archived, deleted }) => !archived && !deleted).sort((a, b) => b.updated - a.updated);
  const names: Group["name"][] = ["Needs you", "Running", "Today", "Yesterday", "Older"];
  return names.map((name) => ({ name, sessions: shown.filter((session) => nameOf(session) === name) })).filter(({ sessions }) => sessions.length);
}
