// An MCP server that behaves in the way that its first argument says. Without dependencies, so that nothing but its own
// conduct is tried.
//
// It is well behaved up to the point at which it is not: it greets, and lists the tools `echo` and `misbehave`. What a
// mode does wrong is done at `initialize`, at `tools/list`, or when `misbehave` is called.

import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [mode, file] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin });

const write = (text) => process.stdout.write(text);
const say = (message) => write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const answer = (id, result) => say({ id, result });
const text = (words) => ({ content: [{ type: "text", text: words }] });
const changed = { method: "notifications/tools/list_changed" };

const tool = (name) => ({ name, description: `Does ${name}.`, inputSchema: { type: "object", properties: {} } });
const tools = () => {
  if (mode === "named-like-ours") return [tool("echo"), tool("misbehave"), { ...tool("bash"), name: "bash" }];
  if (mode === "bad-schemas") {
    const laughs = Object.fromEntries(
      Array.from({ length: 30 }, (_, n) => [n, { anyOf: Array(10).fill({ $ref: `#/$defs/${n + 1}` }) }]),
    );
    return [
      tool("echo"),
      { ...tool("bomb"), inputSchema: { type: "object", $defs: laughs, properties: { a: { $ref: "#/$defs/0" } } } },
      { ...tool("list"), inputSchema: [1, 2, 3] },
      { ...tool("huge"), inputSchema: { type: "object", description: "x".repeat(1 << 20) } },
      { name: "" },
      { name: 7 },
      "no tool",
      tool("x".repeat(150)),
      tool("misbehave"),
    ];
  }
  return [tool("echo"), tool("misbehave")];
};

/** Writes as fast as it is read, for ever. */
function flood(piece) {
  const more = () => {
    while (process.stdout.write(piece));
    process.stdout.once("drain", more);
  };
  more();
}

let calls = 0;
let late;
let asked = 0;

function misbehave(id) {
  switch (mode) {
    case "never-answers":
      return;
    case "answers-late":
      late = id;
      return;
    case "crashes":
      process.stderr.write("about to die: the disk is on fire\n");
      return process.exit(3);
    case "floods-garbage":
      return flood("garbage ".repeat(1000) + "\n");
    case "floods-without-end":
      return flood("x".repeat(1 << 16));
    case "floods-news":
      return flood(JSON.stringify({ jsonrpc: "2.0", ...changed }) + "\n");
    case "floods-words":
      return flood(JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: { data: "x".repeat(1000) } }) + "\n");
    case "long-line":
      for (let n = 0; n < 100; n++) write("x".repeat(1 << 20));
      return write("\n");
    case "huge-answer":
      return answer(id, text("x".repeat(8 << 20)));
    case "lies-about-ids":
      for (const wrong of [id + 1000, String(id), null, id - 1]) say({ id: wrong, result: text("a lie") });
      say({ id, result: text("the truth") });
      return say({ id, result: text("and again") });
    case "wrong-rpc":
      write("[1,2,3]\n{}\n\n\"text\"\n{\"id\":{}}\n");
      write(JSON.stringify([{ jsonrpc: "2.0", id, result: {} }]) + "\n");
      return say({ id, result: "no object" });
    case "wrong-error":
      return say({ id, error: "just a string" });
    case "bad-image":
      return answer(id, {
        content: [
          { type: "text", text: "here it is" },
          { type: "image", data: "this is no base64!", mimeType: "image/png" },
          { type: "image", data: Buffer.from("text").toString("base64"), mimeType: "image/png" },
          { type: "hologram" },
        ],
      });
    case "closes-stdin":
      process.stdin.destroy();
      return setInterval(() => {}, 1000);
    case "asks-back":
      for (let n = 0; n < 5000; n++) say({ id: `ask-${n}`, method: "sampling/createMessage", params: {} });
      return answer(id, text("asked"));
    case "progress": {
      const step = (n) => ({ method: "notifications/progress", params: { progressToken: token, progress: n, total: 3, message: "step" } });
      say(step(1));
      return setTimeout(() => {
        // What is told last comes in one breath with the answer.
        const last = [step(2), step(3), { id, result: text("done") }];
        write(last.map((message) => JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n").join(""));
      }, 50);
    }
    case "remembers-cancel":
      return writeFileSync(file, "called\n");
    case "prints-secrets":
      process.stderr.write(`SECRET=${process.env.SECRET}\n`);
      return process.exit(1);
    case "environment":
      return answer(id, text(Object.keys(process.env).sort().join(" ")));
    case "learns":
      calls += 1;
      tools_.push(tool(`learned-${calls}`));
      say(changed);
      return answer(id, text("learned"));
    case "learns-slowly":
    case "learns-again":
      tools_.push(tool("learned-1"));
      say(changed);
      return answer(id, text("learned"));
    case "forgets":
      tools_.splice(1, 1);
      say(changed);
      return answer(id, text("forgot"));
    default:
      return answer(id, text("nothing wrong"));
  }
}

