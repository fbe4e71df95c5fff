import { ChevronDown } from "lucide-react";
import { useId, useState } from "react";
import { useSlice } from "../session";

const MARKS = { completed: "✓", in_progress: "◐", pending: "○", cancelled: "×" } as const;
const WORDS = { completed: "done", in_progress: "now", pending: "to do", cancelled: "dropped" } as const;

/** The plan, as a strip on top of the composer that opens into a list. */
export function Plan() {
  const plan = useSlice("plan");
  const [isOpen, setOpen] = useState(false);
  const body = useId();
  if (!plan.length) return null;
  const done = plan.filter(({ status }) => status === "completed").length;
  const now = plan.find(({ status }) => status === "in_progress") ?? plan.find(({ status }) => status === "pending");
  return (
    <div className="plan">
      <button type="button" aria-expanded={isOpen} aria-controls={body} onClick={() => setOpen(!isOpen)}>
        <span className="seg" aria-hidden="true">{plan.slice(0, 12).map(({ status }, at) => <i key={at} className={status} />)}</span>
        <b>{now?.content ?? "All done"}</b>
        <span className="of">{done} of {plan.length}</span>
        <ChevronDown className={isOpen ? "up" : ""} aria-hidden="true" />
      </button>
      <ol id={body} hidden={!isOpen}>
        {plan.map(({ content, status }, at) => (
          <li key={at} className={status}><span role="img" aria-label={WORDS[status]}>{MARKS[status]}</span>{content}</li>
        ))}
      </ol>
    </div>
  );
}
