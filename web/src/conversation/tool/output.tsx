import { memo, useMemo, useState } from "react";
import { CopyButton } from "../../markdown";
import { bytes, count } from "../../ui/words";
import { wire } from "../../wire";
import { runsOf, settled } from "./ansi";

const LINES = 40;
/** All that is shown in place; the rest is downloaded. */
const MOST = 200_000;
/** A line that is longer is cut: no screen shows it, and laying it out would take seconds. */
const WIDEST = 4000;

/** What a command printed, in its colours: the end of it, or on request all. */
export const Output = memo(function Output({ text, blob }: { text: string; blob: { hash: string; size: number } | null }) {
  const [isWhole, setWhole] = useState(false);
  const { shown, hidden } = useMemo(() => tail(text, isWhole), [text, isWhole]);
  const runs = useMemo(() => runsOf(shown), [shown]);
  if (!text && !blob) return null;
  return (
    <div className="out">
      <div className="out-tools">
        {hidden > 0 && <button type="button" className="link" onClick={() => setWhole(true)}>Show all, {count(hidden)} more lines</button>}
        {blob && <a className="link" href={wire.blob(blob.hash)} download>Download all {bytes(blob.size)}</a>}
        <CopyButton text={text} label="Copy output" />
      </div>
      <pre tabIndex={0} aria-label="Output">
        {runs.map((run, at) => (run.style ? <span key={at} className={run.style}>{run.text}</span> : run.text))}
      </pre>
    </div>
  );
});

export function tail(text: string, isWhole: boolean): { shown: string; hidden: number } {
  const near = settled(text.slice(-MOST)).replace(/\n+$/, "");
  const lines = near.split("\n").map((line) => (line.length > WIDEST ? `${line.slice(0, WIDEST)} …` : line));
  const hidden = isWhole ? 0 : Math.max(0, lines.length - LINES);
  return { shown: lines.slice(hidden).join("\n"), hidden };
}
