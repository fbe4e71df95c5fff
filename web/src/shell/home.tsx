import { ArrowUp, PanelLeft } from "lucide-react";
import { useState } from "react";
import { folder, messageOf } from "../ui/words";
import { type AgentAbout, wire } from "../wire";
import { go } from "./route";
import { type SessionList, sessions } from "./sessions";

const EXAMPLES = ["Explain what this repository does", "Find a bug and mend it", "Write tests for what has none"];

/** A new session: one field, and what it would work with. */
export function Home({ agents, list, showList }: { agents: AgentAbout[]; list: SessionList; showList: (() => void) | null }) {
  const [text, setText] = useState("");
  const [name, setName] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isStarting, setStarting] = useState(false);
  const agent = agents.find((one) => one.name === name) ?? agents[0];
  const model = agent?.models.find(({ provider, id }) => provider === agent.model?.provider && id === agent.model.id);
  const isDemo = agent?.name === "demo";
  const start = async (words: string) => {
    if (!words.trim() || isStarting) return;
    setStarting(true);
    setProblem(null);
    try {
      const made = await wire.create(agent ? { agent: agent.name } : {});
      sessions.put(made);
      await wire.prompt(made.id, { content: [{ type: "text", text: words.trim() }] });
      go({ name: "session", id: made.id });
    } catch (error) {
      setProblem(messageOf(error));
      setStarting(false);
    }
  };
  const folders = [...new Set(list.sessions.map(({ workspace }) => workspace))].slice(0, 3);
  return (
    <main id="main" className="main">
      <header className="bar">
        {showList && <button type="button" className="ib" aria-label="Show the list" onClick={showList}><PanelLeft aria-hidden="true" /></button>}
        <h1>New session</h1>
      </header>
      <div className="home">
        <div className="col">
          <p className="hello">What should the agent do?</p>
          <form
            className="comp"
            onSubmit={(event) => {
              event.preventDefault();
              void start(text);
            }}
          >
            <textarea
              rows={3} value={text} autoFocus aria-label="Message" placeholder="Describe a task"
              onChange={(event) => setText(event.target.value)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
                event.preventDefault();
                void start(text);
              }}
            />
            <div className="tb">
              {agents.length > 1
                ? <label className="sel"><select aria-label="Agent" value={agent?.name} onChange={(event) => setName(event.target.value)}>{agents.map((one) => <option key={one.name}>{one.name}</option>)}</select></label>
                : agent && <span className="sel">{agent.name}</span>}
              {model && <span className="sel">{model.name}</span>}
              {problem && <span className="problem" role="alert">{problem}</span>}
              <span className="sp" />
              <button type="submit" className="send" disabled={!text.trim() || isStarting} aria-label="Start"><ArrowUp aria-hidden="true" /></button>
            </div>
          </form>
          {isDemo && (
            <p className="hint">
              This is the demo: a fixed script in the place of a model, with real tools and real files. For a real one set <code>ANTHROPIC_API_KEY</code>,{" "}
              <code>OPENAI_API_KEY</code> or another, or start Ollama, and start Tolka again.
            </p>
          )}
          <ul className="examples">
            {(isDemo ? ["Make me something"] : EXAMPLES).map((example) => (
              <li key={example}><button type="button" className="btn" disabled={isStarting} onClick={() => void start(example)}>{example}</button></li>
            ))}
          </ul>
          {folders.length > 0 && <p className="hint">Worked in lately: {folders.map(folder).join(", ")}</p>}
        </div>
      </div>
    </main>
  );
}
