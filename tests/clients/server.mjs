// A real server in a process of its own, ended by its own handle, and the one way in which tests wait.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const BINARY = resolve(ROOT, process.env.TOLKA_BIN ?? "target/debug/tolka");
/** For everything that ought to take a moment: a loaded machine may take a long one. */
export const DEADLINE = 120_000;

export const recording = (name) => `replay:${join(ROOT, "tests/data/recordings/acp", `${name}.jsonl`)}`;

/** Waits until `look` gives something true, and says what it waited for when that never comes. */
export async function until(what, look, deadline = DEADLINE) {
  const end = Date.now() + deadline;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited ${deadline / 1000} s for ${what}`);
    await new Promise((again) => setTimeout(again, 10));
  }
}

/** The same for something that is under way. */
export async function within(what, promise, deadline = DEADLINE) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${deadline / 1000} s for ${what}`)), deadline);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export class Server {
  /**
   * Options: `agent`, `pace`, `token`, `config` (the text of a tolka.toml), `workspace` (a folder that is copied) and `page`
   * (`built` for the one of web/, else the small one).
   * Give the test's context, and the server ends with the test.
   */
  static async start(t, options = {}) {
    const folder = await mkdtemp(join(tmpdir(), "tolka-clients-"));
    const server = new Server(folder, options);
    await mkdir(server.workspace);
    if (options.workspace) await cp(options.workspace, server.workspace, { recursive: true });
    if (options.config) await writeFile(server.config, options.config);
    t.after(async () => {
      await server.stop();
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    });
    for (let tries = 0; !server.child; tries++) {
      // Below the ports that the system gives to clients: one of those could be taken while the server is down.
      server.port = 12_000 + Math.floor(Math.random() * 18_000);
      await server.run().catch((error) => {
        if (tries > 5) throw error;
      });
    }
    return server;
  }

  constructor(folder, options) {
    Object.assign(this, { folder, options, workspace: join(folder, "workspace"), config: join(folder, "tolka.toml") });
  }

  get base() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Starts it, or starts it again on the same port and data. */
  async run() {
    const { agent = "demo", pace, token, config, page = "small" } = this.options;
    const options = ["--port", this.port, "--data", join(this.folder, "data"), "--workspace", this.workspace, "--agent", agent];
    if (pace) options.push("--pace", pace);
    if (token) options.push("--token", token);
    if (config) options.push("--config", this.config);
    // Whether the page was built must make no difference to those who do not ask for it.
    const env = { ...process.env, TOLKA_PAGE: page };
    const child = spawn(BINARY, ["serve", ...options.map(String)], { env, stdio: ["ignore", "pipe", "pipe"] });
    let words = "";
    child.stderr.setEncoding("utf8").on("data", (text) => (words += text));
    const line = once(child.stdout.setEncoding("utf8"), "data");
    const exit = once(child, "exit");
    const first = await Promise.race([line, exit.then(() => null)]);
    if (!first) throw new Error(`the server did not start: ${words}`);
    Object.assign(this, { child, exit, words: () => words });
  }

  async end(signal) {
    const { child, exit } = this;
    this.child = null;
    if (!child) return;
    child.kill(signal);
    await exit;
  }

  /** As a power cut would: nothing is said to anybody. */
  kill() {
    return this.end("SIGKILL");
  }

  async stop() {
    const { child } = this;
    const slow = child && setTimeout(() => child.kill("SIGKILL"), 10_000);
    await this.end("SIGTERM");
    clearTimeout(slow);
  }

  async json(path, { method = "GET", body } = {}) {
    const headers = { "content-type": "application/json" };
    const response = await fetch(this.base + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} -> ${response.status}: ${text}`);
    return text ? JSON.parse(text) : null;
  }

  /** What a new reader gets of a session: every event of the journal in a dialect. */
  async journal(session, dialect) {
    const events = [];
    for (let page = { position: "0", more: true }; page.more; ) {
      page = await this.json(`/v1/sessions/${session}/events?dialect=${dialect}&format=json&limit=1000&after=${page.position}`);
      events.push(...page.events.map((event) => event.data));
    }
    return events;
  }
}
