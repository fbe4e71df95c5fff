// Code is coloured in a worker, so that a long file never holds up what is typed or scrolled.
import { useEffect, useState } from "react";
import { type Language, languageOf } from "./languages";

export type Colour = "plain" | "keyword" | "function" | "string" | "constant" | "comment" | "inserted" | "deleted";
export type Line = readonly (readonly [text: string, colour: Colour])[];

export interface Wanted {
  id: number;
  text: string;
  language: Language;
}

export interface Coloured {
  id: number;
  /** `null`: it cannot be coloured. */
  lines: Line[] | null;
}

/** Longer code stays plain. */
const LONGEST = 200_000;
/** Of the code that was coloured last, so that scrolling back does not flicker. */
const KEPT = 200;

let worker: Worker | null = null;
let last = 0;
const waiting = new Map<number, (lines: Line[] | null) => void>();
const known = new Map<string, Line[]>();

function ask(text: string, language: Language): Promise<Line[] | null> {
  worker ??= start();
  const id = ++last;
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    worker?.postMessage({ id, text, language } satisfies Wanted);
  });
}

function start(): Worker {
  const made = new Worker(new URL("./highlight.worker.ts", import.meta.url), { type: "module" });
  made.onmessage = ({ data }: MessageEvent<Coloured>) => {
    waiting.get(data.id)?.(data.lines);
    waiting.delete(data.id);
  };
  // Without it code is plain, and nothing waits.
  made.onerror = () => {
    waiting.forEach((resolve) => resolve(null));
    waiting.clear();
  };
  return made;
}

function keep(key: string, lines: Line[]): void {
  known.set(key, lines);
  const [oldest] = known.keys();
  if (known.size > KEPT && oldest !== undefined) known.delete(oldest);
}

/** The lines of a code with their colours; `null` until they are known, or for ever. */
export function useColours(text: string, name: string, isWanted: boolean): Line[] | null {
  const language = languageOf(name);
  const key = `${language}\n${text}`;
  const [lines, setLines] = useState<{ key: string; lines: Line[] } | null>(null);
  const ready = known.get(key) ?? (lines?.key === key ? lines.lines : null);
  useEffect(() => {
    if (!isWanted || !language || ready || text.length > LONGEST || typeof Worker === "undefined") return;
    let isHere = true;
    void ask(text, language).then((found) => {
      if (!found) return;
      keep(key, found);
      if (isHere) setLines({ key, lines: found });
    });
    return () => {
      isHere = false;
    };
  }, [key, isWanted, language, ready, text]);
  return ready;
}
