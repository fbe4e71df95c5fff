import { CircleHelp, ShieldAlert } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import { requestOf, useLive, useSlice } from "../session";
import { useKey } from "../ui/hooks";
import { field, messageOf } from "../ui/words";
import { type Answer, type Ask, type PermissionAsked, type PermissionOption, type QuestionAsked, wire } from "../wire";

const TITLES: Record<string, string> = {
  bash: "Run this command?", edit: "Change this file?", write: "Write this file?", webfetch: "Fetch this page?", delete: "Delete this file?",
  read: "Read this file?", external_directory: "Go outside of the folder?",
};
const KEYS: Record<PermissionOption["kind"], string> = { allow_once: "y", allow_always: "a", reject_once: "n", reject_always: "" };

/** All that waits for a person, at the end of the stream. */
export function Asks() {
  const asks = useSlice("asks");
  return asks.map((ask, at) => <AskCard key={requestOf(ask)} ask={ask} hasKeys={at === 0} />);
}

function AskCard({ ask, hasKeys }: { ask: Ask; hasKeys: boolean }) {
  const { id } = useLive();
  const [state, setState] = useState<"open" | "sent">("open");
  const [problem, setProblem] = useState<string | null>(null);
  const answer = async (given: Answer) => {
    setState("sent");
    setProblem(null);
    await wire.answer(id, requestOf(ask), given).catch((error: unknown) => {
      setState("open");
      setProblem(messageOf(error));
    });
  };
  const props = { isSent: state === "sent", hasKeys: hasKeys && state === "open", answer: (given: Answer) => void answer(given) };
  return (
    <>
      {"permission" in ask ? <PermissionCard ask={ask.permission} {...props} /> : <QuestionCard ask={ask.question} {...props} />}
      {problem && <p className="why-not" role="alert">{problem}</p>}
    </>
  );
}

interface CardProps {
  isSent: boolean;
  hasKeys: boolean;
  answer: (given: Answer) => void;
}

function PermissionCard({ ask, isSent, hasKeys, answer }: CardProps & { ask: PermissionAsked }) {
  const title = TITLES[ask.permission] ?? `Allow ${ask.permission}?`;
  const command = field(ask.metadata, "command") ?? ask.title;
  const why = field(ask.metadata, "description", "reason");
  const primary = ask.options.find(({ kind }) => kind === "allow_once") ?? ask.options.find(({ kind }) => kind.startsWith("allow"));
  const always = ask.options.find(({ kind }) => kind === "allow_always");
  const by = (kind: PermissionOption["kind"]) => {
    const option = hasKeys ? ask.options.find((one) => one.kind === kind) : undefined;
    return option ? () => answer({ option: option.id }) : null;
  };
  useKey("y", by("allow_once"));
  useKey("a", by("allow_always"));
  useKey("n", by("reject_once"));
  return (
    <section className="perm" role="group" aria-label={title}>
      <div className="q"><ShieldAlert aria-hidden="true" />{title}</div>
      <pre tabIndex={0}>{command}</pre>
      {(why || (always && ask.patterns?.length)) && (
        <p className="why">
          {why}{why && !/[.!?]$/.test(why) ? "." : ""}
          {always && ask.patterns?.length ? <> “Always” would cover <code>{ask.patterns.join(", ")}</code>.</> : null}
        </p>
      )}
      <div className="acts">
        {ask.options.map((option) => (
          <button key={option.id} type="button" className={option === primary ? "btn p" : "btn"} disabled={isSent} onClick={() => answer({ option: option.id })}>
            {option.name.replaceAll("`", "")}{KEYS[option.kind] && <kbd aria-hidden="true">{KEYS[option.kind].toUpperCase()}</kbd>}
          </button>
        ))}
      </div>
    </section>
  );
}

function QuestionCard({ ask, isSent, answer }: CardProps & { ask: QuestionAsked }) {
  const name = useId();
  const form = useRef<HTMLFormElement>(null);
  const [isComplete, setComplete] = useState(false);
  const chosen = () => ask.questions.map((question, at) => {
    const data = new FormData(form.current ?? undefined);
    const other = String(data.get(`${name}-${at}-other`) ?? "").trim();
    const labels = data.getAll(`${name}-${at}`).map(String);
    return other ? (question.multiple ? [...labels, other] : [other]) : labels;
  });
  const look = () => setComplete(chosen().every((labels) => labels.length > 0));
  useEffect(look, []);
  return (
    <form
      ref={form} className="perm" aria-label={ask.questions[0]?.header ?? "A question"} onInput={look}
      onSubmit={(event) => {
        event.preventDefault();
        answer({ answers: chosen() });
      }}
    >
      {ask.questions.map((question, at) => (
        <fieldset key={at}>
          <legend className="q"><CircleHelp aria-hidden="true" />{question.question}</legend>
          {question.options.map(({ label, description }) => (
            <label key={label}>
              <input type={question.multiple ? "checkbox" : "radio"} name={`${name}-${at}`} value={label} />
              <span>{label} <small>{description}</small></span>
            </label>
          ))}
          <input className="field" name={`${name}-${at}-other`} placeholder="Something else" aria-label={`Another answer to: ${question.question}`} />
        </fieldset>
      ))}
      <div className="acts">
        <button type="submit" className="btn p" disabled={isSent || !isComplete}>Answer</button>
        <button type="button" className="btn" disabled={isSent} onClick={() => answer({ reject: true })}>Dismiss</button>
      </div>
    </form>
  );
}
