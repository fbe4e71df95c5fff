import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { Fold, type Touched } from "../../src/session/fold";
import { emptyState, prepend, stateOf } from "../../src/session/snapshot";
import type { SessionState } from "../../src/session/state";
import { SessionStore } from "../../src/session/store";
import type { Fact, View } from "../../src/wire";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const lines = (path: string) => readFileSync(at(path), "utf8").trim().split("\n").map((line) => JSON.parse(line) as unknown);
// Some tell the server's own journal as well.
const factsOf = (name: string) => (lines(`../../../tests/golden/${name}.tolka.jsonl`) as Fact[]).filter(({ session }) => !session.startsWith("srv_"));
const viewsOf = (name: string) => lines(`../data/views/${name}.jsonl`) as View[];
const pagesOf = (name: string) => lines(`../data/pages/${name}.jsonl`) as { earlier: View; later: View }[];
const golden = readdirSync(at("../../../tests/golden")).filter((file) => file.endsWith(".tolka.jsonl")).map((file) => file.replace(".tolka.jsonl", ""));
const viewed = readdirSync(at("../data/views")).map((file) => file.replace(".jsonl", ""));

function foldOn(state: SessionState, facts: Fact[]): SessionState {
  const touched: Touched = { slices: new Set(), entries: new Set() };
  const fold = new Fold(state, touched);
  facts.forEach((fact) => fold.apply(structuredClone(fact)));
  return fold.state;
}
const folded = (facts: Fact[]) => foldOn(emptyState(), facts);

/** What a person would see. A retry is known only to whoever was there. */
function seen({ entries, order, retry, before, ...rest }: SessionState) {
  return JSON.parse(JSON.stringify({ ...rest, conversation: order.map((key) => entries.get(key)) })) as object;
}

test("there are sessions to fold", () => {
  expect(golden.length).toBeGreaterThan(15);
  expect(viewed.length).toBeGreaterThan(5);
});

describe.each(viewed)("%s", (name) => {
  const facts = factsOf(name);

  test.each(viewsOf(name).map((view) => [view.tip.seq, view] as const))("a view at %i is what its facts make", (seq, view) => {
    expect(seen(stateOf(structuredClone(view)))).toEqual(seen(folded(facts.slice(0, seq))));
  });

  test.each(viewsOf(name).map((view) => [view.tip.seq, view] as const))("a view at %i and the rest is all", (seq, view) => {
    expect(seen(foldOn(stateOf(structuredClone(view)), facts.slice(seq)))).toEqual(seen(folded(facts)));
  });
});

test.each(viewed)("%s is whole again when its earlier page comes", (name) => {
  const all = folded(factsOf(name));
  // When a text that was open at the cut grew last is not known after it.
  const conversation = ({ order, entries }: SessionState) =>
    order.map((key) => JSON.parse(JSON.stringify(entries.get(key), (name, value: unknown) => (name === "last" ? 0 : value))) as unknown);
  for (const { earlier, later } of pagesOf(name)) {
    const state = stateOf(later);
    prepend(state, { ...earlier, position: "" });
    expect(conversation(state)).toEqual(conversation(all));
  }
});

test.each(golden)("%s shows the same however its facts come", (name) => {
  const facts = factsOf(name);
  const shownBy = (step: number) => {
    const store = new SessionStore(() => {});
    for (let from = 0; from < facts.length; from += step) {
      store.apply(structuredClone(facts.slice(from, from + step)));
      store.commit();
    }
    return JSON.stringify([store.slice("head"), store.slice("plan"), store.slice("order").map((key) => store.entry(key))]);
  };
  const once = shownBy(facts.length);
  for (const step of [1, 2, 7, 50]) expect(shownBy(step)).toBe(once);
});

test("only what was touched is told, once for any number of facts", () => {
  const store = new SessionStore(() => {});
  const facts = factsOf("demo");
  const first = facts.findIndex(({ type }) => type === "text_appended");
  store.apply(facts.slice(0, first + 1));
  store.commit();
  const [key] = store.slice("order").slice(-1);
  const told: string[] = [];
  for (const topic of [...store.slice("order"), "#plan", "#head"]) store.subscribe(topic, () => told.push(topic));
  const piece = facts[first]!;
  store.apply([{ ...piece, seq: piece.seq + 1 }, { ...piece, seq: piece.seq + 2 }]);
  expect(told).toEqual([]);
  store.commit();
  expect(told).toEqual([key]);
});

test("what was rewound needs a view", () => {
  const store = new SessionStore(() => {});
  store.apply(factsOf("demo"));
  store.apply([{ v: 4, session: "ses_1", seq: 999, time: 1, cause: "client", type: "rewound", data: { files: [] } }]);
  expect(store.isStale).toBe(true);
});
