// Draws one session as its facts tell it, and the list of all. A snapshot comes first, then the facts after it,
// each folded into the page where it belongs. Only nodes are built here: no text of an agent becomes markup.

const $ = (id) => document.getElementById(id);

/** Functions are listeners, the rest are attributes; children that are null or false are left out. */
function node(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value != null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child != null && child !== false));
  return made;
}

async function call(method, path, body) {
  const headers = body ? { "content-type": "application/json" } : {};
  const response = await fetch(`/v1${path}`, { method, headers, body: body && JSON.stringify(body) }).catch(() => null);
  if (!response) throw new Error("The server cannot be reached.");
  const answer = await response.json().catch(() => null);
  if (response.ok) return answer;
  throw Object.assign(new Error(answer?.error?.message ?? `The server answered ${response.status}.`), { status: response.status });
}

const number = (n) => n.toLocaleString("en");
const seconds = (micros) => (micros < 950_000 ? `${Math.round(micros / 1000)} ms` : `${(micros / 1e6).toFixed(1)} s`);
const bytes = (n) => (n < 1000 ? `${n} B` : n < 1e6 ? `${Math.round(n / 1000)} kB` : `${(n / 1e6).toFixed(1)} MB`);

function age(time) {
  const minutes = Math.floor(Math.max(0, Date.now() - time / 1000) / 60_000);
  if (minutes < 60) return minutes ? `${minutes}m` : "now";
  return minutes < 1440 ? `${Math.floor(minutes / 60)}h` : `${Math.floor(minutes / 1440)}d`;
}

// ---- Markdown: what agents write most ----

