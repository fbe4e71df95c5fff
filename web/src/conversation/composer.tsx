import { ArrowUp, ChevronDown, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useLink, useLive, useSlice } from "../session";
import { messageOf } from "../ui/words";
import { type AgentAbout, wire } from "../wire";
import { wordsOf } from "./prompt";

/** Esc twice within this time stops. */
const TWICE = 1000;

/** What people write. While a turn runs it waits, and is seen waiting. */
export function Composer({ agents }: { agents: AgentAbout[] }) {
  const live = useLive();
  const head = useSlice("head");
  const turn = useSlice("turn");
  const link = useLink();
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [isStopping, setStopping] = useState(false);
  const [isSending, setSending] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const sending = useRef<{ words: string; key: string } | null>(null);
  const isRunning = turn !== null;
  useEffect(() => setStopping(false), [turn?.id]);

  const send = async () => {
    const words = text.trim();
    if (!words || isSending) return;
    setSending(true);
    setProblem(null);
    try {
      // One key for one prompt: sent again after a lost answer, it is still one.
      const { key } = (sending.current = sending.current?.words === words ? sending.current : { words, key: newKey() });
      await wire.prompt(live.id, { content: [{ type: "text", text: words }], key });
      sending.current = null;
      setText("");
    } catch (error) {
      setProblem(messageOf(error));
    } finally {
      setSending(false);
      area.current?.focus();
    }
  };
  const stop = () => {
    setStopping(true);
    wire.cancel(live.id).catch((error: unknown) => {
      setStopping(false);
      setProblem(messageOf(error));
    });
  };
  useEscapeTwice(isRunning ? stop : null);
  useEffect(() => fit(area.current), [text]);

  const agent = agents.find(({ name }) => name === head.agent);
  const isOff = link.state === "gone" || head.deleted;
  return (
    <form
      className="comp"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <textarea
        ref={area} rows={1} value={text} disabled={isOff} aria-label="Message"
        placeholder={isRunning ? "Add instructions. They are queued until this turn ends." : "What should the agent do?"}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          void send();
        }}
      />
      <div className="tb">
        <Choice
          label="Mode" value={head.mode ?? agent?.modes[0]?.name ?? ""} options={agent?.modes.map(({ name }) => ({ id: name, name })) ?? []}
          choose={(mode) => void wire.change(live.id, { mode }).catch((error: unknown) => setProblem(messageOf(error)))}
        />
        <Choice
          label="Model" value={idOf(head.model ?? agent?.model ?? null)} options={agent?.models.map((model) => ({ id: idOf(model), name: model.name })) ?? []}
          choose={(id) => {
            const model = agent?.models.find((one) => idOf(one) === id);
            if (model) void wire.change(live.id, { model: { provider: model.provider, id: model.id } }).catch((error: unknown) => setProblem(messageOf(error)));
          }}
        />
        {problem && <span className="problem" role="alert">{problem}</span>}
        <span className="sp" />
        {isRunning && (
          <button type="button" className="stop" onClick={stop} disabled={isStopping} aria-label={isStopping ? "Stopping" : "Stop"} title={isStopping ? "Stopping" : "Stop (Esc Esc)"}>
            {isStopping ? <span className="spin" /> : <i />}
          </button>
        )}
        {(!isRunning || text.trim()) && (
          <button type="submit" className="send" disabled={!text.trim() || isSending || isOff} aria-label={isRunning ? "Queue" : "Send"} title={isRunning ? "Queue (Enter)" : "Send (Enter)"}>
            <ArrowUp aria-hidden="true" />
          </button>
        )}
      </div>
    </form>
  );
}

/** Browsers have `randomUUID` on secure origins only, and a machine in the same house is none. */
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

const idOf = (model: { provider: string; id: string } | null) => (model ? `${model.provider}/${model.id}` : "");

function Choice({ label, value, options, choose }: { label: string; value: string; options: { id: string; name: string }[]; choose: (id: string) => void }) {
  if (!options.length) return null;
  if (options.length === 1) return <span className="sel">{options[0]?.name}</span>;
  return (
    <label className="sel">
      <select aria-label={label} value={value} onChange={(event) => choose(event.target.value)}>
        {options.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
      </select>
      <ChevronDown aria-hidden="true" />
    </label>
  );
}

/** As high as its text, up to a third of the window. */
function fit(area: HTMLTextAreaElement | null): void {
  if (!area) return;
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight, innerHeight / 3)}px`;
}

function useEscapeTwice(act: (() => void) | null): void {
  const last = useRef(0);
  useEffect(() => {
    if (!act) return;
    const listen = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      if (event.timeStamp - last.current < TWICE) act();
      last.current = event.timeStamp;
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [act]);
}

/** Prompts that wait for their turn. */
export function Queue() {
  const { id } = useLive();
  const queue = useSlice("queue");
  const turn = useSlice("turn");
  if (!turn || !queue.length) return null;
  return (
    <ul className="queue" aria-label="Waiting prompts">
      {queue.map(({ prompt }) => (
        <li key={prompt.turn}>
          <small>Next</small><span>{wordsOf(prompt.content)}</span>
          <button type="button" className="ib" aria-label="Drop this prompt" onClick={() => void wire.drop(id, prompt.turn).catch(() => {})}><X aria-hidden="true" /></button>
        </li>
      ))}
    </ul>
  );
}
