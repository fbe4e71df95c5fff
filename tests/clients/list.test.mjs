// The page's list of sessions, when there are more than it asks for at once.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Browser } from "./browser.mjs";
import { Server, until } from "./server.mjs";

test("the list shows the latest sessions, and on request those before them", async (t) => {
  const server = await Server.start(t);
  const make = (n) => server.json("/v1/sessions", { method: "POST", body: { title: `Session ${n}` } });
  for (let n = 0; n < 203; n += 29) await Promise.all(Array.from({ length: 29 }, (_, at) => make(n + at)));
  const browser = await Browser.open(t);
  const page = await browser.page(server);
  const rows = () => page.locator("#sessions .row").count();
  const more = page.getByRole("button", { name: "Show more" });
  await until("the first page of the list", async () => (await rows()) === 200);
  await more.click();
  await until("all sessions", async () => (await rows()) === 203);
  assert.equal(await more.count(), 0);
  await make("more");
  await until("a new one beside all others", async () => (await rows()) === 204);
});
