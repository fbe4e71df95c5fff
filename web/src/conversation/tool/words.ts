// What a call did, in words: verb, target, result. The verb comes from kind and input, since a title changes on completion.
import type { Tool } from "../../wire";
import { field, lasted, plural, textOf } from "../../ui/words";

type Forms = [plain: string, going: string, done: string];

const VERBS: Record<string, Forms> = {
  read: ["Read", "Reading", "Read"], edit: ["Edit", "Editing", "Edited"], write: ["Write", "Writing", "Wrote"],
  delete: ["Delete", "Deleting", "Deleted"], move: ["Move", "Moving", "Moved"], search: ["Search", "Searching", "Searched"],
  execute: ["Run", "Running", "Ran"], fetch: ["Fetch", "Fetching", "Fetched"], think: ["Think", "Thinking", "Thought"],
  switch_mode: ["Switch mode", "Switching mode", "Switched mode"], apply_patch: ["Patch", "Patching", "Patched"],
  question: ["Ask", "Asking", "Asked"], artifact: ["Show", "Showing", "Showed"], task: ["Delegate", "Delegating", "Delegated"],
  list: ["List", "Listing", "Listed"], websearch: ["Search the web", "Searching the web", "Searched the web"],
  processes: ["Look at processes", "Looking at processes", "Looked at processes"],
};
/** Kinds that say less than the tool's own name. */
const BY_NAME = new Set(["list", "task", "websearch", "question", "artifact", "apply_patch", "processes"]);

export const isTask = (tool: Tool) => tool.name === "task" || field(tool.input, "subagent_type", "subagentType") !== undefined;

export function isNewFile({ kind, content }: Tool): boolean {
  return kind === "edit" && Boolean(content?.some((piece) => piece.type === "diff" && !textOf(piece.old)));
}

export function verbOf(tool: Tool): string {
  const { kind, name, status, title } = tool;
  const which = isTask(tool) ? "task" : name && BY_NAME.has(name) ? name : isNewFile(tool) || name === "write" ? "write" : kind;
  const forms = VERBS[which] ?? VERBS[name ?? ""];
  if (!forms) return name ?? (title || "Tool");
  return forms[status === "running" ? 1 : status === "completed" || status === "failed" ? 2 : 0];
}

export function targetOf(tool: Tool, workspace: string): string {
  const { title, name, input, content, locations } = tool;
  const named = field(input, "command", "pattern", "query", "filePath", "file_path", "path", "url", "description", "name");
  const diff = content?.find((piece) => piece.type === "diff");
  const target = named ?? diff?.path ?? (title !== name ? title : (locations?.[0]?.path ?? ""));
  return target.replaceAll(`${workspace}/`, "");
}

export function exitOf({ output }: Tool): number | null {
  const told = output as { metadata?: { exit?: unknown }; exit_code?: unknown; exit?: unknown } | undefined;
  const exit = told?.metadata?.exit ?? told?.exit_code ?? told?.exit;
  return typeof exit === "number" ? exit : null;
}

/** A command that ran to its end and said no is over, but people want to see the no. */
export const isBad = (tool: Tool) => tool.status === "failed" || (tool.status === "completed" && (exitOf(tool) ?? 0) !== 0);

export function resultOf(tool: Tool): string | null {
  const { kind, status, started, ended, output, name } = tool;
  if (status === "cancelled") return "stopped";
  if (status !== "completed" && status !== "failed") return null;
  const metadata = (output as { metadata?: { count?: unknown } } | undefined)?.metadata;
  if (kind === "search" && typeof metadata?.count === "number") {
    return plural(metadata.count, name === "grep" ? "match" : name === "list" ? "entry" : "file", name === "grep" ? "matches" : name === "list" ? "entries" : "files");
  }
  if (kind === "read" && status === "completed") {
    const lines = outputOf(tool).split("\n").filter((line) => /^\s*\d+[|\t→]/.test(line)).length;
    return lines ? plural(lines, "line") : null;
  }
  if (kind === "execute" && started !== undefined && ended !== undefined) return lasted(ended - started);
  return null;
}

/** All that a call printed or gave back, as far as it stands in its facts. */
export function outputOf(tool: Tool): string {
  const { content, output, live_output } = tool;
  const said = (content ?? []).flatMap((piece) => (piece.type === "content" && "text" in piece.block ? [textOf(piece.block.text)] : []));
  if (said.some(Boolean)) return said.join("\n");
  if (live_output) return live_output;
  const told = (output as { output?: unknown } | undefined)?.output ?? output;
  if (typeof told === "string") return told;
  return told && typeof told === "object" && !("$blob" in told) ? JSON.stringify(told, null, 2) : "";
}
