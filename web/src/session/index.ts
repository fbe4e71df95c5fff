// A session as the page knows it: facts in, pieces that can be looked at out.
export { LiveSession, type LiveLink } from "./live";
export { SessionContext, useEntry, useLink, useLive, useRows, useSlice } from "./react";
export type { Row } from "./rows";
export { requestOf } from "./state";
export type { AsideEntry, EndEntry, Entry, PromptEntry, Retry, SaidEntry, SessionState, Slice, ToolEntry, Turn } from "./state";
export { SessionStore } from "./store";
