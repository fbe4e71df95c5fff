import { useLink } from "../session";
import { count, plural } from "../ui/words";

/** Silent while all is well. */
export function Connection() {
  const link = useLink();
  if (link.state === "lost") return <p className="link-bar" role="status">Reconnecting, last event {count(link.seq)}{link.tries > 1 && ` · try ${link.tries}`}</p>;
  if (link.state === "live" && link.caughtUp !== null) return <p className="link-bar back" role="status">Back, {link.caughtUp ? `${plural(link.caughtUp, "event")} caught up` : "nothing was missed"}</p>;
  return null;
}
