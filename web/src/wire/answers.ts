// What `/v1` answers beside facts and views. The server makes these in place, so they are written by hand;
// `/v1/openapi.json` is their document.
import type { Head, MessageId, Model, SessionId, TurnId, View } from "./types.gen";

/** A session as lists and single looks show it. */
export type Session = Head & { position: string };

export interface Sessions {
  sessions: Session[];
  next: string | null;
}

/** The last turns of a session; those before them are asked for with `before`. */
export type Snapshot = View & { position: string; before?: number };

export interface ModelAbout extends Model {
  name: string;
  sees_images: boolean;
  context?: number;
  output?: number;
}

export interface AgentAbout {
  name: string;
  model: Model | null;
  models: ModelAbout[];
  modes: { name: string; description: string }[];
}

export interface About {
  name: string;
  version: string;
  journal: string;
  workspace: string;
  agents: string[];
  dialects: string[];
  started: number;
  sandbox: { level: string; network: string; hosts: string[]; cannot_stop: unknown } | null;
}

export interface Taken {
  session: SessionId;
  turn: TurnId;
  message: MessageId;
  position: string;
  ahead: number;
  repeated: boolean;
  steers?: TurnId;
}