let token;
const tools_ = tools();

function list(id, cursor) {
  switch (mode) {
    case "million-tools": {
      write(`{"jsonrpc":"2.0","id":${id},"result":{"tools":[`);
      const piece = JSON.stringify(tool("some-tool"));
      for (let n = 0; n < 1000; n++) write(Array(1000).fill(piece).join(",") + (n < 999 ? "," : ""));
      return write("]}}\n");
    }
    case "endless-pages": {
      const page = Number(cursor ?? 0);
      return answer(id, { tools: Array.from({ length: 100 }, (_, n) => tool(`t${page * 100 + n}`)), nextCursor: String(page + 1) });
    }
    case "same-page":
      return answer(id, { tools: tools_, nextCursor: "again" });
    case "learns-slowly":
    case "learns-again": {
      asked += 1;
      const known = [...tools_];
      if (asked !== 2) return answer(id, { tools: known });
      if (mode === "learns-again") {
        tools_.push(tool("learned-2"));
        say(changed);
      }
      // To tell what it knows takes until the file is there.
      writeFileSync(`${file}.asked`, "");
      const timer = setInterval(() => {
        if (!existsSync(file)) return;
        clearInterval(timer);
        answer(id, { tools: known });
      }, 20);
      return;
    }
    case "no-list":
      return answer(id, { tools: `none, says ${Math.random()}` });
    default:
      return answer(id, { tools: tools_ });
  }
}

if (mode === "dies-at-once") {
  process.stderr.write("cannot open the database\n");
  process.exit(1);
}
if (mode === "lives") setInterval(() => appendFileSync(file, "."), 20);
// The second time it is well.
if (mode === "comes-back" && !existsSync(file)) {
  writeFileSync(file, "");
  process.exit(1);
}

lines.on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (mode === "silent") return;
  if (method === "initialize") {
    if (mode === "chatters") for (let n = 0; n < 50; n++) write(`a line for people ${n}\n`);
    if (mode === "refuses") return say({ id, error: { code: -32000, message: "not today" } });
    if (mode === "floods-at-start") return flood("garbage\n");
    answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo: { name: mode, version: "1" } });
  } else if (method === "notifications/initialized") {
    if (mode === "storm") flood(JSON.stringify({ jsonrpc: "2.0", ...changed }) + "\n");
  } else if (method === "notifications/cancelled") {
    if (mode === "remembers-cancel") appendFileSync(file, `cancelled ${params.requestId}\n`);
  } else if (method === "tools/list") {
    list(id, params?.cursor);
  } else if (method === "tools/call") {
    token = params._meta?.progressToken;
    if (params.name === "misbehave") misbehave(id);
    else {
      if (late !== undefined) answer(late, text("too late"));
      answer(id, text(`echo: ${JSON.stringify(params.arguments)}`));
    }
  } else if (id !== undefined && method) {
    say({ id, error: { code: -32601, message: "no such method" } });
  }
});
lines.on("close", () => {
  if (mode !== "closes-stdin") process.exit(0);
});
