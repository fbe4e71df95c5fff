// Draws one session as its facts tell it, and the list of all. A snapshot comes first, then the facts after it,
// each folded into the page where it belongs. Only nodes are built here: no text of an agent becomes markup.

const $ = (id) => document.getElementById(id);

function node(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value != null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child != null));
  return made;
}

async function call(method, path, body) {
  const headers = body ? { "content-type": "application/json" } : {};
  const sent = fetch(`/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  const response = await sent.catch(() => {
    throw new Error("The server cannot be reached.");
  });
  const answer = await response.json().catch(() => null);
  if (response.ok) return answer;
  const message = answer?.error?.message ?? `The server answered ${response.status}.`;
  throw Object.assign(new Error(message), { status: response.status });
}

const number = (n) => n.toLocaleString("en");
const seconds = (micros) => (micros < 950_000 ? `${Math.round(micros / 1000)} ms` : `${(micros / 1e6).toFixed(1)} s`);
const bytes = (n) => (n < 1000 ? `${n} B` : n < 1e6 ? `${Math.round(n / 1000)} kB` : `${(n / 1e6).toFixed(1)} MB`);
const baseName = (path) => path.split("/").filter(Boolean).at(-1) ?? path;

function age(time) {
  const minutes = Math.max(0, Date.now() - time / 1000) / 60_000;
  if (minutes < 1) return "now";
  if (minutes < 60) return `${Math.floor(minutes)}m`;
  return minutes < 1440 ? `${Math.floor(minutes / 60)}h` : `${Math.floor(minutes / 1440)}d`;
}

// ---- Markdown: what agents write most, as nodes ----

const INLINE = /(`+)(.+?)\1|\*\*(.+?)\*\*|\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>()[\]"'`]+)/gs;
const BULLET = /^(\s*)(?:[-*+]|(\d+)[.)])\s+(.*)$/;
const isFence = (line) => /^\s{0,3}(```|~~~)/.test(line);
const isRow = (line) => line.startsWith("|");
const starts = (line) => isFence(line) || isRow(line) || BULLET.test(line) || /^#{1,6} |^> ?/.test(line);

function inline(text) {
  const made = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    made.push(text.slice(at, found.index));
    at = found.index + found[0].length;
    const [whole, ticks, code, bold, label, target, bare] = found;
    if (ticks) made.push(node("code", {}, code));
    else if (bold) made.push(node("strong", {}, ...inline(bold)));
    else if (target) made.push(outside(target, label));
    else made.push(bare ? outside(bare, bare) : whole);
  }
  return [...made, text.slice(at)];
}

const outside = (href, label) => node("a", { href, target: "_blank", rel: "noreferrer noopener" }, label);

/** The text cut where blocks begin, so that a text that grows changes its last pieces only. */
function blocksOf(text) {
  const blocks = [];
  let open = [];
  const close = () => open.length && (blocks.push(open.join("\n")), (open = []));
  for (const line of text.split("\n")) {
    const inFence = open.length > 0 && isFence(open[0]);
    if (inFence) {
      open.push(line);
      if (line.trim() === open[0].trim().slice(0, 3)) close();
      continue;
    }
    const sameKind = open.length > 0 && (
      (BULLET.test(open[0]) && (BULLET.test(line) || /^\s+\S/.test(line)))
      || (isRow(open[0]) && isRow(line)) || (open[0].startsWith(">") && line.startsWith(">")));
    if (!line.trim() || (starts(line) && !sameKind) || (open.length && starts(open[0]) && !sameKind)) close();
    if (line.trim()) open.push(line);
  }
  close();
  return blocks;
}

function blockNode(block) {
  const lines = block.split("\n");
  if (isFence(lines[0])) {
    const isClosed = lines.length > 1 && lines.at(-1).trim() === lines[0].trim().slice(0, 3);
    return node("pre", { tabindex: 0 }, node("code", {}, lines.slice(1, isClosed ? -1 : undefined).join("\n")));
  }
  const heading = /^#{1,6} (.*)$/.exec(lines[0]);
  if (heading) return node("h3", {}, ...inline(heading[1]));
  if (BULLET.test(lines[0])) return list(lines);
  if (isRow(lines[0]) && lines.length > 1) return table(lines);
  if (lines[0].startsWith(">")) return node("blockquote", {}, ...inline(lines.map((line) => line.replace(/^> ?/, "")).join("\n")));
  return node("p", {}, ...inline(block));
}

function list(lines) {
  const levels = [];
  for (const line of lines) {
    const [, indent, ordinal, text] = BULLET.exec(line) ?? [];
    if (text == null) {
      levels.at(-1).root.lastChild.append(" ", ...inline(line.trim()));
      continue;
    }
    while (levels.length > 1 && indent.length < levels.at(-1).indent) levels.pop();
    if (!levels.length || indent.length > levels.at(-1).indent + 1) {
      const root = node(ordinal ? "ol" : "ul", { start: ordinal });
      levels.at(-1)?.root.lastChild.append(root);
      levels.push({ root, indent: indent.length });
    }
    levels.at(-1).root.append(node("li", {}, ...inline(text)));
  }
  return levels[0].root;
}

function table(lines) {
  const cells = (line) => line.replace(/^\||\|\s*$/g, "").split("|").map((cell) => cell.trim());
  const isRule = (line) => /^[\s|:-]+$/.test(line);
  const rows = lines.filter((line) => !isRule(line));
  return node("table", {}, rows.map((line, at) =>
    node("tr", {}, cells(line).map((cell) => node(at ? "td" : "th", {}, ...inline(cell))))));
}

function drawMarkdown(root, text) {
  const blocks = blocksOf(text);
  blocks.forEach((block, at) => {
    const old = root.children[at];
    if (old?.block === block) return;
    const made = Object.assign(blockNode(block), { block });
    if (old) old.replaceWith(made);
    else root.append(made);
  });
  while (root.children.length > blocks.length) root.lastChild.remove();
}

// ---- Differences of two texts, line by line ----

/** Beyond this many comparisons the middle is shown as removed and added whole. */
const PATIENCE = 400_000;

function difference(before, after) {
  const [a, b] = [before, after].map((text) => (text ? text.replace(/\n$/, "").split("\n") : []));
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const middle = changes(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const same = (lines) => lines.map((text) => [" ", text]);
  return [...same(a.slice(0, head)), ...middle, ...same(a.slice(a.length - tail))];
}

function changes(a, b) {
  if (a.length * b.length > PATIENCE) return [...a.map((text) => ["-", text]), ...b.map((text) => ["+", text])];
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const [down, right] = [common[(i + 1) * width + j], common[i * width + j + 1]];
      common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1] + 1 : Math.max(down, right);
    }
  }
  const made = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) made.push([" ", a[i++]], j++ && undefined);
    else if (i < a.length && (j === b.length || common[(i + 1) * width + j] >= common[i * width + j + 1])) made.push(["-", a[i++]]);
    else made.push(["+", b[j++]]);
  }
  return made.filter(Boolean);
}

function diffNode(lines) {
  const near = lines.map((_, at) => lines.slice(Math.max(0, at - 3), at + 4).some(([sign]) => sign !== " "));
  const root = node("div", { class: "diff", tabindex: 0, role: "group", "aria-label": "Changes" });
  const numbers = { "-": 0, "+": 0 };
  let isGap = false;
  lines.forEach(([sign, text], at) => {
    if (sign !== "+") numbers["-"]++;
    if (sign !== "-") numbers["+"]++;
    if (!near[at]) {
      if (!isGap) root.append(node("div", { class: "gap" }, "⋯"));
      isGap = true;
      return;
    }
    isGap = false;
    const kind = { "+": "added", "-": "removed" }[sign];
    root.append(node("div", { class: kind }, node("i", {}, String(numbers[sign === "-" ? "-" : "+"])), node("b", {}, sign === "-" ? "−" : sign), text));
  });
  return root;
}

// ---- Parts of a turn ----

/** The text of a value that may stand elsewhere: a long one is a head and a hash. */
const textOf = (body) => (body == null || typeof body === "string" ? body ?? "" : body.head ?? "");
const blobOf = (value) => value?.$blob ?? (value?.hash ? value : null);
const wholeLink = (value) => {
  const blob = blobOf(value);
  const href = blob && `/v1/blobs/${blob.hash}`;
  return blob && node("p", {}, node("a", { class: "plain", href, download: `${blob.hash.slice(0, 12)}.txt` }, `Download all ${bytes(blob.size)}`));
};
// eslint-disable-next-line no-control-regex
const plain = (text) => text.replace(/\x1b\[[0-9;?]*[ -/]*[@-~]/g, "");

class Prose {
  constructor(voice, part) {
    Object.assign(this, { voice, part, text: "" });
    this.root = voice === "text"
      ? node("div", { class: "prose" })
      : node("details", { class: "thought" }, node("summary", {}, node("b", {}, "Thought"), node("span")), node("p"));
  }

  setLive(isLive) {
    this.root.classList.toggle("live", isLive);
    if (this.voice === "text") return;
    const [label, preview] = this.root.firstChild.children;
    label.textContent = isLive ? "Thinking…" : "Thought";
    preview.replaceChildren(isLive ? node("bdi", {}, this.text.slice(-160)) : "");
  }

  draw() {
    if (this.voice === "text") return drawMarkdown(this.root, this.text);
    this.root.lastChild.textContent = this.text;
    this.setLive(this.root.classList.contains("live"));
  }
}

const VERBS = {
  read: ["Read", "Reading", "Read"], edit: ["Edit", "Editing", "Edited"], delete: ["Delete", "Deleting", "Deleted"],
  move: ["Move", "Moving", "Moved"], search: ["Search", "Searching", "Searched"], execute: ["Run", "Running", "Ran"],
  think: ["Think", "Thinking", "Thought"], fetch: ["Fetch", "Fetching", "Fetched"], write: ["Write", "Writing", "Wrote"],
};
const DONE = new Set(["completed", "failed", "cancelled"]);

class ToolCard {
  constructor(tool, workspace) {
    this.workspace = workspace;
    this.tool = { status: "pending", kind: "other", title: "", live_input: "", live_output: "", ...tool };
    this.summary = node("summary");
    this.body = node("div", { class: "body" });
    this.root = node("details", { class: "card tool", toggle: () => this.drawBody() }, this.summary, this.body);
    this.root.open = this.opensByItself();
  }

  get isOver() {
    return DONE.has(this.tool.status);
  }

  /** What an update names replaces; nothing comes after an end. */
  merge(change, time) {
    if (this.isOver) return;
    Object.assign(this.tool, change);
    if (this.tool.status !== "pending") this.tool.started ??= time;
    if (this.isOver) this.tool.ended ??= time;
    if (this.opensByItself()) this.root.open = true;
  }

  append(field, text) {
    this.tool[field] += text;
    if (field === "live_output") this.root.open = true;
  }

  get diffs() {
    const diffs = (this.tool.content ?? []).filter((content) => content.type === "diff");
    if (this.diffsOf !== this.tool.content) {
      this.diffsOf = this.tool.content;
      this.diffsMade = diffs.map((diff) => ({ ...diff, lines: difference(textOf(diff.old), textOf(diff.new)) }));
    }
    return this.diffsMade ?? [];
  }

  count(sign) {
    return this.diffs.flatMap((diff) => diff.lines).filter((line) => line[0] === sign).length;
  }

  opensByItself() {
    const changed = this.count("+") + this.count("-");
    return this.tool.status === "failed" || (changed > 0 && changed <= 40);
  }

  get verb() {
    const { kind, name, status, title } = this.tool;
    const isNew = kind === "edit" && this.diffs.length > 0 && this.diffs.every((diff) => !diff.old);
    const forms = VERBS[isNew ? "write" : kind];
    return forms ? forms[this.isOver ? 2 : status === "running" ? 1 : 0] : name ?? (title || "Tool");
  }

  get target() {
    const { input, title, name } = this.tool;
    const given = input ?? {};
    const said = given.command ?? given.filePath ?? given.file_path ?? given.path ?? given.pattern ?? given.query ?? given.url;
    const shown = this.tool.kind === "search" ? given.pattern ?? given.query ?? said : said;
    const text = typeof shown === "string" ? shown : title === name ? "" : title;
    return text.startsWith(`${this.workspace}/`) ? text.slice(this.workspace.length + 1) : text;
  }

  get exit() {
    return this.tool.output?.metadata?.exit ?? this.tool.output?.exit ?? this.tool.output?.exit_code;
  }

  get sentence() {
    return `${this.verb} ${this.target}${this.tool.status === "completed" ? "" : `, ${this.tool.status}`}`;
  }

  draw() {
    const { status, kind, started, ended } = this.tool;
    const [plus, minus] = [this.count("+"), this.count("-")];
    const outcome = node("span", { class: "outcome" },
      plus ? node("span", { class: "plus" }, `+${plus}`) : null,
      minus ? node("span", { class: "minus" }, `−${minus}`) : null,
      ended && kind === "execute" ? node("span", {}, seconds(ended - started)) : null,
      status === "failed" ? node("span", { class: "failure" }, this.exit ? `exit ${this.exit}` : "failed") : null,
      status === "cancelled" ? node("span", {}, "cancelled") : null,
      node("i", { class: status === "running" ? "spinner" : `status ${status}`, role: "img", "aria-label": status }));
    this.summary.replaceChildren(
      node("i", { class: `kind ${kind}` }), node("span", { class: "verb" }, this.verb),
      node("span", { class: "target mono", title: this.target }, this.target), outcome);
    this.drawBody();
  }

  drawBody() {
    if (!this.root.open) return;
    const isInputOpen = this.body.querySelector(".inner")?.open ?? false;
    this.body.replaceChildren(...[this.inputNode(isInputOpen), ...this.outputNodes()].filter(Boolean));
    const output = this.body.querySelector(".output");
    if (output) output.scrollTop = output.scrollHeight;
  }

  inputNode(open) {
    const { input, live_input } = this.tool;
    const text = input && Object.keys(input).length ? JSON.stringify(input, null, 2) : live_input;
    return text ? node("details", { class: "inner", open }, node("summary", {}, "Input"), node("pre", { tabindex: 0 }, text)) : null;
  }

  outputNodes() {
    const { content, output, live_output, error } = this.tool;
    const texts = (content ?? []).filter((piece) => piece.type === "content").map((piece) => piece.block);
    const said = texts.map((block) => textOf(block.text) || block.uri || `[${block.type}]`).join("\n");
    const raw = typeof output === "string" ? output : output?.output ?? (output && !blobOf(output) ? JSON.stringify(output, null, 2) : "");
    const text = this.diffs.length ? "" : said || live_output || raw;
    return [
      ...this.diffs.flatMap((diff) => [diffNode(diff.lines), wholeLink(diff.new)]),
      text ? node("pre", { class: "output", tabindex: 0 }, plain(text)) : null,
      ...texts.map((block) => wholeLink(block.text)), wholeLink(output),
      error ? node("p", { class: "failure" }, textOf(error)) : null,
    ];
  }
}

class Turn {
  constructor(id, content) {
    this.id = id;
    this.content = content;
    this.last = null;
    this.root = node("section", { class: "turn" }, content.length ? node("div", { class: "user" }, content.map(blockOfPrompt)) : null);
  }

  place(part) {
    this.last?.setLive?.(false);
    this.last = part;
    this.root.append(part.root);
    return part;
  }

  prose(voice, part) {
    const isSame = this.last instanceof Prose && this.last.part === part && this.last.voice === voice;
    return isSame ? this.last : this.place(new Prose(voice, part));
  }

  note(root) {
    return this.place({ root }).root;
  }
}

function blockOfPrompt(block) {
  if (block.type === "text") return textOf(block.text);
  return node("span", { class: "attached" }, `${block.type}: ${block.name ?? block.uri ?? block.mime}`);
}

const line = (text) => node("p", { class: "line" }, node("span", {}, text));
const banner = (severity, title, text, ...actions) => node("div", { class: `banner ${severity}` }, node("b", {}, title),
  text ? node("p", {}, text) : null, actions.length ? node("div", { class: "actions" }, actions) : null);
const button = (label, click, kind = "") => node("button", { class: `button ${kind}`, type: "button", click }, label);

// ---- What waits for a person ----

const PERMISSIONS = { bash: "Run this command?", edit: "Change this file?", write: "Write this file?", webfetch: "Fetch this page?" };

function permissionCard(ask, answer) {
  const always = ask.options.find((option) => option.kind === "allow_always");
  const note = always && ask.patterns?.length ? `“${always.name}” would cover ${ask.patterns.join(", ")}` : null;
  const primary = ask.options.find((option) => option.kind.startsWith("allow"));
  const choices = ask.options.map((option) =>
    button(option.name, () => answer({ option: option.id }), option === primary ? "primary" : ""));
  return node("div", { class: "ask", role: "group", "aria-label": "Permission" },
    node("h2", {}, node("i", { class: "dot asks" }), PERMISSIONS[ask.permission] ?? `Allow ${ask.permission}?`),
    node("pre", { tabindex: 0 }, ask.metadata?.command ?? ask.title),
    note && node("p", { class: "note" }, note), node("div", { class: "actions" }, choices));
}

function questionCard(ask, answer) {
  const fields = ask.questions.map((question, at) => node("fieldset", {}, node("legend", {}, question.question),
    question.options.map((option) => node("label", {},
      node("input", { type: question.multiple ? "checkbox" : "radio", name: `${ask.request}-${at}`, value: option.label }),
      node("span", {}, option.label, " ", node("small", {}, option.description))))));
  const chosen = () => fields.map((field) => [...field.querySelectorAll(":checked")].map((input) => input.value));
  const actions = [button("Answer", () => answer({ answers: chosen() }), "primary"), button("Dismiss", () => answer({ reject: true }))];
  return node("div", { class: "ask", role: "group", "aria-label": "Question" },
    node("h2", {}, node("i", { class: "dot asks" }), ask.questions.length > 1 ? "Some questions" : ask.questions[0]?.header || "A question"),
    fields, node("div", { class: "actions" }, actions));
}

// ---- One session ----

const ENDS = {
  cancelled: "Stopped", interrupted: "Interrupted: the server stopped in the middle of this turn", refusal: "The agent refused to go on",
  max_tokens: "Stopped: the answer reached the model's limit", max_turn_requests: "Stopped: the turn reached its limit of steps",
};

/** How each fact changes what is shown. What is not here changes nothing on this page. */
const TELL = {
  session_changed: (talk, e) => Object.assign(talk.head, e),
  session_deleted: (talk) => talk.close("This session was deleted."),
  prompt_queued: (talk, e) => talk.queued.set(e.turn, e),
  prompt_dropped: (talk, e) => talk.queued.delete(e.turn),
  turn_started: (talk, e) => talk.startTurn(e.turn),
  turn_ended: (talk, e) => talk.endTurn(e.stop),
  text_appended: (talk, e) => talk.append("text", e),
  thought_appended: (talk, e) => talk.append("thought", e),
  tool_changed: (talk, e, fact) => talk.changeTool(e, fact.time),
  input_appended: (talk, e) => talk.tool(e.call).append("live_input", e.text),
  output_appended: (talk, e) => talk.tool(e.call).append("live_output", e.text),
  plan_set: (talk, e) => (talk.plan = e.entries),
  mode_set: (talk, e) => (talk.head.mode = e.mode),
  usage_set: (talk, e) => (talk.usage = e),
  file_changed: (talk, e) => ((talk.head.added += e.added), (talk.head.removed += e.removed)),
  artifact_saved: (talk, e) => talk.artifacts.set(e.id, e),
  permission_asked: (talk, e) => talk.ask(e, permissionCard),
  question_asked: (talk, e) => talk.ask(e, questionCard),
  permission_answered: (talk, e) => talk.answered(e),
  question_answered: (talk, e) => talk.answered(e),
  noticed: (talk, e) => talk.current.note(banner(e.severity, e.title, e.description)),
  failed: (talk, e) => talk.fail(e, talk.current),
  compaction_started: (talk) => talk.current.note(line("Making room in the context…")),
  compaction_ended: (talk, e) => talk.current.note(line(e.error ?? "The context was summarised")),
  rewound: (talk) => talk.reload(),
  unrewound: (talk) => talk.reload(),
  message_hidden: (talk) => talk.reload(),
};
const APPENDS = new Set(["text_appended", "thought_appended", "input_appended", "output_appended"]);

class Talk {
  constructor(id) {
    this.id = id;
    this.dirty = new Set();
    this.heard = Date.now();
  }

  path(rest) {
    return `/sessions/${encodeURIComponent(this.id)}${rest}`;
  }

  async load() {
    const view = await call("GET", this.path("/view"));
    if (this.isClosed) return;
    Object.assign(this, {
      head: view.tip.head, plan: view.tip.plan ?? [], usage: view.tip.usage, turn: null, turns: new Map(), tools: new Map(), asks: new Map(),
      queued: new Map((view.tip.queue ?? []).map(({ prompt }) => [prompt.turn, prompt])),
      artifacts: new Map((view.artifacts ?? []).map((artifact) => [artifact.id, artifact])),
    });
    this.seq = view.tip.seq;
    $("talk").replaceChildren();
    view.messages.filter((message) => !message.hidden && !this.queued.has(message.turn)).forEach((message) => this.retell(message));
    this.turn = this.turns.get(view.tip.turn?.id) ?? null;
    if (view.tip.turn?.failure) this.fail(view.tip.turn.failure, this.turn);
    for (const ask of view.tip.turn?.asks ?? []) this.ask(ask.permission ?? ask.question, ask.permission ? permissionCard : questionCard);
    isFollowing = true;
    this.touch();
    this.follow(view.position);
  }

  retell(message) {
    const turn = this.turns.get(message.turn) ?? this.openTurn(message.turn, message.parts.map((part) => part.content).filter(Boolean));
    for (const part of message.role === "agent" ? message.parts : []) {
      if (part.tool) this.addTool(turn, part.tool);
      const [voice, said] = part.text ? ["text", part.text] : ["thought", part.thought];
      if (said) this.dirty.add(Object.assign(turn.prose(voice, said.part), { text: said.text }));
    }
    if (message.failure) this.fail(message.failure, turn);
    if (ENDS[message.stop]) turn.note(line(ENDS[message.stop]));
  }

  /** The browser comes back by itself and says where it was; only an answer that is no stream ends it. */
  follow(position) {
    this.source?.close();
    this.source = new EventSource(`/v1${this.path("/events")}?after=${position}`);
    this.source.onopen = () => showLink("open", this.seq);
    this.source.onmessage = (event) => this.hear(JSON.parse(event.data));
    this.source.onerror = () => {
      showLink("lost", this.seq);
      if (this.source.readyState === EventSource.CLOSED) this.reload();
    };
  }

  /** Starts over from a snapshot: after a 410, a gap, or what cannot be folded in place. */
  async reload() {
    this.source?.close();
    clearTimeout(this.retry);
    try {
      await this.load();
    } catch (error) {
      if (this.isClosed) return;
      if (error.status === 404) this.close("This session is not here any more.");
      else this.retry = setTimeout(() => this.reload(), 1000);
    }
  }

  hear(fact) {
    if (fact.seq <= this.seq) return;
    if (fact.seq !== this.seq + 1) return void this.reload();
    this.seq = fact.seq;
    this.heard = Date.now();
    TELL[fact.type]?.(this, fact.data, fact);
    if (!APPENDS.has(fact.type)) this.isChromeDirty = true;
    this.schedule();
  }

  /** Where things go that belong to no open turn. */
  get current() {
    return this.turn ?? [...this.turns.values()].at(-1) ?? this.openTurn("", []);
  }

  openTurn(id, content) {
    const turn = new Turn(id, content);
    this.turns.set(id, turn);
    $("talk").append(turn.root);
    return turn;
  }

  startTurn(id) {
    this.turn = this.openTurn(id, this.queued.get(id)?.content ?? []);
    this.queued.delete(id);
    refreshList();
  }

  endTurn(stop) {
    this.turn?.last?.setLive?.(false);
    if (ENDS[stop]) this.current.note(line(ENDS[stop]));
    say(ENDS[stop] ?? (stop === "failed" ? "The turn failed" : "The turn is done"));
    this.turn = null;
    this.isStopping = false;
    refreshList();
  }

  append(voice, { part, text }) {
    const prose = this.current.prose(voice, part);
    prose.text += text;
    prose.root.classList.add("live");
    this.dirty.add(prose);
  }

  addTool(turn, tool) {
    const card = turn.place(new ToolCard(tool, this.head.workspace));
    this.tools.set(`${turn.id} ${tool.call}`, card);
    this.dirty.add(card);
    return card;
  }

  tool(call) {
    const card = this.tools.get(`${this.current.id} ${call}`) ?? this.addTool(this.current, { call });
    this.dirty.add(card);
    return card;
  }

  changeTool(change, time) {
    const card = this.tool(change.call);
    card.merge(change, time);
    if (card.isOver) say(card.sentence);
  }

  ask(ask, cardOf) {
    const answer = async (given) => {
      const buttons = card.querySelectorAll("button");
      buttons.forEach((button) => (button.disabled = true));
      try {
        await call("POST", this.path(`/answers/${encodeURIComponent(ask.request)}`), given);
      } catch (error) {
        card.append(node("p", { class: "failure", role: "alert" }, error.message));
        buttons.forEach((button) => (button.disabled = false));
      }
    };
    const card = cardOf(ask, answer);
    this.asks.set(ask.request, { ask, card: this.current.note(card) });
    $("asked").textContent = `The agent asks: ${ask.title ?? ask.questions?.[0]?.question ?? ""}`;
    refreshList();
  }

  answered({ request, option, answers, by }) {
    const { ask, card } = this.asks.get(request) ?? {};
    this.asks.delete(request);
    $("asked").textContent = "";
    const chosen = ask?.options?.find(({ id }) => id === option)?.name ?? answers?.flat().join(", ");
    card?.replaceWith(line(chosen ? `${chosen}, by ${by}` : `Not answered (${by})`));
    refreshList();
  }

  fail(failure, turn) {
    const again = () => this.send({ content: turn.content }).catch((error) => showProblem(error.message));
    const actions = failure.retryable && turn.content.length ? [button("Send the prompt again", again)] : [];
    const details = failure.details && !blobOf(failure.details) ? JSON.stringify(failure.details, null, 2) : "";
    turn.note(banner("error", failure.message, [failure.code && `Code ${failure.code}`, details].filter(Boolean).join("\n"), ...actions));
  }

  send(prompt) {
    isFollowing = true;
    return call("POST", this.path("/prompt"), prompt);
  }

  async stop() {
    this.isStopping = true;
    this.touch();
    await call("POST", this.path("/cancel"), {}).catch((error) => showProblem(error.message));
  }

  close(why) {
    this.isClosed = true;
    this.source?.close();
    clearTimeout(this.retry);
    if (why) showLink("closed", why);
  }

  touch() {
    this.isChromeDirty = true;
    this.schedule();
  }

  /** Any number of facts between two frames is one drawing. */
  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (talk !== this) return;
      this.dirty.forEach((part) => part.draw());
      this.dirty.clear();
      if (this.isChromeDirty) drawChrome(this);
      this.isChromeDirty = false;
      if (isFollowing) $("scroll").scrollTop = $("scroll").scrollHeight;
    });
  }
}

// ---- Around the conversation ----

let talk = null;
let isFollowing = true;

const say = (sentence) => ($("said").textContent = sentence);

function showProblem(message) {
  $("problem").hidden = !message;
  $("problem").textContent = message ?? "";
}

/** The bar under the title: silent while all is well. */
function showLink(state, detail) {
  const bar = $("link");
  const wasLost = bar.dataset.state === "lost";
  bar.dataset.state = state;
  bar.classList.toggle("back-again", state === "open");
  if (state === "closed") bar.textContent = detail;
  if (state === "lost" && !wasLost) Object.assign(bar.dataset, { seq: detail }), (bar.textContent = `Reconnecting… last event ${number(detail)}`);
  bar.hidden = state === "open" && !wasLost;
  if (bar.hidden || state !== "open") return;
  bar.textContent = "Back";
  setTimeout(() => talk && bar.dataset.state === "open" && (bar.textContent = `Back, ${number(talk.seq - bar.dataset.seq)} events caught up`), 400);
  setTimeout(() => (bar.hidden ||= bar.dataset.state === "open"), 3000);
}

const stateOf = (head) => (head.waiting ? "asks" : head.busy ? "works" : "idle");
const STATES = { asks: "Asks you", works: "Working", idle: "Idle" };

function drawChrome(talk) {
  const { head, plan, usage, queued, artifacts } = talk;
  Object.assign(head, { busy: Boolean(talk.turn), waiting: talk.asks.size });
  const state = stateOf(head);
  document.title = `${head.waiting ? `(${head.waiting}) ` : ""}${head.title} · Tolka`;
  $("title").textContent = head.title;
  $("state").className = `chip ${state}`;
  $("state").replaceChildren(node("i", { class: `dot ${state}` }), STATES[state]);
  $("figures").replaceChildren(...figures(head, usage));
  $("stop").hidden = !head.busy;
  $("stop").disabled = talk.isStopping;
  $("stop").lastChild.textContent = talk.isStopping ? "Stopping" : "Stop";
  $("prompt").placeholder = head.busy ? "Add instructions. They wait until this turn ends." : "What should the agent do?";
  $("queue").replaceChildren(...[...queued.values()].filter(() => head.busy || queued.size > 1).map(queuedNode));
  $("artifacts").replaceChildren(...[...artifacts.values()].map(artifactNode));
  drawPlan(plan);
}

function figures(head, usage) {
  const made = [];
  if (head.added || head.removed) made.push(node("span", {}, node("span", { class: "plus" }, `+${head.added}`), " ", node("span", { class: "minus" }, `−${head.removed}`)));
  made.push(node("span", {}, [head.agent, head.mode].filter(Boolean).join(" · ")));
  if (usage?.size) made.push(node("span", { title: "Tokens in the context" }, `${number(usage.used)} / ${number(usage.size)}`));
  const cost = usage?.cost ?? head.cost;
  if (cost) made.push(node("b", {}, `${cost.amount.toFixed(2)} ${cost.currency}`));
  return made;
}

function queuedNode({ turn, content }) {
  const drop = () => call("DELETE", talk.path(`/queue/${encodeURIComponent(turn)}`)).catch((error) => showProblem(error.message));
  return node("li", {}, node("span", {}, "Next: ", content.map((block) => textOf(block.text)).join(" ")),
    node("button", { class: "plain", type: "button", click: drop }, "Drop"));
}

function artifactNode({ name, kind, path, size }) {
  return node("li", {}, node("b", {}, name), node("small", {}, `${kind.replaceAll("_", " ")} · ${path} · ${bytes(size)}`));
}

function drawPlan(plan) {
  const done = plan.filter((entry) => entry.status === "completed").length;
  const now = plan.find((entry) => entry.status === "in_progress") ?? plan.find((entry) => entry.status === "pending");
  $("plan").hidden = !plan.length;
  $("plan").replaceChildren(
    node("summary", {}, node("span", { class: "segments" }, plan.slice(0, 12).map(({ status }) => node("i", { class: status }))),
      node("b", {}, now?.content ?? "All done"), node("em", {}, `${done} of ${plan.length}`)),
    node("ol", {}, plan.map(({ status, content }) => node("li", { class: status },
      node("i", { class: `status ${status}`, role: "img", "aria-label": status.replace("_", " ") }), content))));
}

/** Silence is told too: an agent that thinks for long looks no different from one that hangs. */
function drawWaiting() {
  const quiet = talk?.turn && !talk.asks.size ? Math.floor((Date.now() - talk.heard) / 1000) : 0;
  $("waiting").hidden = quiet < 2;
  $("waiting").replaceChildren(node("i", { class: "spinner" }), `${quiet < 10 ? "Waiting for the agent" : "Still waiting"}, ${quiet} s`);
}

// ---- The list ----

let shownList = "";
let listed = 100;

async function refreshList() {
  const answer = await call("GET", `/sessions?limit=${listed}`).catch(() => null);
  if (!answer) return;
  const sessions = answer.sessions.filter((head) => !head.archived).sort((a, b) => b.updated - a.updated);
  const midnight = new Date().setHours(0, 0, 0, 0) * 1000;
  const groupOf = (head) => ({ asks: "Needs you", works: "Working" })[stateOf(head)] ?? (head.updated >= midnight ? "Today" : "Earlier");
  const rows = sessions.map((head) => [groupOf(head), head.id === talk?.id, age(head.updated), head]);
  if (shownList === (shownList = JSON.stringify([rows, answer.next]))) return;
  const focused = document.activeElement?.getAttribute("href");
  $("sessions").replaceChildren(...["Needs you", "Working", "Today", "Earlier"].flatMap((name) => {
    const here = rows.filter(([group]) => group === name);
    return here.length ? [node("p", { class: "group" }, name, node("span", {}, String(here.length))), ...here.map(rowNode)] : [];
  }), answer.next ? node("button", { class: "plain more", type: "button", click: () => ((listed += 100), refreshList()) }, "Show more") : "");
  if (focused) $("sessions").querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
}

function rowNode([, isCurrent, old, head]) {
  const state = stateOf(head);
  return node("a", { class: "row", href: `/s/${encodeURIComponent(head.id)}`, "aria-current": isCurrent && "page" },
    node("i", { class: `dot ${state}`, role: "img", "aria-label": STATES[state] }), node("b", { title: head.title }, head.title), node("time", {}, old),
    node("small", {}, node("span", { title: head.workspace }, baseName(head.workspace)),
      head.added ? node("span", { class: "plus" }, `+${head.added}`) : null, head.removed ? node("span", { class: "minus" }, `−${head.removed}`) : null));
}

// ---- Prompts ----

/** One name per prompt, kept while it fails: sent twice, it is still one turn. */
let key = null;
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

async function send() {
  const text = $("prompt").value;
  if (!text.trim() || $("send").disabled) return;
  $("send").disabled = true;
  showProblem();
  try {
    const target = talk ?? (await create(text));
    await target.send({ text, key: (key ??= newKey()) });
    key = null;
    $("prompt").value = "";
    fitPrompt();
    if (target !== talk) go(`/s/${target.id}`);
  } catch (error) {
    showProblem(`Not sent. ${error.message}`);
  }
  $("send").disabled = false;
}

async function create(text) {
  const title = text.trim().split("\n")[0].slice(0, 80);
  const session = await call("POST", "/sessions", { title, agent: $("agent").value || undefined, workspace: $("folder").value || undefined });
  return new Talk(session.id);
}

const fitPrompt = () => ($("prompt").rows = Math.min(10, $("prompt").value.split("\n").length));

// ---- Where we are ----

function go(path) {
  history.pushState(null, "", path);
  show();
}

async function show() {
  const id = /^\/s\/([^/]+)$/.exec(location.pathname)?.[1];
  talk?.close();
  talk = id ? new Talk(decodeURIComponent(id)) : null;
  document.body.dataset.page = id ? "session" : "home";
  for (const name of ["talk", "figures", "artifacts", "queue"]) $(name).replaceChildren();
  for (const name of ["plan", "state", "stop", "link", "waiting", "jump"]) $(name).hidden = true;
  $("welcome").hidden = $("choices").hidden = Boolean(id);
  $("state").hidden = !id;
  $("title").textContent = id ? "" : "New session";
  document.title = "Tolka";
  delete $("link").dataset.state;
  showProblem();
  refreshList();
  $("prompt").placeholder = "What should the agent do?";
  await talk?.reload();
}

async function introduce() {
  const about = await call("GET", "").catch((error) => ({ problem: error.message }));
  $("about").textContent = about.problem ?? `Tolka ${about.version} · ${location.host}`;
  $("promise").textContent = about.agents ? `Agents: ${about.agents.join(", ")}` : "";
  $("agent").replaceChildren(...(about.agents ?? []).map((name) => node("option", {}, name)));
  $("folder").value = about.workspace ?? "";
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='/']:not([download])");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(link.getAttribute("href"));
});
$("composer").addEventListener("submit", (event) => (event.preventDefault(), send()));
$("prompt").addEventListener("input", () => ((key = null), fitPrompt()));
$("prompt").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
$("stop").addEventListener("click", () => talk?.stop());
$("jump").addEventListener("click", () => {
  isFollowing = true;
  $("scroll").scrollTop = $("scroll").scrollHeight;
});
let lastTop = 0;
$("scroll").addEventListener("scroll", () => {
  const { scrollTop, scrollHeight, clientHeight } = $("scroll");
  if (scrollHeight - scrollTop - clientHeight < 40) isFollowing = true;
  else if (scrollTop < lastTop) isFollowing = false;
  lastTop = scrollTop;
  $("jump").hidden = isFollowing;
});
addEventListener("popstate", show);
setInterval(drawWaiting, 1000);
setInterval(() => document.hidden || refreshList(), 5000);
introduce();
show();