const INLINE = /(`+)(.+?)\1|\*\*(.+?)\*\*|\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>()[\]"'`]*[^\s<>()[\]"'`.,;:!?])/gs;
const KINDS = [["fence", /^\s{0,3}(```|~~~)/], ["heading", /^#{1,6} /], ["row", /^\|/], ["list", /^\s*([-*+]|\d+[.)]) /]];
const kindOf = (line) => KINDS.find(([, pattern]) => pattern.test(line))?.[0] ?? "paragraph";

function inline(text) {
  const made = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    const [whole, , code, bold, label, target, bare] = found;
    made.push(text.slice(at, found.index));
    at = found.index + whole.length;
    if (code) made.push(node("code", {}, code));
    else if (bold) made.push(node("strong", {}, inline(bold)));
    else made.push(node("a", { href: target ?? bare, target: "_blank", rel: "noreferrer noopener" }, label ?? bare));
  }
  return [...made, text.slice(at)];
}

/** The text cut where blocks begin, so that a text that grows changes its last block only. */
function blocksOf(text) {
  const blocks = [];
  let open = null;
  for (const line of text.split("\n")) {
    const kind = kindOf(line);
    const isSame = open?.kind === kind && kind !== "heading";
    if (open?.kind === "fence" || (line.trim() && (isSame || (open?.kind === "list" && /^\s/.test(line))))) open.lines.push(line);
    else if (line.trim()) blocks.push((open = { kind, lines: [line] }));
    if (open?.kind === "fence" ? kind === "fence" && open.lines.length > 1 : !line.trim()) open = null;
  }
  return blocks;
}

function blockNode({ kind, lines }) {
  const code = () => lines.filter((line) => kindOf(line) !== "fence").join("\n");
  if (kind === "fence") return node("pre", { tabindex: 0 }, node("code", {}, code()));
  if (kind === "heading") return node("h3", {}, inline(lines[0].replace(/^#+ /, "")));
  if (kind === "list") return listNode(lines);
  if (kind === "row" && lines.length > 1) return tableNode(lines);
  return node("p", {}, inline(lines.join("\n")));
}

function listNode(lines) {
  const isOrdered = /^\s*\d/.test(lines[0]);
  const root = node(isOrdered ? "ol" : "ul", { start: isOrdered && parseInt(lines[0], 10) });
  for (const line of lines) {
    const text = inline(line.replace(/^\s*([-*+]|\d+[.)]) |^\s+/, ""));
    if (kindOf(line) === "list") root.append(node("li", { class: /^\s\s/.test(line) && "deep" }, text));
    else root.lastChild.append(" ", ...text);
  }
  return root;
}

function tableNode(lines) {
  const cells = (line) => line.replace(/^\||\|\s*$/g, "").split("|").map((cell) => inline(cell.trim()));
  const rows = lines.filter((line) => !/^[\s|:-]+$/.test(line));
  return node("table", {}, rows.map((line, at) => node("tr", {}, cells(line).map((cell) => node(at ? "td" : "th", {}, cell)))));
}

/** Blocks that did not change stay, and with them what a reader has selected. */
function drawMarkdown(root, text) {
  const blocks = blocksOf(text);
  blocks.forEach((block, at) => {
    const [old, source] = [root.children[at], block.lines.join("\n")];
    if (old?.source === source) return;
    const made = Object.assign(blockNode(block), { source });
    old ? old.replaceWith(made) : root.append(made);
  });
  while (root.children.length > blocks.length) root.lastChild.remove();
}

// ---- Differences: what stands between the first and the last line that changed ----

function difference(before, after) {
  const [a, b] = [before, after].map((text) => (text ? text.replace(/\n$/, "").split("\n") : []));
  let [head, tail] = [0, 0];
  while (head < Math.min(a.length, b.length) && a[head] === b[head]) head++;
  while (tail < Math.min(a.length, b.length) - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const lines = (sign, from, kept) => kept.map((text, at) => ({ sign, text, line: from + at + 1 }));
  return [
    ...lines(" ", Math.max(0, head - 3), b.slice(Math.max(0, head - 3), head)),
    ...lines("−", head, a.slice(head, a.length - tail)), ...lines("+", head, b.slice(head, b.length - tail)),
    ...lines(" ", b.length - tail, b.slice(b.length - tail).slice(0, 3)),
  ];
}

function diffNode(lines) {
  return node("div", { class: "diff", tabindex: 0, role: "group", "aria-label": "Changes" }, lines.map(({ sign, text, line }) =>
    node("div", { class: { "+": "added", "−": "removed" }[sign] }, node("i", {}, String(line)), node("b", {}, sign), text)));
}

// ---- Parts of a turn ----

/** A long text is a head and a hash in its fact, a long JSON value `{"$blob": …}`; the whole is at `/v1/blobs`. */
const textOf = (body) => (typeof body === "string" ? body : body?.head ?? "");
const blobOf = (value) => value?.$blob ?? (value?.hash ? value : null);

function wholeLink(value) {
  const blob = blobOf(value);
  return blob && node("p", {}, node("a", { class: "plain", href: `/v1/blobs/${blob.hash}`, download: "" }, `Download all ${bytes(blob.size)}`));
}

class Prose {
  constructor(voice, part) {
    Object.assign(this, { voice, part, text: "" });
    const thought = () => node("details", { class: "thought" }, node("summary", {}, node("span", {}, node("bdi"))), node("p"));
    this.root = voice === "text" ? node("div", { class: "prose" }) : thought();
  }

  draw() {
    if (this.voice === "text") return drawMarkdown(this.root, this.text);
    this.root.querySelector("bdi").textContent = this.text.slice(-160);
    this.root.lastChild.textContent = this.text;
  }
}

const VERBS = {
  read: ["Read", "Reading", "Read"], edit: ["Edit", "Editing", "Edited"], write: ["Write", "Writing", "Wrote"],
  delete: ["Delete", "Deleting", "Deleted"], move: ["Move", "Moving", "Moved"], search: ["Search", "Searching", "Searched"],
  execute: ["Run", "Running", "Ran"], fetch: ["Fetch", "Fetching", "Fetched"], think: ["Think", "Thinking", "Thought"],
  apply_patch: ["Patch", "Patching", "Patched"], todowrite: ["Plan", "Planning", "Planned"], question: ["Ask", "Asking", "Asked"],
  artifact: ["Show", "Showing", "Showed"],
};
const COLOURS = /\x1b\[[0-9;?]*[ -/]*[@-~]/g;
const isOver = ({ status }) => ["completed", "failed", "cancelled"].includes(status);

class ToolCard {
  constructor(tool, workspace) {
    Object.assign(this, { workspace, diffs: [], summary: node("summary"), body: node("div", { class: "body" }) });
    this.tool = { status: "pending", kind: "other", title: "", live_input: "", live_output: "", ...tool };
    this.root = node("details", { class: "card tool", toggle: () => this.drawBody() }, this.summary, this.body);
  }

  /** What an update names replaces; nothing comes after an end. */
  merge(change, time) {
    if (isOver(this.tool)) return;
    Object.assign(this.tool, change);
    if (this.tool.status !== "pending") this.tool.started ??= time;
    if (!isOver(this.tool)) return;
    this.tool.ended ??= time;
    say(`${this.verb} ${this.target}: ${this.tool.status}`);
  }

  append(field, text) {
    this.tool[field] += text;
    if (field === "live_output") this.root.open = true;
  }

  get verb() {
    const { kind, name, status, title, content } = this.tool;
    const isNew = kind === "edit" && content?.some((piece) => piece.type === "diff" && !piece.old);
    const forms = VERBS[isNew ? "write" : kind] ?? VERBS[name];
    return forms ? forms[{ running: 1, completed: 2, failed: 2 }[status] ?? 0] : name ?? (title || "Tool");
  }

  get target() {
    const { title, name, input } = this.tool;
    const { command, pattern, query, filePath, file_path, path, url } = input ?? {};
    const named = [command, pattern, query, filePath, file_path, path, url].find((value) => typeof value === "string");
    return (named ?? (title === name ? "" : title)).replace(`${this.workspace}/`, "");
  }

  draw() {
    const { kind, started, ended, content, output } = this.tool;
    const exit = output?.metadata?.exit ?? output?.exit_code;
    // A command that ran to its end and said no is over, but people want to see the no.
    const status = this.tool.status === "completed" && exit ? "failed" : this.tool.status;
    const diffs = (content ?? []).filter((piece) => piece.type === "diff");
    this.diffs = diffs.map((diff) => ({ ...diff, lines: difference(textOf(diff.old), textOf(diff.new)) }));
    const [plus, minus] = ["+", "−"].map((sign) => this.diffs.flatMap((diff) => diff.lines).filter((line) => line.sign === sign).length);
    if (status === "failed" || (plus + minus > 0 && plus + minus <= 40)) this.root.open = true;
    this.summary.replaceChildren(
      node("i", { class: `kind ${kind}` }), node("span", { class: "verb" }, this.verb),
      node("span", { class: "target mono", title: this.target }, this.target),
      node("span", { class: "outcome" },
        plus > 0 && node("span", { class: "plus" }, `+${plus}`), minus > 0 && node("span", { class: "minus" }, `−${minus}`),
        ended && kind === "execute" && node("span", {}, seconds(ended - started)),
        status === "failed" && node("span", { class: "failure" }, exit ? `exit ${exit}` : "failed"), status === "cancelled" && "cancelled",
        node("i", { class: status === "running" ? "spinner" : `status ${status}`, role: "img", "aria-label": status })));
    this.drawBody();
  }

  drawBody() {
    if (!this.root.open) return;
    const open = this.body.querySelector(".inner")?.open;
    const { input, live_input, error } = this.tool;
    const given = input && Object.keys(input).length ? JSON.stringify(input, null, 2) : live_input;
    this.body.replaceChildren(...[
      given && node("details", { class: "inner", open }, node("summary", {}, "Input"), node("pre", { tabindex: 0 }, given)),
      ...this.diffs.flatMap((diff) => [diffNode(diff.lines), wholeLink(diff.new)]), ...this.outputNodes(),
      error && node("p", { class: "failure" }, textOf(error)),
    ].filter(Boolean));
    this.body.querySelector(".output")?.scrollTo(0, Number.MAX_SAFE_INTEGER);
  }

  outputNodes() {
    const { content = [], output, live_output } = this.tool;
    const blocks = content.filter((piece) => piece.type === "content").map((piece) => piece.block);
    const said = blocks.map((block) => textOf(block.text) || block.uri || `[${block.type}]`).join("\n");
    const told = output?.output ?? output;
    const raw = typeof told === "string" ? told : told && !blobOf(told) ? JSON.stringify(told, null, 2) : "";
    const text = this.diffs.length ? "" : (said || live_output || raw).replace(COLOURS, "");
    return [text && node("pre", { class: "output", tabindex: 0 }, text), ...[...blocks.map((block) => block.text), output].map(wholeLink)];
  }
}

class Turn {
  constructor(id, content) {
    Object.assign(this, { id, content, last: null });
    this.root = node("section", { class: "turn" }, content.length > 0 && words(content));
  }

  place(part) {
    this.last?.root.classList.remove("live");
    this.last = part;
    this.root.append(part.root);
    return part;
  }

  prose(voice, part) {
    return this.last?.part === part && this.last.voice === voice ? this.last : this.place(new Prose(voice, part));
  }
}

/** What a person said. */
const words = (content) => node("div", { class: "user" }, content.map(({ type, text, name, uri }) =>
  (type === "text" ? textOf(text) : node("small", {}, `[${type}] ${name ?? uri ?? ""}`))));
const line = (text) => ({ root: node("p", { class: "line" }, node("span", {}, text)) });
const button = (label, click, kind) => node("button", { class: `button ${kind || ""}`, type: "button", click }, label);
const banner = (severity, title, text, action) =>
  ({ root: node("div", { class: `banner ${severity}` }, node("b", {}, title), text && node("p", {}, text), action) });

// ---- What waits for a person ----

const PERMISSIONS = { bash: "Run this command?", edit: "Change this file?", write: "Write this file?", webfetch: "Fetch this page?" };
const askNode = (title, ...rest) =>
  node("div", { class: "ask", role: "group", "aria-label": title }, node("h2", {}, node("i", { class: "dot asks" }), title), ...rest);

function permissionCard(ask, answer) {
  const always = ask.options.find((option) => option.kind === "allow_always");
  const primary = ask.options.find((option) => option.kind.startsWith("allow"));
  const choices = ask.options.map((option) => button(option.name, () => answer({ option: option.id }), option === primary && "primary"));
  return askNode(PERMISSIONS[ask.permission] ?? `Allow ${ask.permission}?`, node("pre", { tabindex: 0 }, ask.metadata?.command ?? ask.title),
    always && ask.patterns?.length > 0 && node("p", { class: "note" }, `“${always.name}” would cover ${ask.patterns.join(", ")}`),
    node("div", { class: "actions" }, choices));
}

function questionCard(ask, answer) {
  const fields = ask.questions.map((question, at) => node("fieldset", {}, node("legend", {}, question.question),
    question.options.map(({ label, description }) => node("label", {},
      node("input", { type: question.multiple ? "checkbox" : "radio", name: `${ask.request}-${at}`, value: label }),
      node("span", {}, label, " ", node("small", {}, description))))));
  const chosen = () => fields.map((field) => [...field.querySelectorAll(":checked")].map((input) => input.value));
  return askNode(ask.questions[0]?.header || "A question", fields, node("div", { class: "actions" },
    button("Answer", () => answer({ answers: chosen() }), "primary"), button("Dismiss", () => answer({ reject: true }))));
}

// ---- One session ----

const ENDS = {
  cancelled: "Stopped", interrupted: "Interrupted: the server stopped in the middle of this turn", refusal: "The agent refused to go on",
  max_tokens: "Stopped: the answer reached the model's limit", max_turn_requests: "Stopped: the turn reached its limit of steps",
};

/** How each fact changes what is shown. What is not here changes nothing on this page. */
const TELL = {
  session_changed: (talk, e) => Object.assign(talk.head, e),
  session_deleted: (talk) => talk.source.close(showLink("This session was deleted.")),
  prompt_queued: (talk, e) => talk.queued.set(e.turn, e),
  prompt_dropped: (talk, e) => talk.queued.delete(e.turn),
  prompt_steered: (talk, e) => talk.steer(e.turn),
  turn_started: (talk, e) => (talk.turn = talk.openTurn(e.turn, talk.queued.get(e.turn)?.content ?? [])),
  turn_ended: (talk, e) => talk.endTurn(e.stop),
  text_appended: (talk, e) => talk.append("text", e),
  thought_appended: (talk, e) => talk.append("thought", e),
  tool_changed: (talk, e, fact) => talk.tool(e.call).merge(e, fact.time),
  input_appended: (talk, e) => talk.tool(e.call).append("live_input", e.text),
  output_appended: (talk, e) => talk.tool(e.call).append("live_output", e.text),
  plan_set: (talk, e) => (talk.plan = e.entries),
  mode_set: (talk, e) => (talk.head.mode = e.mode),
  usage_set: (talk, e) => (talk.usage = e),
  artifact_saved: (talk, e) => talk.artifacts.set(e.id, e),
  permission_asked: (talk, e) => talk.ask(e, permissionCard),
  question_asked: (talk, e) => talk.ask(e, questionCard),
  permission_answered: (talk, e) => talk.answered(e),
  question_answered: (talk, e) => talk.answered(e),
  retry_scheduled: (talk, e) => talk.current.place(line(`${e.message}. Trying again in ${Math.ceil(e.delay_ms / 1000)} s`)),
  noticed: (talk, e) => talk.current.place(banner(e.severity, e.title, e.description)),
  failed: (talk, e) => talk.fail(e, talk.current),
  compaction_ended: (talk, e) => talk.current.place(line(e.error ?? "The context was summarised")),
  rewound: (talk) => talk.reload(),
  unrewound: (talk) => talk.reload(),
  message_hidden: (talk) => talk.reload(),
};

class Talk {
  constructor(id) {
    Object.assign(this, { path: `/sessions/${encodeURIComponent(id)}`, id, dirty: new Set() });
  }

  async load() {
    const { tip, messages, artifacts = [], position, before } = await call("GET", `${this.path}/view`);
    const { head, plan = [], usage, seq, queue = [], turn } = tip;
    Object.assign(this, { head, plan, usage, seq, turns: new Map(), tools: new Map(), asks: new Map() });
    this.queued = new Map(queue.map(({ prompt }) => [prompt.turn, prompt]));
    this.artifacts = new Map(artifacts.map((artifact) => [artifact.id, artifact]));
    $("talk").replaceChildren();
    messages.filter((message) => !message.hidden && !this.queued.has(message.turn)).forEach((message) => this.retell(message));
    this.offerEarlier(before, messages);
    this.turn = this.turns.get(turn?.id);
    if (turn?.failure) this.fail(turn.failure, this.turn);
    for (const ask of turn?.asks ?? []) this.ask(ask.permission ?? ask.question, ask.permission ? permissionCard : questionCard);
    this.schedule();
    this.follow(position);
  }

  /** A session is loaded from its end; what is before comes when it is asked for. */
  offerEarlier(before, messages) {
    if (!before) return;
    const offer = button("Show earlier", async () => {
      offer.disabled = true;
      try {
        await this.showEarlier(before, messages, offer);
      } catch (error) {
        offer.disabled = false;
        showLink(error.message);
      }
    }, "earlier");
    $("talk").prepend(offer);
  }

  async showEarlier(before, later, offer) {
    const page = await call("GET", `${this.path}/view?before=${before}`);
    if (!offer.isConnected) return;
    offer.remove();
    const [below, turns, messages] = [[...$("talk").children], this.turns, page.messages.filter((message) => !message.hidden)];
    // A long turn may be cut: the text that goes on below is whole there, and so are its calls.
    const [cut, grown] = [messages.at(-1)?.parts.at(-1), later.find((message) => message.continued)?.parts ?? []];
    const is = (voice) => cut?.[voice] && grown.some((part) => part[voice]?.part === cut[voice].part);
    if (is("text") || is("thought")) messages.at(-1).parts.pop();
    this.turns = new Map();
    messages.forEach((message) => this.retell(message));
    this.turns = new Map([...this.turns, ...turns]);
    $("talk").append(...below);
    this.offerEarlier(page.before, page.messages);
    this.schedule();
  }

  retell({ turn: id, role, parts, failure, stop }) {
    const [known, content] = [this.turns.get(id), parts.map((part) => part.content).filter(Boolean)];
    const turn = known ?? this.openTurn(id, content);
    if (known && role === "user") turn.place({ root: words(content) });
    for (const { tool, text, thought } of role === "agent" ? parts : []) {
      if (tool) this.tool(tool.call, turn, tool);
      const said = text ?? thought;
      if (said) this.dirty.add(Object.assign(turn.prose(text ? "text" : "thought", said.part), { text: said.text }));
    }
    if (failure) this.fail(failure, turn);
    if (ENDS[stop]) turn.place(line(ENDS[stop]));
  }

  /** A prompt that waited is part of the open turn now. */
  steer(id) {
    const content = this.queued.get(id)?.content ?? [];
    this.queued.delete(id);
    this.current.place({ root: words(content) });
  }

  /** The browser comes back by itself and says where it was; only an answer that is no stream ends it. */
  follow(position) {
    const source = (this.source = new EventSource(`/v1${this.path}/events?after=${position}`));
    source.onopen = () => showLink("");
    source.onmessage = (event) => this.hear(JSON.parse(event.data));
    source.onerror = () => {
      showLink(`Reconnecting… last event ${number(this.seq)}`);
      if (source.readyState === EventSource.CLOSED) this.reload();
    };
  }

  /** Starts over from a snapshot: after a 410, a gap, or what cannot be folded in place. */
  reload() {
    this.source?.close();
    this.load().catch((error) => {
      if (error.status) return showLink(error.message);
      showLink("The server cannot be reached. Trying again…");
      setTimeout(() => this.reload(), 1000);
    });
  }

  hear(fact) {
    if (fact.seq <= this.seq) return;
    if (fact.seq !== this.seq + 1) return this.reload();
    this.seq = fact.seq;
    TELL[fact.type]?.(this, fact.data, fact);
    this.schedule();
  }

  /** The open turn, else the last one: where things go that belong to none. */
  get current() {
    return this.turn ?? [...this.turns.values()].at(-1) ?? this.openTurn("", []);
  }

  openTurn(id, content) {
    const turn = new Turn(id, content);
    this.turns.set(id, turn);
    this.queued.delete(id);
    $("talk").append(turn.root);
    return turn;
  }

  endTurn(stop) {
    this.turn?.last?.root.classList.remove("live");
    if (ENDS[stop]) this.current.place(line(ENDS[stop]));
    say(ENDS[stop] ?? (stop === "failed" ? "The turn failed" : "The turn is done"));
    this.turn = null;
  }

  append(voice, { part, text }) {
    const prose = this.current.prose(voice, part);
    prose.text += text;
    prose.root.classList.add("live");
    this.dirty.add(prose);
  }

  /** The card of a call, made on first sight. Agents may use the name of a call again in another turn. */
  tool(call, turn = this.current, tool = { call }) {
    const name = `${turn.id} ${call}`;
    const card = this.tools.get(name) ?? turn.place(new ToolCard(tool, this.head.workspace));
    this.tools.set(name, card);
    this.dirty.add(card);
    return card;
  }

  ask(ask, cardOf) {
    const enable = (isEnabled) => card.querySelectorAll("button").forEach((button) => (button.disabled = !isEnabled));
    const card = cardOf(ask, (given) => {
      enable(false);
      call("POST", `${this.path}/answers/${encodeURIComponent(ask.request)}`, given).catch((error) => {
        card.append(node("p", { class: "failure", role: "alert" }, error.message));
        enable(true);
      });
    });
    this.current.place({ root: card });
    this.asks.set(ask.request, { ask, card });
    $("asked").textContent = `The agent asks: ${ask.title ?? ask.questions[0]?.question}`;
  }

  answered({ request, option, answers, by }) {
    const { ask, card } = this.asks.get(request) ?? {};
    this.asks.delete(request);
    const chosen = ask?.options?.find(({ id }) => id === option)?.name ?? answers?.flat().join(", ");
    card?.replaceWith(line(chosen ? `${chosen}, by ${by}` : `Not answered (${by})`).root);
    $("asked").textContent = "";
  }

  fail({ message, code, details, retryable }, turn) {
    const again = () => attempt(call("POST", `${this.path}/prompt`, { content: turn.content }));
    const text = [code && `Code ${code}`, details && !blobOf(details) && JSON.stringify(details, null, 2)].filter(Boolean).join("\n");
    turn.place(banner("error", message, text, retryable && turn.content.length > 0 && button("Send the prompt again", again)));
  }

  /** Any number of facts between two frames of the screen is one drawing. */
  schedule() {
    this.drawing ??= requestAnimationFrame(() => {
      this.drawing = null;
      this.dirty.forEach((part) => part.draw());
      this.dirty.clear();
      drawFrame(this);
      keepUp();
    });
  }
}

// ---- Around the conversation ----

const named = /^\/s\/([^/]+)$/.exec(location.pathname)?.[1];
const talk = named ? new Talk(decodeURIComponent(named)) : null;
let isFollowing = true;
const keepUp = () => isFollowing && ($("scroll").scrollTop = $("scroll").scrollHeight);

const say = (sentence) => ($("said").textContent = sentence);
const attempt = (calling) => calling.catch((error) => showProblem(error.message));
const showProblem = (text) => Object.assign($("problem"), { textContent: text, hidden: !text });

/** The bar under the title: silent while all is well. */
const showLink = (text) => Object.assign($("link"), { textContent: text, hidden: !text });

/** Draws only what changed, so that focus stays where it is. */
function fill(name, content, draw) {
  const now = JSON.stringify(content);
  if ($(name).content === now) return;
  $(name).content = now;
  $(name).replaceChildren(...[draw(content)].flat().filter(Boolean));
}

const stateOf = (head) => (head.waiting ? "asks" : head.busy ? "works" : "idle");
const STATES = { asks: "Asks you", works: "Working", idle: "Idle" };

function drawFrame({ head, plan, usage, queued, artifacts, asks, turn }) {
  Object.assign(head, { busy: Boolean(turn), waiting: asks.size });
  const state = stateOf(head);
  document.title = `${asks.size ? `(${asks.size}) ` : ""}${head.title} · Tolka`;
  $("title").textContent = head.title;
  if ($("state").className !== `chip ${state}`) refreshList();
  $("state").className = `chip ${state}`;
  fill("state", state, () => [node("i", { class: `dot ${state}` }), STATES[state]]);
  fill("figures", [[head.agent, head.mode], usage], () => [node("span", {}, [head.agent, head.mode].filter(Boolean).join(" · ")),
    usage?.size && node("span", { title: "Tokens in the context" }, `${number(usage.used)} / ${number(usage.size)}`),
    usage?.cost && node("b", {}, `${usage.cost.amount.toFixed(2)} ${usage.cost.currency}`)]);
  fill("queue", turn ? [...queued.values()] : [], (waiting) => waiting.map(queuedNode));
  fill("artifacts", [...artifacts.values()], (saved) => saved.map(({ name, kind, path, size }) =>
    node("li", {}, node("b", {}, name), node("small", {}, `${kind.replace("_", " ")} · ${path} · ${bytes(size)}`))));
  fill("plan", plan, planNodes);
  $("plan").hidden = !plan.length;
  Object.assign($("stop"), { hidden: !turn, disabled: false });
  $("prompt").placeholder = turn ? "Add instructions. They wait until this turn ends." : "What should the agent do?";
}

function queuedNode({ turn, content }) {
  const drop = () => attempt(call("DELETE", `${talk.path}/queue/${encodeURIComponent(turn)}`));
  return node("li", {}, node("span", {}, "Next: ", content.map((block) => textOf(block.text)).join(" ")), node("button", { class: "plain", type: "button", click: drop }, "Drop"));
}

function planNodes(plan) {
  const [now, next, done] = ["in_progress", "pending", "completed"].map((status) => plan.filter((entry) => entry.status === status));
  const mark = (status) => node("i", { class: `status ${status}`, role: "img", "aria-label": status.replace("_", " ") });
  return [
    node("summary", {}, node("span", { class: "segments" }, plan.slice(0, 12).map(({ status }) => node("i", { class: status }))),
      node("b", {}, [...now, ...next][0]?.content ?? "All done"), node("em", {}, `${done.length} of ${plan.length}`)),
    node("ol", {}, plan.map(({ status, content }) => node("li", { class: status }, mark(status), content))),
  ];
}

// ---- The list ----

/** Pages of sessions that are shown. */
let pages = 1;

/** The first sessions of all, and whether there are more; nothing while the server cannot be reached. */
async function listed(wanted) {
  // By id: one that changes between two pages comes in both.
  const sessions = new Map();
  let next = null;
  for (let page = 0; page < wanted && (next || !page); page++) {
    const answer = await call("GET", `/sessions?limit=200${next ? `&after=${encodeURIComponent(next)}` : ""}`).catch(() => null);
    if (!answer) return {};
    answer.sessions.forEach((head) => sessions.set(head.id, head));
    next = answer.next;
  }
  return { sessions: [...sessions.values()], hasMore: Boolean(next) };
}

async function refreshList() {
  const wanted = pages;
  const { sessions, hasMore } = await listed(wanted);
  // More were asked for meanwhile: they come, and must not be taken away again.
  if (wanted !== pages) return;
  const midnight = new Date().setHours(0, 0, 0, 0) * 1000;
  const groupOf = (head) => ({ asks: "Needs you", works: "Working" })[stateOf(head)] ?? (head.updated >= midnight ? "Today" : "Earlier");
  const rows = sessions?.filter((head) => !head.archived).sort((a, b) => b.updated - a.updated).map((head) =>
    ({ id: head.id, title: head.title, workspace: head.workspace, state: stateOf(head), group: groupOf(head), old: age(head.updated) }));
  const focused = document.activeElement?.closest("#sessions a, #sessions button")?.id;
  if (rows) fill("sessions", { rows, hasMore }, ({ rows, hasMore }) => [...groupNodes(rows), hasMore && moreNode()]);
  if (focused) $(focused)?.focus();
}

function moreNode() {
  const show = () => {
    more.disabled = true;
    pages++;
    refreshList();
  };
  const more = node("button", { class: "button more", id: "more", type: "button", click: show }, "Show more");
  return more;
}

function groupNodes(rows) {
  return ["Needs you", "Working", "Today", "Earlier"].flatMap((name) => {
    const here = rows.filter(({ group }) => group === name);
    return here.length ? [node("p", { class: "group" }, name, node("span", {}, String(here.length))), ...here.map(rowNode)] : [];
  });
}

function rowNode({ id, title, workspace, state, old }) {
  return node("a", { class: "row", id: `row-${id}`, href: `/s/${encodeURIComponent(id)}`, "aria-current": id === talk?.id && "page" },
    node("i", { class: `dot ${state}`, role: "img", "aria-label": STATES[state] }), node("b", { title }, title), node("time", {}, old),
    node("small", { title: workspace }, workspace.split("/").at(-1)));
}

// ---- Prompts ----

/** One name per prompt, kept while sending fails: sent twice, it is still one turn. */
let key = null;
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

async function send() {
  const text = $("prompt").value;
  if (!text.trim() || $("send").disabled) return;
  $("send").disabled = true;
  showProblem("");
  try {
    const title = text.trim().split("\n")[0].slice(0, 80);
    const { id } = talk ?? (await call("POST", "/sessions", { title, agent: $("agent").value || null, workspace: $("folder").value || null }));
    await call("POST", `/sessions/${encodeURIComponent(id)}/prompt`, { text, key: (key ??= newKey()) });
    [key, $("prompt").value, isFollowing] = [null, "", true];
    if (!talk) location.assign(`/s/${encodeURIComponent(id)}`);
  } catch (error) {
    showProblem(`Not sent. ${error.message}`);
  }
  $("send").disabled = false;
}

/** What commands run in, and what that cannot stop. */
function confined(sandbox) {
  if (!sandbox) return [];
  const cannot = sandbox.cannot_stop.map((what) => node("li", {}, what));
  const summary = node("summary", {}, `Commands: ${sandbox.level}, network ${sandbox.network}`);
  return [node("details", {}, summary, "It cannot stop:", node("ul", {}, ...cannot))];
}

async function introduce() {
  const about = await call("GET", "").catch((error) => ({ problem: error.message }));
  $("about").replaceChildren(about.problem ?? `Tolka ${about.version} · ${location.host}`, ...confined(about.sandbox));
  $("agent").replaceChildren(...(about.agents ?? []).map((name) => node("option", {}, name)));
  $("folder").value = about.workspace ?? "";
}

let lastTop = 0;
$("scroll").addEventListener("scroll", () => {
  const { scrollTop, scrollHeight, clientHeight } = $("scroll");
  if (scrollHeight - scrollTop - clientHeight < 40) isFollowing = true;
  else if (scrollTop < lastTop) isFollowing = false;
  lastTop = scrollTop;
  $("jump").hidden = isFollowing;
});
new ResizeObserver(keepUp).observe($("scroll"));
$("jump").addEventListener("click", () => keepUp((isFollowing = true)));
$("stop").addEventListener("click", () => attempt(call("POST", `${talk.path}/cancel`, {}), ($("stop").disabled = true)));
$("composer").addEventListener("submit", (event) => (event.preventDefault(), send()));
$("prompt").addEventListener("input", () => (key = null));
$("prompt").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});

document.body.dataset.page = talk ? "session" : "home";
// Where there is no keyboard but the one on the screen, that would cover half of the page.
if (matchMedia("(pointer: fine)").matches) $("prompt").focus();
introduce();
refreshList();
setInterval(() => document.hidden || refreshList(), 5000);
talk?.reload();
