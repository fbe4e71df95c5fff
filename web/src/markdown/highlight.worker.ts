import { createCssVariablesTheme, createHighlighterCore, type HighlighterCore } from "shiki/core";
import { createJavaScriptRegexEngine } from "shiki/engine/javascript";
import type { Colour, Coloured, Wanted } from "./highlight";
import { LOADERS } from "./loaders";

const PREFIX = "--k-";
const COLOURS: Record<string, Colour> = {
  "token-constant": "constant", "token-string": "string", "token-comment": "comment", "token-keyword": "keyword",
  "token-parameter": "plain", "token-function": "function", "token-string-expression": "string", "token-punctuation": "plain",
  "token-link": "string", "token-inserted": "inserted", "token-deleted": "deleted", "token-changed": "keyword",
};

let starting: Promise<HighlighterCore> | null = null;
const loaded = new Map<string, Promise<void>>();

function highlighter(): Promise<HighlighterCore> {
  const theme = createCssVariablesTheme({ name: "ours", variablePrefix: PREFIX });
  // Rules that JavaScript cannot express are left out: less colour, never an error.
  starting ??= createHighlighterCore({ themes: [theme], langs: [], engine: createJavaScriptRegexEngine({ forgiving: true }) });
  return starting;
}

async function colour({ text, language }: Wanted): Promise<Coloured["lines"]> {
  const shiki = await highlighter();
  if (!loaded.has(language)) loaded.set(language, LOADERS[language]().then((found) => shiki.loadLanguage(found.default)));
  await loaded.get(language);
  const lines = shiki.codeToTokensBase(text, { lang: language, theme: "ours", tokenizeMaxLineLength: 2000 });
  const kind = (css: string | undefined) => COLOURS[css?.match(/--k-([\w-]+)/)?.[1] ?? ""] ?? "plain";
  return lines.map((line) => line.map(({ content, color }) => [content, kind(color)] as const));
}

self.onmessage = async ({ data }: MessageEvent<Wanted>) => {
  const lines = await colour(data).catch(() => null);
  self.postMessage({ id: data.id, lines } satisfies Coloured);
};
