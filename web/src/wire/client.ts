import type { About, AgentAbout, Session, Sessions, Snapshot, Taken } from "./answers";
import { address } from "./base";
import type { Block, Hash, Model, RequestId, SessionId, TurnId } from "./types.gen";

/** What the server refused, in its words; `status` is 0 when it could not be reached. */
export class WireError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string | null = null,
  ) {
    super(message);
  }
}

export async function refusal(response: Response): Promise<WireError> {
  const answer = (await response.json().catch(() => null)) as { error?: { message?: string; code?: string } } | null;
  const message = answer?.error?.message ?? `The server answered ${response.status}.`;
  return new WireError(message, response.status, answer?.error?.code ?? null);
}

type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** The token is in a cookie that scripts cannot read, so nothing is sent for it here. */
export async function call<T>(method: Method, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const init: RequestInit = { method, headers: { accept: "application/json" } };
  if (signal) init.signal = signal;
  if (body !== undefined) {
    init.headers = { ...init.headers, "content-type": "application/json" };
    init.body = JSON.stringify(body);
  }
  const response = await fetch(address(`v1/${path}`), init).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new WireError("The server cannot be reached.", 0);
  });
  if (!response.ok) throw await refusal(response);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export interface NewSession {
  workspace?: string;
  agent?: string;
  title?: string;
  mode?: string;
  model?: Model;
}

export interface Prompt {
  content: Block[];
  /** The same key twice is one turn: a prompt that is sent again after a lost answer is not told twice. */
  key?: string;
  mode?: string;
  model?: Model;
  steer?: boolean;
}

export type Answer =
  | { option: string; reason?: string }
  | { answers: string[][] }
  | { reject: true; reason?: string };

const of = (id: SessionId) => `sessions/${encodeURIComponent(id)}`;

export const wire = {
  about: () => call<About>("GET", ""),
  agents: () => call<{ agents: AgentAbout[] }>("GET", "agents"),
  sessions: (limit: number, after?: string) =>
    call<Sessions>("GET", `sessions?limit=${limit}${after ? `&after=${encodeURIComponent(after)}` : ""}`),
  session: (id: SessionId) => call<Session>("GET", of(id)),
  create: (session: NewSession) => call<Session>("POST", "sessions", session),
  change: (id: SessionId, change: Partial<{ title: string; mode: string; model: Model; archived: boolean }>) =>
    call<Session>("PATCH", of(id), change),
  remove: (id: SessionId) => call<void>("DELETE", of(id)),
  view: (id: SessionId, before?: number, signal?: AbortSignal) =>
    call<Snapshot>("GET", `${of(id)}/view${before === undefined ? "" : `?before=${before}`}`, undefined, signal),
  prompt: (id: SessionId, prompt: Prompt) => call<Taken>("POST", `${of(id)}/prompt`, prompt),
  drop: (id: SessionId, turn: TurnId) => call<void>("DELETE", `${of(id)}/queue/${encodeURIComponent(turn)}`),
  cancel: (id: SessionId) => call<{ cancelled: boolean }>("POST", `${of(id)}/cancel`, {}),
  answer: (id: SessionId, request: RequestId, answer: Answer) =>
    call<void>("POST", `${of(id)}/answers/${encodeURIComponent(request)}`, answer),
  /** Where a long value stands whole. It is served as bytes, never as a page. */
  blob: (hash: Hash) => address(`v1/blobs/${hash}`),
};
