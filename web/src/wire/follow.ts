import { address } from "./base";
import { refusal, WireError } from "./client";
import { type Message, SseReader } from "./sse";

export type Link =
  | { state: "connecting" }
  | { state: "live" }
  /** The connection is lost; the next try is the one by this number. */
  | { state: "lost"; tries: number }
  /** The server will not tell this stream any more: it is gone, or nobody may read it. */
  | { state: "refused"; error: WireError };

export interface Following {
  /** Below the page's root, without `after`. */
  path: string;
  /** The last position that is known. `null`: from now on. */
  position: string | null;
  /** All that came in one piece, in its order. */
  tell: (messages: Message[]) => void;
  link: (link: Link) => void;
}

const FIRST = 250;
const MOST = 10_000;
/** The server breaks silence every ten seconds: a connection that is quiet for longer is dead, whatever the system says. */
const SILENCE = 30_000;

/** Reads a stream by position, and comes back by itself where it was. */
export class Follower {
  private position: string | null;
  private stopping = new AbortController();
  private tries = 0;
  private wake: (() => void) | null = null;

  constructor(private readonly following: Following) {
    this.position = following.position;
    addEventListener("online", this.hurry);
    document.addEventListener("visibilitychange", this.hurry);
    void this.run();
  }

  stop(): void {
    this.stopping.abort();
    removeEventListener("online", this.hurry);
    document.removeEventListener("visibilitychange", this.hurry);
    this.wake?.();
  }

  /** Tries at once instead of waiting: the network is back, or somebody looks. */
  private hurry = (): void => {
    if (document.visibilityState === "visible") this.wake?.();
  };

  private async run(): Promise<void> {
    this.following.link({ state: "connecting" });
    while (!this.stopping.signal.aborted) {
      const error = await this.read().catch(() => null);
      if (this.stopping.signal.aborted) return;
      if (error) {
        this.following.link({ state: "refused", error });
        return this.stop();
      }
      this.tries += 1;
      this.following.link({ state: "lost", tries: this.tries });
      await this.pause();
    }
  }

  /** Reads until the stream ends. What is given back is a refusal that no further try will change. */
  private async read(): Promise<WireError | null> {
    const cut = new AbortController();
    const stop = () => cut.abort();
    this.stopping.signal.addEventListener("abort", stop);
    let quiet = setTimeout(stop, SILENCE);
    try {
      const { path, tell, link } = this.following;
      const after = this.position === null ? "" : `${path.includes("?") ? "&" : "?"}after=${encodeURIComponent(this.position)}`;
      const headers = { accept: "text/event-stream" };
      const response = await fetch(address(path + after), { headers, signal: cut.signal, cache: "no-store" });
      if (!response.ok || !response.body) {
        // A proxy whose server is away, and a server with too many readers, are worth another try.
        return response.status < 500 && response.status !== 429 ? await refusal(response) : null;
      }
      this.tries = 0;
      link({ state: "live" });
      const [reader, sse, decoder] = [response.body.getReader(), new SseReader(), new TextDecoder()];
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return null;
        clearTimeout(quiet);
        quiet = setTimeout(stop, SILENCE);
        const messages = sse.push(decoder.decode(value, { stream: true }));
        if (!messages.length || cut.signal.aborted) continue;
        tell(messages);
        this.position = messages.at(-1)?.id ?? this.position;
      }
    } finally {
      clearTimeout(quiet);
      this.stopping.signal.removeEventListener("abort", stop);
    }
  }

  private pause(): Promise<void> {
    const most = Math.min(MOST, FIRST * 2 ** Math.min(this.tries - 1, 10));
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, most * (0.5 + Math.random() / 2));
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
