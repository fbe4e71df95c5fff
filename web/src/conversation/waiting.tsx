import { useSlice } from "../session";
import { useNow } from "../ui/hooks";

/** What is waited for while nothing is said: the start, the model, another try. */
export function Waiting() {
  const turn = useSlice("turn");
  const asks = useSlice("asks");
  const retry = useSlice("retry");
  const head = useSlice("head");
  const isQuiet = turn !== null && !turn.openText && !asks.length;
  const now = useNow(isQuiet ? 1000 : null);
  if (!turn || !isQuiet) return head.deleted ? <p className="waiting">This session was deleted.</p> : null;
  if (retry) {
    const left = Math.max(0, Math.ceil((retry.since / 1000 + retry.delay_ms - now) / 1000));
    return <p className="waiting"><span className="spin" aria-hidden="true" />{retry.message} {left ? `Trying again in ${left} s (try ${retry.attempt + 1})` : "Trying again"}</p>;
  }
  if (turn.compaction) return <p className="waiting"><span className="spin" aria-hidden="true" />Summarising the context</p>;
  if (turn.lastPart) return null;
  const seconds = Math.floor(Math.max(0, now - turn.started / 1000) / 1000);
  const words = seconds < 1 ? "Starting" : seconds < 10 ? `Waiting for the model, ${seconds} s` : `Still waiting, ${seconds} s`;
  return <p className="waiting"><span className="dots" aria-hidden="true"><i /><i /><i /></span>{words}</p>;
}
