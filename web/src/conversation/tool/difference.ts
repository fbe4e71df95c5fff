// What differs between two texts, line by line.

export interface DiffLine {
  sign: " " | "+" | "-";
  text: string;
  /** Where it stands: in the old text if it was removed, else in the new one. */
  line: number;
}

const CONTEXT = 3;
/** Cells of the table that finds what two texts share; beyond it all between the first and the last change is one change. */
const CELLS = 1_000_000;

const linesOf = (text: string) => (text ? text.replace(/\n$/, "").split("\n") : []);

/** Only the lines that changed, and a few around them. */
export function difference(before: string, after: string): DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)];
  let [head, tail] = [0, 0];
  while (head < Math.min(a.length, b.length) && a[head] === b[head]) head++;
  while (tail < Math.min(a.length, b.length) - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const middle = between(a.slice(head, a.length - tail), b.slice(head, b.length - tail), head);
  const same = (from: number, to: number) => b.slice(from, to).map((text, at): DiffLine => ({ sign: " ", text, line: from + at + 1 }));
  const end = b.length - tail;
  return near([...same(Math.max(0, head - CONTEXT), head), ...middle, ...same(end, Math.min(b.length, end + CONTEXT))]);
}

function between(a: string[], b: string[], head: number): DiffLine[] {
  const removed = (at: number): DiffLine => ({ sign: "-", text: a[at] ?? "", line: head + at + 1 });
  const added = (at: number): DiffLine => ({ sign: "+", text: b[at] ?? "", line: head + at + 1 });
  if (a.length * b.length > CELLS) return [...a.map((_, at) => removed(at)), ...b.map((_, at) => added(at))];
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) lines.push({ sign: " ", text: b[j++] ?? "", line: head + j + (i++, 0) });
    else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) lines.push(removed(i++));
    else lines.push(added(j++));
  }
  return lines;
}

function near(lines: DiffLine[]): DiffLine[] {
  const isNear = lines.map(() => false);
  lines.forEach(({ sign }, at) => {
    if (sign !== " ") isNear.fill(true, Math.max(0, at - CONTEXT), at + CONTEXT + 1);
  });
  return lines.filter((_, at) => isNear[at]);
}

export function counted(lines: DiffLine[]): { added: number; removed: number } {
  return { added: lines.filter(({ sign }) => sign === "+").length, removed: lines.filter(({ sign }) => sign === "-").length };
}
