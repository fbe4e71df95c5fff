import { useCallback, useEffect, useState } from "react";
import { useKept, useKey, useMedia } from "../ui/hooks";
import { type AgentAbout, wire } from "../wire";
import { Home } from "./home";
import { go, useRoute } from "./route";
import { SessionView } from "./session-view";
import { Sidebar } from "./sidebar";
import { useSessions } from "./sessions";

/** Below this the list is a drawer over the conversation. */
const NARROW = "(max-width: 760px)";

export function App() {
  const route = useRoute();
  const list = useSessions();
  const isNarrow = useMedia(NARROW);
  const [kept, keep] = useKept<"shown" | "hidden">("sidebar", "shown");
  const [isDrawn, setDrawn] = useState(false);
  const agents = useAgents(list.isLive);
  const isShown = isNarrow ? isDrawn : kept === "shown";
  const toggle = useCallback(() => (isNarrow ? setDrawn((drawn) => !drawn) : keep(kept === "shown" ? "hidden" : "shown")), [isNarrow, kept, keep]);
  const create = useCallback(() => {
    setDrawn(false);
    go({ name: "home" });
  }, []);
  useKey("c", create);
  useEffect(() => setDrawn(false), [route]);
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key === "Escape" && isNarrow && isDrawn) {
        event.preventDefault();
        setDrawn(false);
      } else if (event.key.toLowerCase() === "b" && (event.metaKey || event.ctrlKey) && !event.altKey && !event.shiftKey) {
        event.preventDefault();
        toggle();
      }
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [isNarrow, isDrawn, toggle]);
  useTitle(list.sessions.filter(({ waiting, archived }) => waiting > 0 && !archived).length, route);

  return (
    <div className="app" data-sidebar={isShown ? "shown" : "hidden"}>
      <a className="skip" href="#main">Skip to the conversation</a>
      {isShown && <Sidebar list={list} route={route} hide={toggle} create={create} isDrawer={isNarrow} />}
      {isNarrow && isShown && <button type="button" className="scrim" aria-label="Close the list" onClick={toggle} />}
      {route.name === "session"
        ? <SessionView key={route.id} id={route.id} agents={agents} showList={isShown && !isNarrow ? null : toggle} />
        : <Home agents={agents} list={list} showList={isShown && !isNarrow ? null : toggle} />}
    </div>
  );
}

/** What can work here. Asked for again when the server is back: it may be another one. */
function useAgents(isLive: boolean): AgentAbout[] {
  const [agents, setAgents] = useState<AgentAbout[]>([]);
  useEffect(() => {
    if (isLive) wire.agents().then((answer) => setAgents(answer.agents), () => {});
  }, [isLive]);
  return agents;
}

/** A session's own title is set where it is shown; here is how many need somebody. */
function useTitle(waiting: number, route: unknown): void {
  useEffect(() => {
    const bare = document.title.replace(/^\(\d+\) /, "");
    document.title = waiting ? `(${waiting}) ${bare}` : bare;
  }, [waiting, route]);
}
