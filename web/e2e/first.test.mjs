// The first minute of a person with the built page: a prompt, a plan, a failed command, a permission, an artifact.
// What is seen on the way is left as pictures in e2e/shots.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { createServer, request } from "node:http";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { AxeBuilder } from "@axe-core/playwright";
import { Browser } from "../../tests/clients/browser.mjs";
import { DEADLINE, Server, until } from "../../tests/clients/server.mjs";

const SHOTS = fileURLToPath(new URL("shots/", import.meta.url));
const DESKTOP = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };

async function open(t, { colorScheme = "dark", viewport = DESKTOP } = {}) {
  await mkdir(SHOTS, { recursive: true });
  const server = await Server.start(t, { agent: "demo", page: "built", pace: "max" });
  const browser = await Browser.open(t);
  const context = await browser.chromium.newContext({ colorScheme, viewport, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(DEADLINE);
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  await page.goto(server.base);
  return { server, page, problems };
}

async function look(page, name) {
  await page.screenshot({ path: `${SHOTS}${name}.png` });
  const { violations } = await new AxeBuilder({ page }).withTags(["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]).analyze();
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  assert.deepEqual(told, [], `${name} can be used by everybody`);
}

for (const colorScheme of ["dark", "light"]) {
  test(`from the first look to an artifact, ${colorScheme}`, async (t) => {
    const { page, problems } = await open(t, { colorScheme });
    await page.getByText("This is the demo").waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
    await look(page, `home-${colorScheme}`);

    await page.getByLabel("Message").fill("Make me something");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Allow once" }).waitFor();
    assert.match(new URL(page.url()).pathname, /^\/s\/ses_/);
    await page.getByText("Waiting for you").waitFor();
    await page.getByRole("region", { name: "Needs you" }).getByRole("link").waitFor();
    assert.match(await page.title(), /^\(1\) /);
    await look(page, `permission-${colorScheme}`);

    // The card says the command, and a key answers.
    await page.getByRole("group", { name: "Run this command?" }).getByText("wc -c todo/index.html", { exact: true }).waitFor();
    await page.getByRole("log").focus();
    await page.keyboard.press("y");
    await page.getByText("Idle", { exact: true }).waitFor();
    await page.getByText("4 of 4").waitFor();
    assert.equal(await page.getByRole("button", { name: "Allow once" }).count(), 0);
    await look(page, `done-${colorScheme}`);

    // Loaded anew it is a view, and its end looks the same.
    const end = () => page.locator(".said").last().innerText();
    const before = await end();
    await page.reload();
    await page.getByText("Idle", { exact: true }).waitFor();
    await until("the same end", async () => (await end()) === before);
    assert.deepEqual(problems, []);
  });
}

test("on a phone the list is a drawer, and a permission is answered with a finger", async (t) => {
  const { page, problems } = await open(t, { viewport: PHONE });
  await page.getByRole("button", { name: "Make me something" }).click();
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  await look(page, "phone-permission");
  await page.getByRole("button", { name: "Show the list" }).click();
  await page.getByRole("navigation", { name: "Sessions" }).getByRole("link", { name: /Needs you/ }).waitFor();
  await look(page, "phone-list");
  await page.keyboard.press("Escape");
  await page.getByRole("navigation", { name: "Sessions" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("Idle", { exact: true }).waitFor();
  assert.deepEqual(problems, []);
});

test("a server that is killed comes back, and so does the page", async (t) => {
  const { server, page } = await open(t);
  await page.getByRole("button", { name: "Make me something" }).click();
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  // It says that it is back for two seconds only: what was said is kept, so that nobody has to look in time.
  await page.evaluate(() => {
    globalThis.bars = [];
    new MutationObserver(() => globalThis.bars.push(document.querySelector(".link-bar")?.textContent)).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await server.kill();
  await page.getByText(/^Reconnecting, last event \d+/).waitFor();
  await server.run();
  // Whether the turn's end was told before it was back or after is for the machine to decide.
  await until("the page to be back", () => page.evaluate(() => globalThis.bars.some((text) => text?.startsWith("Back, "))));
  await page.getByText("The server stopped in the middle of this turn").waitFor();
  await page.getByText("Idle", { exact: true }).waitFor();
  assert.equal(await page.getByText("The server stopped in the middle of this turn").count(), 1);
});

test("below a path prefix nothing is missing", async (t) => {
  const { server, page, problems } = await open(t);
  const PREFIX = "/some/where";
  const proxy = createServer((asked, answer) => {
    const path = asked.url.startsWith(`${PREFIX}/`) ? asked.url.slice(PREFIX.length) : null;
    if (path === null) return answer.writeHead(404).end();
    const passed = request({ host: "127.0.0.1", port: server.port, path, method: asked.method, headers: asked.headers }, (given) => {
      answer.writeHead(given.statusCode, given.headers);
      given.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    answer.on("close", () => passed.destroy());
    asked.pipe(passed);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  t.after(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  await page.goto(`http://127.0.0.1:${proxy.address().port}${PREFIX}/`);
  await page.getByRole("button", { name: "Make me something" }).click();
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("Idle", { exact: true }).waitFor();
  assert.ok(new URL(page.url()).pathname.startsWith(`${PREFIX}/s/ses_`));
  // The address of a session, opened by itself.
  await page.reload();
  await page.getByText("Done: A to-do app").waitFor();
  assert.deepEqual(problems, []);
});
