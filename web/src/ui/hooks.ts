import { useEffect, useState, useSyncExternalStore } from "react";

/** The time, told anew every so many milliseconds while somebody needs it. */
export function useNow(every: number | null): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (every === null) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const media = matchMedia(query);
      media.addEventListener("change", listener);
      return () => media.removeEventListener("change", listener);
    },
    () => matchMedia(query).matches,
  );
}

/** A choice that this browser keeps. */
export function useKept<T extends string>(name: string, otherwise: T): [T, (value: T) => void] {
  const key = `tolka.${name}`;
  const [value, setValue] = useState<T>(() => {
    try {
      return (localStorage.getItem(key) as T | null) ?? otherwise;
    } catch {
      return otherwise;
    }
  });
  const keep = (next: T) => {
    setValue(next);
    try {
      localStorage.setItem(key, next);
    } catch {
      // Then it lasts as long as the page.
    }
  };
  return [value, keep];
}

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** A single key, outside of text fields. */
export function useKey(key: string, act: (() => void) | null): void {
  useEffect(() => {
    if (!act) return;
    const listen = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== key || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [key, act]);
}
