// Markdown to HTML that can do nothing: what an agent writes is somebody else's text.
import DOMPurify from "dompurify";
import { Marked } from "marked";
import remend from "remend";

const ELEMENTS = [
  "a", "b", "blockquote", "br", "code", "del", "details", "dd", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i",
  "ins", "kbd", "li", "ol", "p", "pre", "s", "samp", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th",
  "thead", "tr", "ul", "var",
];
const ATTRIBUTES = ["align", "colspan", "href", "open", "rowspan", "start", "title"];
const LINK = /^(?:https?:|mailto:|#)/i;

const escaped = (text: string) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const parser = new Marked({
  gfm: true,
  renderer: {
    // A picture from elsewhere would tell its server who reads: it is a link, to be followed on purpose.
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
    checkbox: ({ checked }) => `<span title="${checked ? "done" : "open"}">${checked ? "☑" : "☐"}</span> `,
  },
});

const purifier = DOMPurify(window);
purifier.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  const target = node.getAttribute("href") ?? "";
  if (!LINK.test(target)) node.removeAttribute("href");
  else if (!target.startsWith("#")) {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noreferrer noopener");
  }
});

/** Of a text that still grows, what is open at its end is closed for the eye: no stray asterisks while words arrive. */
export function htmlOf(markdown: string, isOpen: boolean): string {
  const html = parser.parse(isOpen ? remend(markdown) : markdown, { async: false });
  return purifier.sanitize(html, {
    ALLOWED_TAGS: ELEMENTS, ALLOWED_ATTR: ATTRIBUTES, ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false,
  });
}
