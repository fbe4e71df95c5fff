import { Check, ChevronRight, CircleHelp, File, FolderInput, Globe, Lightbulb, ListTree, Package, PenLine, Search, Terminal, Trash2, Users, X } from "lucide-react";
import { memo, useId, useMemo, useState, type ComponentType } from "react";
import { Coloured, languageOfPath } from "../../markdown";
import { type ToolEntry, useEntry, useSlice } from "../../session";
import { blobOf, field, textOf } from "../../ui/words";
import type { Tool } from "../../wire";
import { Diff, DiffCount } from "./diff";
import { Output } from "./output";
import { exitOf, isBad, isTask, outputOf, resultOf, targetOf, verbOf } from "./words";

const ICONS: Record<string, ComponentType> = {
  read: File, edit: PenLine, delete: Trash2, move: FolderInput, search: Search, execute: Terminal, think: Lightbulb, fetch: Globe,
  question: CircleHelp, artifact: Package, task: Users, list: ListTree,
};

/** One call, or a run of calls that only look, each a line that opens. */
export function ToolCard({ keys }: { keys: string[] }) {
  return (
    <div className={keys.length > 1 ? "card stack" : "card"}>
      {keys.map((key) => <ToolRow key={key} id={key} isAlone={keys.length === 1} />)}
    </div>
  );
}

const ToolRow = memo(function ToolRow({ id, isAlone }: { id: string; isAlone: boolean }) {
  const entry = useEntry(id) as ToolEntry | undefined;
  const { workspace } = useSlice("head");
  const body = useId();
  const [chosen, setOpen] = useState<boolean | null>(null);
  const tool = entry?.tool;
  const diffs = useMemo(
    () => (tool?.content ?? []).flatMap((piece) => (piece.type === "diff" ? [{ path: piece.path, before: piece.old, after: piece.new }] : [])),
    [tool?.content],
  );
  if (!tool) return null;
  const isRunning = tool.status === "running" || tool.status === "pending";
  // What a person opened or closed stays so. Failed calls, changes and running commands are open by themselves, and stay.
  const opensItself = isAlone && (isBad(tool) || diffs.length > 0 || (tool.kind === "execute" && Boolean(tool.live_output)));
  const isOpen = chosen ?? opensItself;
  const Icon = ICONS[isTask(tool) ? "task" : (tool.name ?? "")] ?? ICONS[tool.kind] ?? Package;
  const target = targetOf(tool, workspace);
  const exit = exitOf(tool);
  return (
    <div className="row" data-status={tool.status}>
      <button type="button" className="hd" aria-expanded={isOpen} aria-controls={body} onClick={() => setOpen(!isOpen)}>
        <span className={`g g-${tool.kind}`}><Icon /></span>
        <span className="nm">{verbOf(tool)}</span>
        <span className="sub mono" title={target}>{target}</span>
        <span className="r">
          {diffs.length > 0 && <DiffCount pairs={diffs} />}
          {resultOf(tool)}
          {exit !== null && exit !== 0 && <span className="bad-t">exit {exit}</span>}
          <Status tool={tool} isRunning={isRunning} />
          <ChevronRight className="turns" aria-hidden="true" />
        </span>
      </button>
      <div id={body} hidden={!isOpen}>{isOpen && <ToolBody tool={tool} diffs={diffs} />}</div>
    </div>
  );
});

function Status({ tool, isRunning }: { tool: Tool; isRunning: boolean }) {
  if (isRunning) return <span className="spin" role="img" aria-label={tool.status} />;
  if (isBad(tool) || tool.status === "cancelled") return <span className="no" role="img" aria-label={tool.status === "cancelled" ? "stopped" : "failed"}><X /></span>;
  return <span className="ok" role="img" aria-label="done"><Check /></span>;
}

function ToolBody({ tool, diffs }: { tool: Tool; diffs: { path: string; before: Parameters<typeof Diff>[0]["before"]; after: Parameters<typeof Diff>[0]["after"] }[] }) {
  const error = textOf(tool.error);
  const blob = (tool.content ?? []).flatMap((piece) => (piece.type === "content" && "text" in piece.block ? [blobOf(piece.block.text)] : [])).find(Boolean) ?? null;
  const text = diffs.length ? "" : outputOf(tool);
  const command = tool.kind === "execute" ? field(tool.input, "command") : undefined;
  const path = field(tool.input, "filePath", "file_path", "path");
  return (
    <>
      {command?.includes("\n") && <div className="out"><pre tabIndex={0} aria-label="Command">{command}</pre></div>}
      {diffs.map((diff) => <Diff key={diff.path} {...diff} />)}
      {tool.kind === "read" && text && !blob ? <ReadFile text={text} path={path ?? ""} /> : <Output text={text} blob={blob} />}
      {error && <p className="why-not">{error}</p>}
      {!diffs.length && !text && !error && tool.input !== undefined && <div className="out"><pre tabIndex={0} aria-label="Input">{JSON.stringify(tool.input, null, 2)}</pre></div>}
    </>
  );
}

const NUMBERED = /^\s*(\d+)(?:\| ?|\t|→)(.*)$/;

/** A file as it was read: the numbers that the agent was given become a gutter. */
function ReadFile({ text, path }: { text: string; path: string }) {
  const lines = useMemo(() => text.split("\n").slice(0, 400).flatMap((line) => NUMBERED.exec(line)?.slice(1, 3) as [string, string] | undefined ? [NUMBERED.exec(line)!.slice(1, 3)] : []), [text]);
  if (!lines.length) return <Output text={text} blob={null} />;
  return (
    <div className="out numbered" tabIndex={0} role="group" aria-label={`Lines of ${path}`}>
      <pre aria-hidden="true">{lines.map(([number]) => Number(number)).join("\n")}</pre>
      <pre><Coloured text={lines.map(([, line]) => line).join("\n")} language={languageOfPath(path) ?? ""} /></pre>
    </div>
  );
}
