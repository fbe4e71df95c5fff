// Text of agents, drawn safely and while it comes.
export { Code, Coloured, CopyButton } from "./code";
export { languageOfPath } from "./languages";
export { Markdown } from "./markdown";
