import { useEffect, useState } from "react";
import { Announcer, Composer, Plan, Queue, Stream } from "../conversation";
import { LiveSession, SessionContext, useLink } from "../session";
import { PANES, type PaneName, Panes } from "../panes";
import { useKept, useMedia } from "../ui/hooks";
import type { AgentAbout, SessionId } from "../wire";
import { Connection } from "./connection";
import { Header } from "./header";
import { go } from "./route";

interface Props {
  id: SessionId;
  agents: AgentAbout[];
  /** `null`: it is there. */
  showList: (() => void) | null;
}

/** One session: its conversation, and what stands beside it. */
export function SessionView({ id, ...rest }: Props) {
  const [live, setLive] = useState<LiveSession | null>(null);
  useEffect(() => {
    const made = new LiveSession(id);
    setLive(made);
    return () => made.close();
  }, [id]);
  if (!live) return <main id="main" className="main" />;
  return <SessionContext value={live}><Shown {...rest} /></SessionContext>;
}

function Shown({ agents, showList }: Omit<Props, "id">) {
  const link = useLink();
  const isWide = useMedia("(min-width: 1100px)");
  const [kept, keep] = useKept<"open" | "closed">("panes", "open");
  const [isDrawn, setDrawn] = useState(false);
  const [pane, choose] = useKept<PaneName>("pane", PANES[0]?.name ?? "");
  const isOpen = PANES.length > 0 && (isWide ? kept === "open" : isDrawn);
  const toggle = () => (isWide ? keep(kept === "open" ? "closed" : "open") : setDrawn(!isDrawn));
  if (link.state === "gone") {
    return (
      <main id="main" className="main">
        <div className="empty">
          <h1>This session cannot be shown</h1>
          <p>{link.error.message}</p>
          <button type="button" className="btn" onClick={() => go({ name: "home" }, "replace")}>New session</button>
        </div>
      </main>
    );
  }
  return (
    <>
      <main id="main" className="main">
        <Header showList={showList} panes={PANES.length ? { isOpen, toggle } : null} />
        <Connection />
        {link.state === "loading" ? <div className="conv-box" aria-busy="true" /> : <Stream />}
        <div className="dock">
          <div className="col">
            <Queue />
            <Plan />
            <Composer agents={agents} />
          </div>
        </div>
        <Announcer />
      </main>
      {isOpen && <Panes name={pane} choose={choose} close={toggle} />}
    </>
  );
}
