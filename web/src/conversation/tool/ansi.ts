// Terminal output as runs of text with classes. Colours are understood; whatever else a terminal can be told to do is dropped.

export interface Run {
  text: string;
  /** Names of classes, or nothing. */
  style: string;
}

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
// CSI sequences, OSC up to its end, two-byte escapes, and control characters but for tab and line feed.
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\x1b\[([0-9;:]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[\[\]PX^_]?[0-9;:?>=]*|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]/g;

/** A carriage return begins its line anew: of a progress bar only the last state is seen. */
export function settled(text: string): string {
  if (!text.includes("\r")) return text;
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  return lines.map((line) => line.replace(/\r+$/, "").slice(line.replace(/\r+$/, "").lastIndexOf("\r") + 1)).join("\n");
}

export function runsOf(text: string): Run[] {
  const runs: Run[] = [];
  const now = { colour: "", bold: false, dim: false, italic: false, underline: false };
  let at = 0;
  const put = (piece: string) => {
    if (!piece) return;
    const style = [now.colour && `an-${now.colour}`, now.bold && "an-bold", now.dim && "an-dim", now.italic && "an-italic", now.underline && "an-underline"];
    const name = style.filter(Boolean).join(" ");
    const last = runs.at(-1);
    if (last?.style === name) last.text += piece;
    else runs.push({ text: piece, style: name });
  };
  for (const found of text.matchAll(SEQUENCE)) {
    put(text.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[2] === "m") paint(now, found[1] ?? "");
  }
  put(text.slice(at));
  return runs;
}

function paint(now: { colour: string; bold: boolean; dim: boolean; italic: boolean; underline: boolean }, codes: string): void {
  const numbers = codes.split(/[;:]/).map((code) => Number.parseInt(code || "0", 10));
  for (let n = 0; n < numbers.length; n++) {
    const code = numbers[n] ?? 0;
    if (code === 0) Object.assign(now, { colour: "", bold: false, dim: false, italic: false, underline: false });
    else if (code === 1) now.bold = true;
    else if (code === 2) now.dim = true;
    else if (code === 3) now.italic = true;
    else if (code === 4) now.underline = true;
    else if (code === 22) now.bold = now.dim = false;
    else if (code === 23) now.italic = false;
    else if (code === 24) now.underline = false;
    else if (code === 39) now.colour = "";
    else if (code >= 30 && code <= 37) now.colour = COLOURS[code - 30] ?? "";
    else if (code >= 90 && code <= 97) now.colour = COLOURS[code - 90] ?? "";
    else if (code === 38 || code === 48) {
      const index = numbers[n + 1] === 5 ? numbers[n + 2] : undefined;
      if (code === 38) now.colour = index !== undefined && index < 16 ? (COLOURS[index % 8] ?? "") : "";
      n += numbers[n + 1] === 5 ? 2 : 4;
    }
  }
}
