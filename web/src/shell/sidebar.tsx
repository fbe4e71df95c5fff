import { Monitor, Moon, PanelLeft, Plus, Sun } from "lucide-react";
import { useEffect, useMemo, useRef } from "react";
import { useNow } from "../ui/hooks";
import { age, count, folder, money } from "../ui/words";
import type { Session } from "../wire";
import { go, hrefOf, type Route } from "./route";
import { grouped, type SessionList, sessions } from "./sessions";
import { choose, type Theme, useTheme } from "./theme";

interface Props {
  list: SessionList;
  route: Route;
  hide: () => void;
  create: () => void;
  /** It lies over the conversation, and takes the focus. */
  isDrawer: boolean;
}

export function Sidebar({ list, route, hide, create, isDrawer }: Props) {
  const now = useNow(30_000);
  const groups = useMemo(() => grouped(list.sessions, new Date(now)), [list.sessions, now]);
  const root = useRef<HTMLElement>(null);
  useEffect(() => {
    if (!isDrawer) return;
    const before = document.activeElement;
    root.current?.querySelector<HTMLElement>("button, a")?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, [isDrawer]);
  return (
    <nav ref={root} className="side" aria-label="Sessions">
      <div className="brand">
        <i aria-hidden="true" />Tolka
        <span className="sp"><button type="button" className="ib" aria-label="Hide the list" title="Hide the list (Ctrl-B)" onClick={hide}><PanelLeft aria-hidden="true" /></button></span>
      </div>
      <a className="new" href={hrefOf({ name: "home" })} onClick={(event) => follow(event, create)}><Plus aria-hidden="true" />New session<kbd aria-hidden="true">C</kbd></a>
      <div className="sess" tabIndex={-1}>
        {list.state === "failed" && <p className="hint">{list.error}</p>}
        {list.state === "ready" && !groups.length && <p className="hint">No sessions yet.</p>}
        {groups.map((group) => (
          <section key={group.name} aria-label={group.name}>
            <h2 className="grp"><span>{group.name}</span>{(group.name === "Needs you" || group.name === "Running") && <span className={group.name === "Needs you" ? "badge" : ""}>{group.sessions.length}</span>}</h2>
            <ul>{group.sessions.map((session) => <li key={session.id}><SessionRow session={session} now={now} isOn={route.name === "session" && route.id === session.id} /></li>)}</ul>
          </section>
        ))}
        {list.next && <button type="button" className="btn wide" onClick={() => void sessions.more().catch(() => {})}>Show more</button>}
      </div>
      <div className="foot">
        <b className={list.isLive ? "" : "off"} aria-hidden="true" />
        <span>{list.isLive ? `Connected to ${location.host}` : "Not connected"}</span>
        <ThemeButton />
      </div>
    </nav>
  );
}

function SessionRow({ session, now, isOn }: { session: Session; now: number; isOn: boolean }) {
  const { id, title, workspace, busy, waiting, added, removed, cost, updated } = session;
  return (
    <a className={isOn ? "s on" : "s"} href={hrefOf({ name: "session", id })} aria-current={isOn ? "page" : undefined} onClick={(event) => follow(event, () => go({ name: "session", id }))}>
      {waiting > 0 ? <span className="dot warn" role="img" aria-label="Needs you" /> : busy ? <span className="spin" role="img" aria-label="Running" /> : <span className="dot ok" role="img" aria-label="Idle" />}
      <span className="t">{title}</span>
      <span className="w">{age(updated, now)}</span>
      <span className="m">
        <span className="where">{folder(workspace)}</span>
        {added > 0 && <span className="pl">+{count(added)}</span>}
        {removed > 0 && <span className="mi">−{count(removed)}</span>}
        {cost && <span>{money(cost.amount, cost.currency)}</span>}
      </span>
    </a>
  );
}

/** A link that opens in place, unless it is meant for another tab. */
function follow(event: React.MouseEvent, act: () => void): void {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  act();
}

const NEXT: Record<Theme, Theme> = { system: "dark", dark: "light", light: "system" };
const ICONS = { system: Monitor, dark: Moon, light: Sun };

function ThemeButton() {
  const theme = useTheme();
  const Icon = ICONS[theme];
  return <button type="button" className="ib" aria-label={`Theme: ${theme}. Change it`} title={`Theme: ${theme}`} onClick={() => choose(NEXT[theme])}><Icon aria-hidden="true" /></button>;
}
