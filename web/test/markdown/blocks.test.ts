import { describe, expect, test } from "vitest";
import { Blocks, blocksOf } from "../../src/markdown/blocks";

const TEXTS: Record<string, string> = {
  prose: "# Title\n\nSome *words* and\nmore.\n\nA second\n===\n\nlast",
  list: "- a\n- b\n\n  more of b\n\n- c\n\n1. one\n2. two\n\nafter\n\n- x\n    - y\n\n      z\n",
  bullets: "- a\n\n-\n\n- b\n* c\n\n",
  code: "before\n\n```ts\nconst a = 1;\n\n# not a title\n```\nafter\n\n~~~~\n~~~\n```\n~~~~\n\n    indented\n\n    more\n\nend",
  fences: "- a\n\n  ```js\n  x\n  ```\n\n- b\n\n> ```\n> q\n> ```\n\n```unclosed\nx\n",
  table: "| a | b |\n|---|:-:|\n| 1 | 2 |\n| 3 | 4 |\n\ntext | no table\n\na | b\n--|--\n1 | 2\n",
  quotes: "> a\nlazy\n\n> b\n\n---\n\n***\n\ntext\n---\n",
  html: "<div>\n\n*a*\n\n</div>\n\n<!-- c\n\nd -->\n\n<details><summary>x</summary>\n\ny\n\n</details>\n",
  definitions: "See [one] and [two][2].\n\nText.\n\n[one]: https://example.com\n[2]: https://example.org 'T'\n\nMore [one].\n",
  footnote: "A note[^1].\n\n[^1]: The note.\n\nAfter.\n",
  crooked: "**bold\n\n`code\n\n[link](\n\n![i](\n\n~~x\n\n1) a\n2) b\n\n\\* no\n",
  blank: "\n\n\n  \n\ntext\n\n\n",
};

function streamed(text: string, step: number) {
  const blocks = new Blocks();
  for (let to = step; to < text.length; to += step) blocks.of(text.slice(0, to));
  return blocks.of(text);
}

describe.each(Object.entries(TEXTS))("%s", (_, text) => {
  test.each([1, 2, 3, 5, 8, 13, 40])("in pieces of %i is the same as whole", (step) => {
    expect(streamed(text, step)).toEqual(blocksOf(text));
  });

  test("every prefix has the blocks that it has alone", () => {
    const blocks = new Blocks();
    for (let to = 1; to <= text.length; to++) expect(blocks.of(text.slice(0, to))).toEqual(blocksOf(text.slice(0, to)));
  });
});

test("texts by chance are the same in any pieces", () => {
  const words = ["a", "- b", "\n", "\n\n", "```", "```js\n", "# c", "> d", "| e | f |\n|---|---|\n", "1. g", "    ", "---", "<b>", "*h*", " ", "~~~\n", "\t"];
  let seed = 7;
  const next = (most: number) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % most;
  for (let n = 0; n < 400; n++) {
    const text = Array.from({ length: 3 + next(25) }, () => words[next(words.length)]).join("");
    expect(streamed(text, 1 + next(9)), JSON.stringify(text)).toEqual(blocksOf(text));
  }
});

test("a block that is done is not read again", () => {
  const blocks = new Blocks();
  const [first] = blocks.of("one\n\ntwo\n\nthree");
  expect(blocks.of("one\n\ntwo\n\nthree and more")[0]).toBe(first);
});

test("a text that is another one begins anew", () => {
  const blocks = new Blocks();
  blocks.of("one\n\ntwo\n\nthree\n\n");
  expect(blocks.of("# other")).toEqual(blocksOf("# other"));
});

test("code is open until its fence is closed", () => {
  const isClosed = (text: string) => blocksOf(text)[0]?.code?.isClosed;
  expect([isClosed("```js\na"), isClosed("```js\na\n``"), isClosed("```js\na\n```"), isClosed("````\n```\n")]).toEqual([false, false, true, false]);
});

test("a very long line is shown as it is, however it comes", () => {
  const text = `short\n\n${"x*".repeat(60_000)}\n\nafter`;
  expect(blocksOf(text).map(({ kind }) => kind)).toEqual(["markdown", "plain"]);
  expect(streamed(text, 7001)).toEqual(blocksOf(text));
});
