// The scripted provider in a process of its own: what the agent takes for a model over the real OpenAI wire. All
// else in these tests is as people have it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

import { BINARY, ROOT } from "./server.mjs";

const SCRIPTED = join(dirname(BINARY), "tolka-scripted");
export const STORY = join(ROOT, "tests/data/native");

export class Provider {
  /** `script` is a file's path. It ends with the test, and with this process at the latest. */
  static async start(t, script) {
    const child = spawn(SCRIPTED, [script, "--until-stdin-ends"], { stdio: ["pipe", "pipe", "pipe"] });
    const exit = once(child, "exit");
    t.after(async () => {
      child.stdin.end();
      await exit;
    });
    let words = "";
    child.stderr.setEncoding("utf8").on("data", (text) => (words += text));
    const line = once(child.stdout.setEncoding("utf8"), "data");
    const first = await Promise.race([line, exit.then(() => null)]);
    if (!first) throw new Error(`the provider did not start: ${words}`);
    return Object.assign(new Provider(), { base: first[0].trim() });
  }

  /** What the server is told of it. */
  get config() {
    return [
      'model = "scripted/story"',
      "[providers.scripted]",
      'wire = "openai"',
      `base_url = "${this.base}/v1"`,
      "[[providers.scripted.models]]",
      'id = "story"',
      "context = 100000",
      "images = true",
      "",
    ].join("\n");
  }

  /** All that it was asked so far. */
  async requests() {
    return (await fetch(`${this.base}/requests`)).json();
  }

  async open(gate) {
    await fetch(`${this.base}/gates/${gate}`, { method: "POST" });
  }
}

/** A script of a test's own, as a file that `Provider` takes. */
export async function written(folder, answers) {
  const path = join(folder, "script.json");
  await writeFile(path, JSON.stringify({ answers }));
  return path;
}
