import { useSyncExternalStore } from "react";

export type Theme = "system" | "dark" | "light";

// `public/assets/theme.js` reads it before the first paint.
const KEY = "tolka.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let chosen: Theme = stored();

function stored(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "dark" || kept === "light" ? kept : "system";
  } catch {
    return "system";
  }
}

function show(): void {
  const isDark = chosen === "dark" || (chosen === "system" && dark.matches);
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
}
dark.addEventListener("change", show);

export function choose(theme: Theme): void {
  chosen = theme;
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // A browser that keeps nothing shows it until the page is left.
  }
  show();
  listeners.forEach((listener) => listener());
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => (listeners.add(listener), () => listeners.delete(listener)), () => chosen);
}
