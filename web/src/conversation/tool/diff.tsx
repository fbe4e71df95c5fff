// The seam for a richer diff view: whoever draws one is given a path and two texts, and loads it lazily here.
import { useMemo, useState } from "react";
import type { Body } from "../../wire";
import { count, textOf } from "../../ui/words";
import { counted, difference } from "./difference";

const OPEN = 40;

export function Diff({ path, before, after }: { path: string; before: Body | undefined; after: Body }) {
  const lines = useMemo(() => difference(textOf(before), textOf(after)), [before, after]);
  const [isOpen, setOpen] = useState(lines.length <= OPEN);
  const shown = isOpen ? lines : lines.slice(0, 12);
  return (
    <div className="diff" role="group" aria-label={`Changes of ${path}`} tabIndex={0}>
      {shown.map(({ sign, text, line }, at) => (
        <div key={at} className={sign === "+" ? "l a" : sign === "-" ? "l d" : "l"}>
          <b aria-hidden="true" />
          <u>{line}</u>
          <i>{sign}</i>
          <span>{text.slice(0, 4000)}</span>
        </div>
      ))}
      {!isOpen && <button type="button" className="more" onClick={() => setOpen(true)}>Show all {count(lines.length)} lines</button>}
    </div>
  );
}

export function DiffCount({ pairs }: { pairs: { before: Body | undefined; after: Body }[] }) {
  const { added, removed } = useMemo(() => {
    const all = pairs.map(({ before, after }) => counted(difference(textOf(before), textOf(after))));
    return { added: all.reduce((n, one) => n + one.added, 0), removed: all.reduce((n, one) => n + one.removed, 0) };
  }, [pairs]);
  return (
    <>
      {added > 0 && <span className="pl">+{count(added)}</span>}
      {removed > 0 && <span className="mi">−{count(removed)}</span>}
    </>
  );
}
