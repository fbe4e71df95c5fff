// The server, as the page sees it: typed calls, streams that come back, and the types of facts. Nothing here draws.
export * from "./answers";
export { address, below } from "./base";
export { type Answer, type NewSession, type Prompt, wire, WireError } from "./client";
export { Follower, type Following, type Link } from "./follow";
export type * from "./types.gen";
