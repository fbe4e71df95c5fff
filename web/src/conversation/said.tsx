import { ChevronRight, Lightbulb } from "lucide-react";
import { useId, useState } from "react";
import { Markdown } from "../markdown";
import type { SaidEntry } from "../session";
import { lasted } from "../ui/words";

export function Text({ entry }: { entry: SaidEntry }) {
  return (
    <div className={entry.open ? "said live" : "said"}>
      <Markdown text={entry.text} isOpen={entry.open} />
    </div>
  );
}

/** Closed by default; while it runs its last words are there in grey. */
export function Thought({ entry }: { entry: SaidEntry }) {
  const [isOpen, setOpen] = useState(false);
  const body = useId();
  const time = entry.last - entry.started;
  return (
    <div className="thought">
      <button type="button" className="think" aria-expanded={isOpen} aria-controls={body} onClick={() => setOpen(!isOpen)}>
        <Lightbulb aria-hidden="true" />
        <span>{entry.open ? "Thinking" : time >= 1e6 ? `Thought for ${lasted(time)}` : "Thought"}</span>
        {entry.open && !isOpen && <span className="murmur"><bdi>{entry.text.slice(-200)}</bdi></span>}
        <ChevronRight className="turns" aria-hidden="true" />
      </button>
      <div id={body} hidden={!isOpen} className="thoughts">{isOpen && <Markdown text={entry.text} isOpen={entry.open} />}</div>
    </div>
  );
}
