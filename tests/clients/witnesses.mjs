// What every client of a scene knows of one request: that it was asked, and that it was answered. Families that carry no
// answer show it by what becomes of the call.

import { DEADLINE, until } from "./server.mjs";

/** Less than a turn has, so that whoever is missing is named before the turn is given up. */
const PATIENCE = DEADLINE / 2;
const REPLIES = { once: true, always: true, reject: false };

const isRequest = (id) => ({ properties }) => (properties.requestID ?? properties.id) === id;
const ofType = (events, ...types) => events.filter(({ type }) => types.includes(type));

/** The clients of a scene, each with what it has heard so far. */
async function heard({ feeds, sources, onyx, steps, smithy, viewer, session }) {
  return {
    opencode: {
      "the SDK's first export": feeds.old.of(session),
      "the SDK's v2": feeds.v2.of(session),
      "the browser in opencode": await sources.opencode.events(),
    },
    tolka: { "the browser in tolka": await sources.tolka.events() },
    onyx: { "the Onyx reader of turns": onyx.turns.packets, "the Onyx reader of the session": onyx.session.packets },
    steps: { "the reader of document 001": steps.packets },
    smithy: { "document 003's client": await smithy.live(), "a second client of document 003": await viewer.live() },
  };
}

const ASKED = {
  opencode: (events, id) => ofType(events, "permission.asked", "question.asked").some(isRequest(id)),
  tolka: (events, id) => ofType(events, "permission_asked", "question_asked").some(({ data }) => data.request === id),
  onyx: (events, id) => ofType(events, "approval_requested").some((packet) => packet.approval_id === id),
  steps: (events, id) => ofType(events, "permission_request").some((packet) => packet.request_id === id),
  smithy: (events, id) => ofType(events, "tool_call").some(({ args }) => args.request_id === id),
};

/** Resolves when every client shows it; `families` are those that have a word for it. */
export async function shown(scene, id, families = Object.keys(ASKED)) {
  await everywhere(scene, families, `the request ${id}`, (family, events) => ASKED[family](events, id));
}

/** Resolves when every client that is told of answers was told this one. */
export async function answered(scene, { id, tool: { callID } }, reply) {
  const told = {
    opencode: (events) =>
      ofType(events, "permission.replied").filter(isRequest(id)).some(({ properties }) => properties.reply === reply),
    tolka: (events) => ofType(events, "permission_answered").some(({ data }) => data.request === id),
    onyx: (events) => ofType(events, "tool_call_progress").some((packet) => packet.toolCallId === callID && isOver(packet.status)),
    steps: (events) =>
      ofType(events, "permission_response").some((packet) => packet.request_id === id && packet.approved === REPLIES[reply]),
  };
  await everywhere(scene, Object.keys(told), `the answer to ${id}`, (family, events) => told[family](events));
  const results = `/api/dialogs/${scene.session}/tool-results`;
  const ended = async () => (await scene.server.json(results)).find(({ tool_call_id: call }) => call === callID);
  const { error } = await until(`what came of ${callID} for clients of document 003`, ended);
  return { error };
}

const isOver = (status) => status === "completed" || status === "failed";

async function everywhere(scene, families, what, holds) {
  let missing = [];
  const all = async () => {
    const clients = await heard(scene);
    const lacks = (family) => ([, events]) => !holds(family, events);
    missing = families.flatMap((family) => Object.entries(clients[family]).filter(lacks(family)).map(([name]) => name));
    return missing.length === 0;
  };
  await until(what, all, PATIENCE).catch((error) => {
    throw new Error(`${error.message}, which is unknown to ${missing.join(", ")}`);
  });
}
