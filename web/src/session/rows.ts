// The conversation as rows: runs of looking (reading, searching) stand in one card.
import type { Entry } from "./state";

export interface Row {
  key: string;
  /** One entry, or several calls that only look. */
  keys: string[];
}

const isLook = (entry: Entry | undefined) => entry?.kind === "tool" && (entry.tool.kind === "read" || entry.tool.kind === "search");

/** What sets the plan is shown by the plan itself. */
function isPlan(entry: Entry | undefined): boolean {
  if (entry?.kind !== "tool") return false;
  const { name, input } = entry.tool;
  return name === "todowrite" || name === "todo_write" || Array.isArray((input as { todos?: unknown } | undefined)?.todos);
}

export function rowsOf(order: readonly string[], entry: (key: string) => Entry | undefined): Row[] {
  const rows: Row[] = [];
  let run: Row | null = null;
  for (const key of order) {
    if (isPlan(entry(key))) continue;
    const looks = isLook(entry(key));
    if (looks && run) {
      run.keys.push(key);
      continue;
    }
    const row: Row = { key, keys: [key] };
    rows.push(row);
    run = looks ? row : null;
  }
  return rows;
}
