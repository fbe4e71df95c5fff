import { CircleAlert, Info, TriangleAlert } from "lucide-react";
import { useState, type ReactNode } from "react";
import { type AsideEntry, type EndEntry, useLive } from "../session";
import { CopyButton } from "../markdown";
import { count, messageOf, plural, textOf } from "../ui/words";
import { type Failed, type Stop, wire } from "../wire";

const ENDS: Partial<Record<Stop, string>> = {
  cancelled: "Stopped by you",
  interrupted: "The server stopped in the middle of this turn. Nothing was run again.",
  refusal: "The agent refused to go on",
  max_tokens: "Stopped: the answer reached the model's limit",
  max_turn_requests: "Stopped: the turn reached its limit of steps",
};

/** A hairline with a few words. */
export const Line = ({ children }: { children: ReactNode }) => <div className="cp"><span>{children}</span></div>;

function Banner({ severity, title, children }: { severity: "info" | "warning" | "error" | "other"; title: string; children?: ReactNode }) {
  const Icon = severity === "error" ? CircleAlert : severity === "warning" ? TriangleAlert : Info;
  return (
    <div className={`banner ${severity}`} role={severity === "error" ? "alert" : undefined}>
      <Icon aria-hidden="true" />
      <div><strong>{title}</strong>{children}</div>
    </div>
  );
}

/** What failed, and the way on: the same prompt once more. */
function Failure({ failure, turn }: { failure: Failed; turn: string | null }) {
  const live = useLive();
  const [problem, setProblem] = useState<string | null>(null);
  const [isSent, setSent] = useState(false);
  const prompt = turn === null ? null : promptOf(live, turn);
  const again = async () => {
    setSent(true);
    setProblem(null);
    await wire.prompt(live.id, { content: prompt ?? [] }).catch((error: unknown) => {
      setSent(false);
      setProblem(messageOf(error));
    });
  };
  const details = failure.details === undefined ? "" : JSON.stringify(failure.details, null, 2);
  return (
    <Banner severity="error" title={failure.message}>
      {failure.code !== undefined && <p>Code {failure.code}</p>}
      <p>What was done until then is kept.</p>
      <div className="acts">
        {prompt && <button type="button" className="btn" disabled={isSent} onClick={() => void again()}>{isSent ? "Sent again" : "Retry"}</button>}
        <CopyButton text={[failure.message, details].filter(Boolean).join("\n")} label="Copy details" />
      </div>
      {problem && <p role="alert">{problem}</p>}
    </Banner>
  );
}

function promptOf(live: ReturnType<typeof useLive>, turn: string) {
  for (const key of live.store.slice("order")) {
    const entry = live.store.entry(key);
    if (entry?.kind === "prompt" && entry.turn === turn) return entry.content;
  }
  return null;
}

export function End({ entry }: { entry: EndEntry }) {
  if (entry.failure) return <Failure failure={entry.failure} turn={entry.turn} />;
  if (entry.stop === "failed") return <Banner severity="error" title="The turn failed" />;
  return <Line>{ENDS[entry.stop] ?? entry.stop}</Line>;
}

export function Aside({ entry: { fact } }: { entry: AsideEntry }) {
  switch (fact.type) {
    case "noticed":
      return <Banner severity={fact.data.severity} title={fact.data.title}>{fact.data.description && <p>{fact.data.description}</p>}</Banner>;
    case "failed":
      return <Failure failure={fact.data} turn={null} />;
    case "compaction_ended":
      return fact.data.error ? <Line>{fact.data.error}</Line> : <Summary text={textOf(fact.data.summary)} />;
    case "rewind_failed":
      return <Banner severity="error" title="Going back failed"><p>{fact.data.message}</p></Banner>;
    case "rewound":
      return <Line>Went back{fact.data.files.length ? `; ${plural(fact.data.files.length, "file")} restored` : ""}</Line>;
    case "unrewound":
      return <Line>Brought back what was taken back</Line>;
    case "approved":
      return <Line>Changes approved</Line>;
    case "files_moved":
      return <Line>Another session restored {count(fact.data.changes.count)} files in this folder</Line>;
    default:
      return null;
  }
}

function Summary({ text }: { text: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Line>
        The context was summarised{text && <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{isOpen ? "Hide" : "Read"}</button>}
      </Line>
      {isOpen && <div className="thoughts"><pre className="plain" tabIndex={0}>{text}</pre></div>}
    </>
  );
}
