// Where the page is: the list alone (`/`), or one session (`/s/<id>`). Paths are below the page's root, wherever that is.
import { useSyncExternalStore } from "react";
import { address, below, type SessionId } from "../wire";

export type Route = { name: "home" } | { name: "session"; id: SessionId };

const listeners = new Set<() => void>();
addEventListener("popstate", () => listeners.forEach((listener) => listener()));

export function routeOf(path: string): Route {
  const id = /^s\/([^/]+)\/?$/.exec(path)?.[1];
  return id ? { name: "session", id: decodeURIComponent(id) } : { name: "home" };
}

export const hrefOf = (route: Route): string => address(route.name === "home" ? "./" : `s/${encodeURIComponent(route.id)}`);

export function go(route: Route, how: "push" | "replace" = "push"): void {
  if (how === "push") history.pushState(null, "", hrefOf(route));
  else history.replaceState(null, "", hrefOf(route));
  listeners.forEach((listener) => listener());
}

let known: { path: string; route: Route } | null = null;

function current(): Route {
  const path = below(location);
  // The same object while the path is the same: React compares by identity.
  if (known?.path !== path) known = { path, route: routeOf(path) };
  return known.route;
}

export function useRoute(): Route {
  return useSyncExternalStore((listener) => (listeners.add(listener), () => listeners.delete(listener)), current);
}
