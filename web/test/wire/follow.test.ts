import { afterEach, expect, test, vi } from "vitest";
import { Follower, type Link } from "../../src/wire";

/** A stream that gives these pieces and then ends, or is cut. */
function answer(pieces: string[], isCut = false): Response {
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = pieces.shift();
      if (piece !== undefined) controller.enqueue(new TextEncoder().encode(piece));
      else if (isCut) controller.error(new Error("cut"));
      else controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

const gone = () => Response.json({ error: { code: "gone", message: "No such place." } }, { status: 410 });

afterEach(() => vi.unstubAllGlobals());

/** Follows what the answers tell until the server refuses. */
function followed(position: string | null, answers: (() => Response | Promise<Response>)[]) {
  const asked: string[] = [];
  const told: string[] = [];
  const links: Link["state"][] = [];
  vi.stubGlobal("fetch", (url: string) => {
    asked.push(new URL(url).search);
    return Promise.resolve().then(answers.shift() ?? gone);
  });
  return new Promise<{ asked: string[]; told: string[]; links: Link["state"][]; refused: string }>((resolve) => {
    new Follower({
      path: "v1/events?dialect=tolka",
      position,
      tell: (messages) => told.push(...messages.map(({ data }) => data)),
      link: (link) => {
        links.push(link.state);
        if (link.state === "refused") resolve({ asked, told, links, refused: link.error.message });
        // Somebody looks: nothing is waited for.
        if (link.state === "lost") queueMicrotask(() => document.dispatchEvent(new Event("visibilitychange")));
      },
    });
  });
}

test("it comes back where it was, and nothing is told twice or lost", async () => {
  const { asked, told, links, refused } = await followed("7.0", [
    () => answer(["id: 8.0\ndata: a\n\nid: 9.0\nda", "ta: b\n\nid: 10.0\ndata: half"], true),
    () => Promise.reject(new TypeError("no network")),
    () => new Response("bad gateway", { status: 502 }),
    () => answer(["id: 10.0\ndata: c\n\n"]),
  ]);
  expect(told).toEqual(["a", "b", "c"]);
  expect(asked).toEqual(["7.0", "9.0", "9.0", "9.0", "10.0"].map((at) => `?dialect=tolka&after=${at}`));
  expect(links).toEqual(["connecting", "live", "lost", "lost", "lost", "live", "lost", "refused"]);
  expect(refused).toBe("No such place.");
});

test("without a position it starts at now", async () => {
  const { asked } = await followed(null, []);
  expect(asked).toEqual(["?dialect=tolka"]);
});
