import { expect, test } from "vitest";
import { runsOf, settled } from "../../src/conversation/tool/ansi";
import { difference } from "../../src/conversation/tool/difference";
import { tail } from "../../src/conversation/tool/output";
import { isBad, resultOf, targetOf, verbOf } from "../../src/conversation/tool/words";
import { rowsOf } from "../../src/session/rows";
import type { Entry } from "../../src/session";
import type { Tool } from "../../src/wire";

const tool = (about: Partial<Tool>): Tool => ({ call: "c", first_seq: 1, first_time: 1, message: "m", kind: "other", title: "", status: "completed", ...about });

test("a call is told by verb, target and result", () => {
  const told = (about: Partial<Tool>) => [verbOf(tool(about)), targetOf(tool(about), "/w"), resultOf(tool(about))];
  expect(told({ kind: "execute", input: { command: "npm test" }, started: 0, ended: 3_100_000 })).toEqual(["Ran", "npm test", "3.1 s"]);
  expect(told({ kind: "edit", title: "/w/a.ts", content: [{ type: "diff", path: "/w/a.ts", old: "a", new: "b" }] })).toEqual(["Edited", "a.ts", null]);
  expect(told({ kind: "edit", status: "running", content: [{ type: "diff", path: "/w/a.ts", new: "b" }] })).toEqual(["Writing", "a.ts", null]);
  expect(told({ kind: "search", name: "glob", input: { pattern: "**/*.csv" }, output: { metadata: { count: 12 } } })).toEqual(["Searched", "**/*.csv", "12 files"]);
  expect(told({ kind: "read", input: { filePath: "/w/a" }, output: { output: "<file>\n00001| a\n00002| b\n</file>" } })).toEqual(["Read", "a", "2 lines"]);
  expect(told({ name: "frobnicate", status: "pending" })).toEqual(["frobnicate", "", null]);
});

test("a command that ended with a no is bad", () => {
  const exits = (exit: number | null) => isBad(tool({ kind: "execute", output: { metadata: { exit } } }));
  expect([exits(0), exits(1), exits(null), isBad(tool({ status: "failed" }))]).toEqual([false, true, false, true]);
});

test("colours are kept and everything else that a terminal is told is dropped", () => {
  expect(runsOf("a\x1b[1;31mred\x1b[0m b\x1b[38;5;2mg\x1b[39m\x1b[2J\x1b[10;10H\x1b]0;title\x07\x1b]8;;javascript:1\x1b\\x\x1b]8;;\x1b\\\x07\x08!")).toEqual([
    { text: "a", style: "" }, { text: "red", style: "an-red an-bold" }, { text: " b", style: "" }, { text: "g", style: "an-green" }, { text: "x!", style: "" },
  ]);
  for (const odd of ["\x1b", "\x1b[", "\x1b[31", "\x1b[999999999999m", "\x1b[;;;;m", "\x1b]0;never ends"]) expect(() => runsOf(odd)).not.toThrow();
  expect(runsOf("\x1b[31m".repeat(100_000) + "x")).toEqual([{ text: "x", style: "an-red" }]);
});

test("of a line that is written anew the last state is seen", () => {
  expect(settled("10%\r50%\r100%\ndone\r\n")).toBe("100%\ndone\n");
});

test("of long output the end is shown", () => {
  const text = Array.from({ length: 100 }, (_, n) => `line ${n}`).join("\n");
  expect(tail(text, false)).toEqual({ shown: text.split("\n").slice(60).join("\n"), hidden: 60 });
  expect(tail(text, true).hidden).toBe(0);
  expect(tail("x".repeat(10_000_000), true).shown.length).toBeLessThan(5000);
});

test("a difference is what changed and a little around it", () => {
  const [before, after] = ["a\nb\nc\nd\ne\nf\ng\nh\n", "a\nb\nc\nd\nE\nf\ng\nh\n"];
  expect(difference(before, after).map(({ sign, text, line }) => `${line}${sign}${text}`)).toEqual(["2 b", "3 c", "4 d", "5-e", "5+E", "6 f", "7 g", "8 h"]);
  expect(difference("", "x\ny\n").map(({ sign }) => sign)).toEqual(["+", "+"]);
  expect(difference("same\n", "same\n")).toEqual([]);
  expect(difference("a\nx\nb\ny\nc", "a\nX\nb\nY\nc").map(({ sign, text }) => sign + text)).toEqual([" a", "-x", "+X", " b", "-y", "+Y", " c"]);
});

test("runs of looking are one row, and the plan is none", () => {
  const entries: Record<string, Partial<Tool>> = {
    a: { kind: "read" }, b: { kind: "search" }, c: { kind: "execute" }, d: { name: "todowrite" }, e: { kind: "read" }, f: { input: { todos: [] } }, g: { kind: "search" },
  };
  const entry = (key: string) => ({ kind: "tool", key, tool: tool(entries[key] ?? {}) }) as Entry;
  expect(rowsOf(Object.keys(entries), entry).map(({ keys }) => keys)).toEqual([["a", "b"], ["c"], ["e", "g"]]);
});
