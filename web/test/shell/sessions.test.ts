import { expect, test } from "vitest";
import { routeOf } from "../../src/shell/route";
import { grouped } from "../../src/shell/sessions";
import type { Session } from "../../src/wire";

const NOW = new Date(2026, 10, 15, 12, 0, 0);
const hours = (n: number) => (NOW.getTime() - n * 3_600_000) * 1000;
const session = (id: string, about: Partial<Session>) => ({ id, waiting: 0, busy: false, archived: false, deleted: false, updated: hours(1), ...about }) as Session;

test("sessions stand where they ask for somebody", () => {
  const all = [
    session("old", { updated: hours(80) }), session("asks", { waiting: 1, busy: true, updated: hours(90) }), session("runs", { busy: true }),
    session("today", { updated: hours(3) }), session("later", { updated: hours(2) }), session("yesterday", { updated: hours(20) }),
    session("archived", { archived: true }), session("deleted", { deleted: true }),
  ];
  const shown = grouped(all, NOW).map(({ name, sessions }) => [name, sessions.map(({ id }) => id)]);
  expect(shown).toEqual([["Needs you", ["asks"]], ["Running", ["runs"]], ["Today", ["later", "today"]], ["Yesterday", ["yesterday"]], ["Older", ["old"]]]);
});

test("paths are sessions or home", () => {
  expect(routeOf("s/ses_1")).toEqual({ name: "session", id: "ses_1" });
  expect(routeOf("s/a%2Fb/")).toEqual({ name: "session", id: "a/b" });
  for (const path of ["", "s/", "s/a/b", "other"]) expect(routeOf(path)).toEqual({ name: "home" });
});
