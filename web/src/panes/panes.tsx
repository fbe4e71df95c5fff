import { X } from "lucide-react";
import { Suspense } from "react";
import { type Pane, type PaneName, PANES } from "./index";

export function Panes({ name, choose, close }: { name: PaneName; choose: (name: PaneName) => void; close: () => void }) {
  const shown = PANES.find((pane) => pane.name === name) ?? PANES[0];
  if (!shown) return null;
  const { component: Shown } = shown;
  return (
    <aside className="right" aria-label="Workspace">
      <div className="tabs" role="tablist">
        {PANES.map((pane) => <Tab key={pane.name} pane={pane} isOn={pane === shown} choose={choose} />)}
        <button type="button" className="ib end" aria-label="Close" onClick={close}><X aria-hidden="true" /></button>
      </div>
      <div className="pane" role="tabpanel" aria-label={shown.title}><Suspense fallback={null}><Shown /></Suspense></div>
    </aside>
  );
}

const none = () => null;

function Tab({ pane, isOn, choose }: { pane: Pane; isOn: boolean; choose: (name: PaneName) => void }) {
  const { name, title, icon: Icon, useCount = none } = pane;
  const count = useCount();
  return (
    <button type="button" role="tab" aria-selected={isOn} className={isOn ? "tab on" : "tab"} onClick={() => choose(name)}>
      <Icon aria-hidden="true" />{title}{count !== null && <em>{count}</em>}
    </button>
  );
}
