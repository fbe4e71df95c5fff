// What stands beside the conversation. A pane is a folder here with a component of its own, loaded when it is first opened;
// it reads the session with the hooks of `../session` and asks the server with `../wire`.
import type { LucideIcon } from "lucide-react";
import type { ComponentType, LazyExoticComponent } from "react";

export interface Pane {
  name: PaneName;
  title: string;
  icon: LucideIcon;
  component: LazyExoticComponent<ComponentType>;
  /** A number beside the title. */
  useCount?: () => number | null;
}

export type PaneName = string;

/** In the order of their tabs. While there are none, there is no pane. */
export const PANES: Pane[] = [];

export { Panes } from "./panes";
