// Makes a session, prompts it, and prints what the agent does. When the connection breaks it goes on where it was.
//
//   node examples/follow.mjs "add a test for the parser"
//   node examples/follow.mjs --yes "add a test"       answers every permission with yes, else with no

const base = process.env.TOLKA ?? "http://127.0.0.1:4096";
const isYes = process.argv.includes("--yes");
const text = process.argv.slice(2).filter((word) => word !== "--yes").join(" ") || "Show me what you can do.";
const headers = { "content-type": "application/json" };
if (process.env.TOLKA_TOKEN) headers.authorization = `Bearer ${process.env.TOLKA_TOKEN}`;

async function post(path, body) {
  const response = await fetch(base + path, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = response.status === 204 ? null : await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

/** Facts after a position, one by one, for ever. A position is all that a reader has to remember. */
async function* facts(session, position) {
  for (;;) {
    try {
      const response = await fetch(`${base}/v1/sessions/${session}/events`, { headers: { ...headers, "last-event-id": position } });
      if (!response.ok) throw new Error((await response.json()).error.message, { cause: response.status });
      let rest = "";
      for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
        const events = (rest + piece).split("\n\n");
        rest = events.pop();
        for (const event of events) {
          const data = /^data: (.*)$/m.exec(event)?.[1];
          if (!data) continue;
          position = /^id: (.*)$/m.exec(event)[1];
          yield JSON.parse(data);
        }
      }
    } catch (error) {
      if (error.cause >= 400) throw error;
    }
    console.error(`\n(lost the server; going on after ${position})`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

const { id } = await post("/v1/sessions", { title: text.slice(0, 80) });
const { turn, position } = await post(`/v1/sessions/${id}/prompt`, { text });
const titles = new Map(); // A change of a call tells only what changed.
for await (const { type, data } of facts(id, position)) {
  if (type === "text_appended") process.stdout.write(data.text);
  if (type === "tool_changed" && data.title) titles.set(data.call, data.title);
  if (type === "tool_changed" && data.status) console.log(`\n[${data.status}] ${titles.get(data.call)}`);
  if (type === "permission_asked") {
    const option = data.options.find(({ kind }) => kind === (isYes ? "allow_once" : "reject_once"));
    console.log(`\n[asked] ${data.title}: ${option.name}`);
    await post(`/v1/sessions/${id}/answers/${data.request}`, { option: option.id });
  }
  if (type === "turn_ended" && data.turn === turn) {
    console.log(`\n[${data.stop}] ${base}/s/${id}`);
    process.exit(data.stop === "end_turn" ? 0 : 1);
  }
}
