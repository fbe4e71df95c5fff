// The one place where the store meets React: each component hears of its own piece and of nothing else.
import { createContext, useCallback, useContext, useMemo, useSyncExternalStore } from "react";
import type { LiveLink, LiveSession } from "./live";
import { type Row, rowsOf } from "./rows";
import type { Entry, SessionState, Slice } from "./state";

export const SessionContext = createContext<LiveSession | null>(null);

export function useLive(): LiveSession {
  const live = useContext(SessionContext);
  if (!live) throw new Error("no session is shown here");
  return live;
}

export function useSlice<S extends Slice>(name: S): SessionState[S] {
  const { store } = useLive();
  const subscribe = useCallback((listener: () => void) => store.subscribe(`#${name}`, listener), [store, name]);
  return useSyncExternalStore(subscribe, () => store.slice(name));
}

export function useEntry(key: string): Entry | undefined {
  const { store } = useLive();
  const subscribe = useCallback((listener: () => void) => store.subscribe(key, listener), [store, key]);
  return useSyncExternalStore(subscribe, () => store.entry(key));
}

export function useRows(): Row[] {
  const { store } = useLive();
  const order = useSlice("order");
  return useMemo(() => rowsOf(order, (key) => store.entry(key)), [store, order]);
}

export function useLink(): LiveLink {
  const live = useLive();
  return useSyncExternalStore(live.watch, () => live.link);
}
