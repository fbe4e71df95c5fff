// Markdown that grows, cut into blocks. Blocks that nothing can change any more are kept, and only the rest is read again;
// in whatever pieces a text comes, its blocks end up the same.
import { Lexer, type Token } from "marked";

export interface Block {
  /** Where it begins in the text: it keeps its name while the text grows. */
  at: number;
  raw: string;
  /** `plain` is too long to be read as Markdown and is shown as it is. */
  kind: "markdown" | "code" | "plain";
  code: { language: string; text: string; isClosed: boolean } | null;
}

/** Longer paragraphs, lists and tables are no prose, and reading them again and again would cost too much. */
const LONGEST = 30_000;
/** No more than this is read at once, so that a text costs the same whole as in pieces. */
const STRIDE = 10_000;
/** What is said at one place and used at another: then nothing may be cut off. */
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:/m;
const FENCE = /^ {0,3}(?:(`{3,})([^`\n]*)|(~{3,})([^\n]*))(?:\n|$)/;

export class Blocks {
  private frozen: Block[] = [];
  /** Where the first block begins that may still change. */
  private from = 0;
  private text = "";
  private isWhole = false;
  private isPlain = false;

  /** The blocks of a text that begins with the last one that was given here; any other begins anew. */
  of(given: string): Block[] {
    const text = given.includes("\r") ? given.replace(/\r\n?/g, "\n") : given;
    if (!text.startsWith(this.text)) this.reset();
    this.isWhole ||= hasDefinition(text, this.from);
    if (this.isWhole) {
      this.text = text;
      return text.length > LONGEST ? [plain(0, text)] : [{ at: 0, raw: text, kind: "markdown", code: null }];
    }
    for (let to = this.text.length; to < text.length && !this.isPlain; ) {
      to = Math.min(to + STRIDE, text.length);
      // A line that is not whole yet may become anything.
      const end = text.lastIndexOf("\n", to - 1) + 1;
      if (end > this.from) this.freeze(text.slice(this.from, end));
      if (to - this.from <= LONGEST || FENCE.test(text.slice(this.from, this.from + 200))) continue;
      // What stands before an endless line is still what it is.
      this.freeze(text.slice(this.from, end + 200));
      this.isPlain = to - this.from > LONGEST - STRIDE;
    }
    this.text = text;
    return [...this.frozen, ...this.rest(text.slice(this.from))];
  }

  private reset(): void {
    [this.frozen, this.from, this.text, this.isWhole, this.isPlain] = [[], 0, "", false, false];
  }

  private freeze(lines: string): void {
    const fence = FENCE.exec(lines);
    if (fence && fenceEnd(lines, fence) < 0) return;
    const blocks = this.cut(lines);
    // The last one may grow; the others were ended by what follows them.
    for (const block of blocks.slice(0, -1)) {
      this.frozen.push(block);
    }
    this.from = blocks.at(-1)?.at ?? this.from;
  }

  private rest(tail: string): Block[] {
    if (!tail.trim()) return [];
    if (this.isPlain) return [plain(this.from, tail)];
    const fence = FENCE.exec(tail);
    if (fence && fenceEnd(tail, fence) < 0) return [open(this.from, tail, fence)];
    return this.cut(tail);
  }

  private cut(text: string): Block[] {
    const blocks: Block[] = [];
    let at = this.from;
    // What stands inside of blocks is read when they are drawn.
    for (const token of new Lexer().blockTokens(text)) {
      if (token.type !== "space") blocks.push(blockOf(token, at));
      at += token.raw.length;
    }
    return blocks;
  }
}

/** The blocks of a text that is all there. */
export const blocksOf = (text: string): Block[] => new Blocks().of(text);

function hasDefinition(text: string, from: number): boolean {
  return text.includes("]:", from) && DEFINITION.test(text.slice(from));
}

function blockOf(token: Token, at: number): Block {
  if (token.type !== "code") return token.raw.length > LONGEST ? plain(at, token.raw) : { at, raw: token.raw, kind: "markdown", code: null };
  const fence = FENCE.exec(token.raw);
  const isClosed = !fence || fenceEnd(token.raw, fence) >= 0;
  return { at, raw: token.raw, kind: "code", code: { language: language(token.lang as string | undefined), text: token.text as string, isClosed } };
}

const plain = (at: number, raw: string): Block => ({ at, raw, kind: "plain", code: null });

function open(at: number, raw: string, fence: RegExpExecArray): Block {
  return { at, raw, kind: "code", code: { language: language(fence[2] ?? fence[4]), text: raw.slice(fence[0].length).replace(/\n$/, ""), isClosed: false } };
}

const language = (info: string | undefined) => /^[\w+#.-]{1,40}/.exec((info ?? "").trim())?.[0].toLowerCase() ?? "";

/** Where the line that closes a fence ends; -1 while it is open. */
function fenceEnd(text: string, [opening, ticks, , tildes = ""]: RegExpExecArray): number {
  const closing = new RegExp(`^ {0,3}${ticks ? `\`{${ticks.length},}` : `~{${tildes.length},}`}[ \\t]*(?:\\n|$)`, "m");
  const found = closing.exec(text.slice(opening.length));
  return found ? opening.length + found.index + found[0].length : -1;
}
