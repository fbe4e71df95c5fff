import { PanelLeft, PanelRight } from "lucide-react";
import { useEffect } from "react";
import { useSlice } from "../session";
import { useNow } from "../ui/hooks";
import { count, folder, lasted, money, short } from "../ui/words";

export function Header({ showList, panes }: { showList: (() => void) | null; panes: { isOpen: boolean; toggle: () => void } | null }) {
  const head = useSlice("head");
  const turn = useSlice("turn");
  const usage = useSlice("usage");
  const asks = useSlice("asks");
  const rewinding = useSlice("rewinding");
  const now = useNow(turn ? 1000 : null);
  useEffect(() => {
    document.title = `${asks.length ? `(${asks.length}) ` : ""}${head.title || "Session"} · Tolka`;
    return () => {
      document.title = "Tolka";
    };
  }, [head.title, asks.length]);
  const state = asks.length ? "asks" : rewinding ? "restores" : turn ? "works" : "idle";
  const cost = usage?.cost ?? head.cost;
  return (
    <header className="bar">
      {showList && <button type="button" className="ib" aria-label="Show the list" onClick={showList}><PanelLeft aria-hidden="true" /></button>}
      <h1>{head.title}</h1>
      <span className="chip mono hide-narrow" title={head.workspace}>{folder(head.workspace)}</span>
      <span className={`chip state ${state}`}><i aria-hidden="true" />{{ asks: "Waiting for you", restores: "Restoring", works: "Working", idle: "Idle" }[state]}</span>
      <div className="r">
        {turn && <span className="hide-narrow">{lasted(Math.max(0, now * 1000 - turn.started))}</span>}
        {usage && usage.size > 0 && (
          <span className="ctx hide-narrow" title={`${count(usage.used)} of ${count(usage.size)} tokens in the context`}>
            <Ring share={usage.used / usage.size} />{short(usage.used)} / {short(usage.size)}
          </span>
        )}
        {cost && <b>{money(cost.amount, cost.currency)}</b>}
        {panes && <button type="button" className="ib" aria-label="Workspace" aria-expanded={panes.isOpen} onClick={panes.toggle}><PanelRight aria-hidden="true" /></button>}
      </div>
    </header>
  );
}

/** How full the context is. */
function Ring({ share }: { share: number }) {
  const length = 2 * Math.PI * 6;
  return (
    <svg className="meter" viewBox="0 0 16 16" aria-hidden="true">
      <circle cx="8" cy="8" r="6" />
      <circle cx="8" cy="8" r="6" className="full" strokeDasharray={`${Math.min(1, share) * length} ${length}`} transform="rotate(-90 8 8)" />
    </svg>
  );
}
