// For those who listen: sentences, not pieces of words. At most one in two seconds; what asks for a person comes at once.
import { useEffect, useRef, useState } from "react";
import { useLive, useSlice } from "../session";
import { exitOf, targetOf, verbOf } from "./tool/words";

const PACE = 2000;

export function Announcer() {
  const live = useLive();
  const order = useSlice("order");
  const turn = useSlice("turn");
  const asks = useSlice("asks");
  const [said, setSaid] = useState("");
  const waiting = useRef<string | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const say = (sentence: string) => {
    waiting.current = sentence;
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      setSaid(waiting.current ?? "");
    }, PACE);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  const last = order.at(-1);
  useEffect(() => {
    if (!last) return;
    return live.store.subscribe(last, () => {
      const entry = live.store.entry(last);
      if (entry?.kind !== "tool" || !entry.tool.ended) return;
      const exit = exitOf(entry.tool);
      say(`${verbOf(entry.tool)} ${targetOf(entry.tool, live.store.slice("head").workspace)}${exit === null ? "" : `, exit ${exit}`}`);
    });
  }, [live, last]);
  const was = useRef(turn?.id);
  useEffect(() => {
    if (was.current && !turn) say("The turn is done");
    was.current = turn?.id;
  }, [turn]);
  const ask = asks[0];
  const asked = ask && ("permission" in ask ? ask.permission.title : ask.question.questions[0]?.question);
  return (
    <>
      <div className="heard" role="status" aria-live="polite">{said}</div>
      <div className="heard" role="alert" aria-live="assertive">{asked ? `The agent asks: ${asked}` : ""}</div>
    </>
  );
}
