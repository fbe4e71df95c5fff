export { Announcer } from "./announcer";
export { Composer, Queue } from "./composer";
export { Plan } from "./plan";
export { Stream } from "./stream";
