// @vitest-environment jsdom
import { render } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { Markdown } from "../../src/markdown";
import { htmlOf } from "../../src/markdown/html";

const HOSTILE = [
  "<script>globalThis.hacked = 1</script>",
  "<img src=x onerror='globalThis.hacked = 1'>",
  "[a](javascript:globalThis.hacked=1)",
  "[a](JaVaScRiPt:globalThis.hacked=1)",
  "[a](java\tscript:globalThis.hacked=1)",
  "[a](data:text/html,<script>globalThis.hacked=1</script>)",
  "<a href='&#106;avascript:globalThis.hacked=1'>a</a>",
  "<svg><script>globalThis.hacked=1</script></svg>",
  "<svg onload='globalThis.hacked=1'><a xlink:href='javascript:1'><text>x</text></a></svg>",
  "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=globalThis.hacked=1&gt;'>",
  "<iframe srcdoc='<script>parent.hacked=1</script>'></iframe>",
  "<form action='https://example.com'><input name=a><button>x</button></form>",
  "<style>*{display:none}</style><link rel=stylesheet href=//example.com/x.css>",
  "<div style='position:fixed;inset:0' class='perm' id='x' onclick='globalThis.hacked=1'>x</div>",
  "<base href='//example.com'><meta http-equiv=refresh content='0;url=//example.com'>",
  "![track](https://example.com/pixel.png)",
  "```html\n<script>globalThis.hacked=1</script>\n```",
  "<details open ontoggle='globalThis.hacked=1'><summary>x</summary></details>",
  "| <script>globalThis.hacked=1</script> | b |\n|---|---|\n| <img src=x onerror=globalThis.hacked=1> | d |",
];
const FORBIDDEN = "script, style, link, meta, base, iframe, object, embed, form, input, img, svg, math, [style], [class]:not(.prose, .code, .copy, .lucide, .plain), [id], [src], [srcdoc]";

afterEach(() => {
  expect((globalThis as { hacked?: number }).hacked).toBeUndefined();
});

test.each(HOSTILE)("%s does nothing", (text) => {
  for (const isOpen of [false, true]) {
    const root = document.createElement("div");
    root.innerHTML = htmlOf(text, isOpen);
    expect(root.querySelector(FORBIDDEN)?.outerHTML).toBeUndefined();
    for (const node of root.querySelectorAll("*")) {
      for (const { name, value } of node.attributes) {
        expect(name.startsWith("on")).toBe(false);
        if (name === "href") expect(value).toMatch(/^(https?:|mailto:|#)/i);
      }
    }
  }
});

test("links leave the page alone", () => {
  const root = document.createElement("div");
  root.innerHTML = htmlOf("[a](https://example.com) <https://example.org>", false);
  const links = [...root.querySelectorAll("a")].map((link) => [link.getAttribute("target"), link.getAttribute("rel")]);
  expect(links).toEqual([["_blank", "noreferrer noopener"], ["_blank", "noreferrer noopener"]]);
});

test("GitHub's words are drawn", () => {
  const { container } = render(<Markdown text={"# T\n\n~~old~~ **new** `code`\n\n- [x] done\n- [ ] open\n\n| a |\n|---|\n| 1 |\n\n```js\nlet a\n```"} />);
  for (const wanted of ["h1", "del", "strong", "p code", "li", "table td", "figure.code pre"]) expect(container.querySelector(wanted), wanted).not.toBeNull();
  expect(container.textContent).toContain("☑");
});

test("while words arrive no sign stands open", () => {
  const { container, rerender } = render(<Markdown text="This is **bo" isOpen />);
  expect(container.querySelector("strong")?.textContent).toBe("bo");
  const first = container.querySelector("p");
  rerender(<Markdown text={"This is **bold**.\n\nNext"} isOpen />);
  expect(first).not.toBeNull();
  expect(container.textContent?.replace(/\n/g, "")).toBe("This is bold.Next");
});

test("ten megabytes in one line freeze nothing", () => {
  const { container } = render(<Markdown text={`<b>${"[x](".repeat(2_500_000)}`} />);
  expect(container.querySelector("pre.plain")).not.toBeNull();
});
