//! A session in which everything happens that a document has a word for.

use serde_json::{Value, json};
use tolka_facts::event::{
    ArtifactKind, ArtifactSaved, BranchChanged, Command, CommandsSet, CompactionEnded, CompactionStarted, Cost, Failed,
    FailureKind, FileChanged, FileOperation, Finish, InstanceDisposed, MessageHidden, ModeSet, Model, Noticed,
    OptionKind, OutputAppended, PermissionAnswered, PermissionAsked, PermissionOption, PlanEntry, PlanSet, PlanStatus,
    Priority, PromptQueued, PromptSteered, Question, QuestionAnswered, QuestionAsked, QuestionOption, RetryScheduled,
    SessionChanged, SessionCreated, Severity, StepEnded, StepStarted, Stop, TextAppended, ThoughtAppended, ToolChanged,
    TurnEnded, TurnStarted, UpdateFound, Usage, UsageSet, VersionChanged,
};
use tolka_facts::{
    ArtifactId, Block, Body, CallId, Draft, Event, Fact, Json, Location, MessageId, PartId, RequestId, SessionId, Time,
    ToolContent, ToolKind, ToolStatus, TurnId,
};

const BEGAN: u64 = 4_102_444_800_000;

/// The facts of a session, and those of the server beside it.
pub(crate) fn story() -> (Vec<Fact>, Vec<Fact>) {
    let mut story = Story { session: SessionId::from("ses_showcase"), began: BEGAN, facts: Vec::new(), turns: 0 };
    story.tell(SessionCreated {
        workspace: "/home/ada/project".into(),
        agent: "tolka".into(),
        title: "New session".into(),
        mode: None,
        model: Some(model()),
        parent: None,
    });
    story.whole_turn();
    story.turn_with_hindrances();
    for stop in [Stop::MaxTokens, Stop::MaxTurnRequests, Stop::Refusal, Stop::Cancelled, Stop::Interrupted] {
        story.short_turn(stop);
    }
    for failure in failures() {
        story.failed_turn(failure);
    }
    story.tell(MessageHidden { message: MessageId::from("msg_3") });
    // Two sessions that tell at the same moment would have events of the same name on a feed.
    let began = BEGAN + 3_600_000;
    let mut beside = Story { session: SessionId::server(), began, facts: Vec::new(), turns: 0 };
    beside.tell(VersionChanged { version: "0.2.0".into() });
    beside.tell(UpdateFound { version: "0.3.0".into() });
    beside.tell(BranchChanged { directory: "/home/ada/project".into(), branch: Some("main".into()) });
    beside.tell(InstanceDisposed { directory: "/home/ada/project".into() });
    (story.facts, beside.facts)
}

struct Story {
    session: SessionId,
    began: u64,
    facts: Vec<Fact>,
    turns: u64,
}

impl Story {
    fn tell(&mut self, event: impl Into<Event>) {
        let seq = self.facts.len() as u64 + 1;
        let time = Time::from_millis(self.began + seq * 1000);
        self.facts.push(Draft::agent(event).stamp(self.session.clone(), seq, time));
    }

    fn start(&mut self, content: Vec<Block>) -> TurnId {
        self.turns += 1;
        let turn = TurnId::from(format!("trn_{}", self.turns));
        let message = MessageId::from(format!("msg_{}", self.turns));
        let key = None;
        let (agent, context) = (None, None);
        let queued = PromptQueued {
            turn: turn.clone(),
            message,
            content,
            key,
            agent,
            model: Some(model()),
            context,
            steers: None,
        };
        self.tell(queued);
        let checkpoint = Some("4b825dc642cb6eb9a060e54bf8d69288fbee4904".into());
        self.tell(TurnStarted { turn: turn.clone(), checkpoint });
        turn
    }

    fn end(&mut self, turn: TurnId, stop: Stop) {
        let usage = Some(Usage { input: 1000, output: 500, reasoning: 20, cache_read: 300, cache_write: 4 });
        self.tell(TurnEnded { turn, stop, usage, cost: Some(0.01), meta: None });
    }

    fn whole_turn(&mut self) {
        let turn = self.start(vec![
            Block::text("Create a TODO app with 3 files"),
            Block::Link {
                uri: "file:///home/ada/project/notes.txt".into(),
                name: "notes.txt".into(),
                title: None,
                description: None,
                mime: Some("text/plain".into()),
                size: Some(12),
            },
            Block::Image { data: "aGVsbG8=".into(), mime: "image/png".into(), uri: None },
        ]);
        let step = MessageId::from("msg_1a");
        self.tell(StepStarted { message: step.clone(), model: Some(model()) });
        for text in ["Planning ", "the app."] {
            self.tell(ThoughtAppended { part: PartId::from("prt_1"), text: text.into() });
        }
        for text in ["I'll create ", "the app."] {
            self.tell(TextAppended { part: PartId::from("prt_2"), text: text.into() });
        }
        self.tell(PlanSet { entries: plan() });
        self.tell(ModeSet { mode: "implement".into() });
        let commands = vec![Command { name: "init".into(), description: "Look around".into(), hint: None }];
        self.tell(CommandsSet { commands });
        self.tell(UsageSet {
            used: 1500,
            size: 200_000,
            cost: Some(Cost { amount: 0.02, currency: "USD".into() }),
            subagents: None,
        });
        let title = "Slow model".to_owned();
        self.tell(Noticed { severity: Severity::Warning, title, description: Some("It may take a while.".into()) });
        self.tools();
        self.asks();
        self.artifacts();
        self.tell(CompactionStarted { id: "cmp_1".into(), automatic: true });
        self.tell(CompactionEnded {
            id: "cmp_1".into(),
            summary: Some("An app was begun.".into()),
            error: None,
            keeps: None,
            usage: None,
            cost: None,
        });
        self.tell(CompactionStarted { id: "cmp_2".into(), automatic: false });
        self.tell(CompactionEnded {
            id: "cmp_2".into(),
            summary: None,
            error: Some("The model was busy.".into()),
            keeps: None,
            usage: None,
            cost: None,
        });
        let usage = Some(Usage { input: 1000, output: 500, ..Usage::default() });
        self.tell(StepEnded { message: step, finish: Finish::Stop, usage, cost: Some(0.01), kept: None });
        let title = Some("A TODO app".to_owned());
        self.tell(SessionChanged { title, mode: None, model: None, agent: None, archived: None });
        self.end(turn, Stop::EndTurn);
    }

    /// The model is overloaded, then its answer is cut off and asked for again; a command changes files; and somebody
    /// says something more while it runs.
    fn turn_with_hindrances(&mut self) {
        let turn = self.start(vec![Block::text("Format it.")]);
        let retry =
            |attempt, message: &str, code| RetryScheduled { attempt, delay_ms: 2500, message: message.into(), code };
        let cut = MessageId::from("msg_2a");
        self.tell(StepStarted { message: cut.clone(), model: Some(model()) });
        self.tell(retry(1, "overloaded", Some(529)));
        self.tell(ThoughtAppended { part: PartId::from("prt_2a"), text: "A formatter".into() });
        self.tell(TextAppended { part: PartId::from("prt_2b"), text: "I'll ru".into() });
        self.tell(StepEnded { message: cut, finish: Finish::Error, usage: None, cost: None, kept: None });
        self.tell(retry(1, "the answer was cut off", None));
        let again = MessageId::from("msg_2b");
        self.tell(StepStarted { message: again.clone(), model: Some(model()) });
        self.tell(TextAppended { part: PartId::from("prt_2c"), text: "I'll run it.".into() });
        let call = self.formatter();
        let later = TurnId::from("trn_2s");
        self.tell(PromptQueued {
            turn: later.clone(),
            message: MessageId::from("msg_2s"),
            content: vec![Block::text("Only src, please.")],
            key: None,
            agent: None,
            model: Some(model()),
            context: None,
            steers: Some(turn.clone()),
        });
        let output = json!({ "output": "formatted\n", "metadata": { "output": "formatted\n", "exit": 0 } });
        self.tell(ToolChanged {
            status: Some(ToolStatus::Completed),
            output: Some(Json::from(output)),
            ..ToolChanged::of(call)
        });
        let usage = Some(Usage { input: 1200, output: 40, ..Usage::default() });
        self.tell(UsageSet { used: 1240, size: 200_000, cost: None, subagents: None });
        self.tell(StepEnded { message: again, finish: Finish::ToolCalls, usage, cost: Some(0.01), kept: None });
        self.tell(PromptSteered { turn: later, into: turn.clone() });
        let last = MessageId::from("msg_2c");
        self.tell(StepStarted { message: last.clone(), model: Some(model()) });
        self.tell(TextAppended { part: PartId::from("prt_2d"), text: "Nothing else was touched.".into() });
        self.tell(StepEnded { message: last, finish: Finish::Stop, usage, cost: Some(0.01), kept: None });
        self.end(turn, Stop::EndTurn);
    }

    /// It runs, and has changed two files.
    fn formatter(&mut self) -> CallId {
        let call = CallId::from("call_format");
        self.tell(ToolChanged {
            name: Some("bash".into()),
            kind: Some(ToolKind::Execute),
            title: Some("cargo fmt".into()),
            status: Some(ToolStatus::Running),
            input: Some(Json::from(json!({ "command": "cargo fmt", "description": "Format the code" }))),
            ..ToolChanged::of(call.clone())
        });
        self.tell(OutputAppended { call: call.clone(), text: "formatted\n".into() });
        for (path, operation, added, removed, diff) in [
            ("src/lib.rs", FileOperation::Update, 1, 1, "@@ -1 +1 @@\n-fn  a(){}\n+fn a() {}\n"),
            ("src/fmt.log", FileOperation::Create, 1, 0, "@@ -0,0 +1 @@\n+formatted\n"),
        ] {
            let (before, after) = (None, None);
            let (diff, call) = (Some(Body::from(diff)), Some(call.clone()));
            self.tell(FileChanged { path: path.into(), operation, before, after, added, removed, diff, call });
        }
        call
    }

    fn tools(&mut self) {
        for call in calls() {
            self.call(call);
        }
        let blocks = vec![
            Block::text("a picture, a sound, a file and a link"),
            Block::Image { data: "aW1hZ2U=".into(), mime: "image/png".into(), uri: None },
            Block::Audio { data: "c291bmQ=".into(), mime: "audio/wav".into() },
            Block::Resource {
                uri: "file:///home/ada/project/a.txt".into(),
                mime: Some("text/plain".into()),
                text: Some("contents".into()),
                blob: None,
            },
            Block::Link {
                uri: "file:///home/ada/project/b.txt".into(),
                name: "b.txt".into(),
                title: None,
                description: None,
                mime: Some("text/plain".into()),
                size: Some(1024),
            },
        ];
        let content = blocks.into_iter().map(|block| ToolContent::Content { block }).collect();
        self.call(Call { content, ..Call::new("screenshot", ToolKind::Other, json!({ "url": "http://localhost" })) });
        let changed = |path: &str, operation, diff: Option<&str>| FileChanged {
            path: path.into(),
            operation,
            before: None,
            after: None,
            added: 1,
            removed: 1,
            call: None,
            diff: diff.map(Body::from),
        };
        let diff = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1 +1 @@\n-one\n+two\n";
        self.tell(changed("src/lib.rs", FileOperation::Update, Some(diff)));
        self.tell(changed("src/old.rs", FileOperation::Delete, None));
    }

    fn call(&mut self, call: Call) {
        let id = CallId::from(format!("call_{}", self.facts.len()));
        self.tell(ToolChanged {
            name: Some(call.name.into()),
            kind: Some(call.kind),
            title: Some(call.name.into()),
            status: Some(ToolStatus::Pending),
            ..ToolChanged::of(id.clone())
        });
        let path = call.input["filePath"].as_str().map(str::to_owned);
        self.tell(ToolChanged {
            title: call.title.map(str::to_owned).or_else(|| path.clone()),
            status: Some(ToolStatus::Running),
            input: Some(Json::from(call.input)),
            locations: path.map(|path| vec![Location { path, line: None }]),
            ..ToolChanged::of(id.clone())
        });
        if call.kind == ToolKind::Execute {
            self.tell(OutputAppended { call: id.clone(), text: "src\n".into() });
        }
        let failed = call.error.is_some();
        self.tell(ToolChanged {
            status: Some(if failed { ToolStatus::Failed } else { ToolStatus::Completed }),
            output: call.output.map(Json::from),
            content: (!call.content.is_empty()).then_some(call.content),
            error: call.error.map(Body::from),
            ..ToolChanged::of(id)
        });
    }

    fn asks(&mut self) {
        let call = CallId::from("call_asked");
        self.tell(ToolChanged {
            name: Some("bash".into()),
            kind: Some(ToolKind::Execute),
            title: Some("rm test.py".into()),
            status: Some(ToolStatus::Pending),
            input: Some(Json::from(json!({ "command": "rm test.py", "description": "Delete the test" }))),
            ..ToolChanged::of(call.clone())
        });
        let option = |id: &str, name: &str, kind| PermissionOption { id: id.into(), name: name.into(), kind };
        let request = RequestId::from("per_1");
        self.tell(PermissionAsked {
            request: request.clone(),
            call: Some(call.clone()),
            permission: "bash".into(),
            title: "Delete test.py?".into(),
            patterns: vec!["rm test.py".into()],
            metadata: None,
            options: vec![
                option("once", "Allow once", OptionKind::AllowOnce),
                option("always", "Always allow", OptionKind::AllowAlways),
                option("reject", "Reject", OptionKind::RejectOnce),
                option("never", "Never allow", OptionKind::RejectAlways),
            ],
        });
        let (option, by) = (Some("reject".into()), "local".to_owned());
        self.tell(PermissionAnswered { request, option, by: by.clone(), reason: Some("Keep the test.".into()) });
        let error = Some("Error: The user rejected permission to use this specific tool call.".into());
        self.tell(ToolChanged { status: Some(ToolStatus::Failed), error, ..ToolChanged::of(call) });
        let choice = |label: &str| QuestionOption { label: label.into(), description: format!("Use {label}.") };
        let request = RequestId::from("que_1");
        self.tell(QuestionAsked {
            request: request.clone(),
            call: None,
            questions: vec![Question {
                question: "Which one?".into(),
                header: "Library".into(),
                options: vec![choice("React"), choice("none")],
                multiple: false,
            }],
        });
        self.tell(QuestionAnswered { request, answers: Some(vec![vec!["none".into()]]), by });
    }

    fn artifacts(&mut self) {
        let kinds = [
            (ArtifactKind::WebApp, "outputs/web/", "text/html"),
            (ArtifactKind::NextjsApp, "outputs/next/", "text/html"),
            (ArtifactKind::Markdown, "outputs/notes.md", "text/markdown"),
            (ArtifactKind::Image, "outputs/chart.png", "image/png"),
            (ArtifactKind::Spreadsheet, "outputs/table.csv", "text/csv"),
            (
                ArtifactKind::Spreadsheet,
                "outputs/table.xlsx",
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            ),
            (
                ArtifactKind::Presentation,
                "outputs/talk.pptx",
                "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            ),
            (
                ArtifactKind::Document,
                "outputs/letter.docx",
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            ),
            (ArtifactKind::Pdf, "outputs/paper.pdf", "application/pdf"),
            (ArtifactKind::Code, "outputs/main.py", "text/x-python"),
            (ArtifactKind::File, "outputs/data.bin", "application/octet-stream"),
        ];
        for (n, (kind, path, mime)) in (1..).zip(kinds) {
            self.tell(ArtifactSaved {
                id: ArtifactId::from(format!("550e8400-e29b-41d4-a716-4466554400{n:02}")),
                kind,
                name: path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned(),
                path: path.into(),
                mime: mime.into(),
                size: 4096,
                preview: (kind == ArtifactKind::WebApp).then(|| "/api/build/sessions/ses_showcase/preview".into()),
            });
        }
    }

    fn short_turn(&mut self, stop: Stop) {
        let turn = self.start(vec![Block::text("Go on.")]);
        let step = MessageId::from(format!("msg_{}a", self.turns));
        self.tell(StepStarted { message: step.clone(), model: Some(model()) });
        let part = PartId::from(format!("prt_{}t", self.turns));
        self.tell(TextAppended { part, text: "I go on".into() });
        if stop == Stop::Cancelled {
            let call = CallId::from("call_cancelled");
            self.tell(ToolChanged {
                name: Some("bash".into()),
                status: Some(ToolStatus::Running),
                input: Some(Json::from(json!({ "command": "sleep 100" }))),
                ..ToolChanged::of(call.clone())
            });
            self.tell(ToolChanged { status: Some(ToolStatus::Cancelled), ..ToolChanged::of(call) });
        }
        let finish = match stop {
            Stop::MaxTokens => Finish::Length,
            Stop::Cancelled => Finish::Cancelled,
            Stop::Interrupted => Finish::Error,
            _ => Finish::Stop,
        };
        self.tell(StepEnded { message: step, finish, usage: None, cost: None, kept: None });
        self.end(turn, stop);
    }

    fn failed_turn(&mut self, failure: Failed) {
        let turn = self.start(vec![Block::text("Go on.")]);
        let step = MessageId::from(format!("msg_{}a", self.turns));
        self.tell(StepStarted { message: step.clone(), model: Some(model()) });
        self.tell(failure);
        self.tell(StepEnded { message: step, finish: Finish::Error, usage: None, cost: None, kept: None });
        self.end(turn, Stop::Failed);
    }
}

/// A tool call from its start to its end.
pub(crate) struct Call {
    name: &'static str,
    kind: ToolKind,
    title: Option<&'static str>,
    input: Value,
    output: Option<Value>,
    content: Vec<ToolContent>,
    error: Option<&'static str>,
}

impl Call {
    fn new(name: &'static str, kind: ToolKind, input: Value) -> Self {
        Call { name, kind, title: None, input, output: None, content: Vec::new(), error: None }
    }

    fn gives(mut self, output: Value) -> Self {
        self.output = Some(output);
        self
    }

    fn shows(mut self, path: &str, old: &str, new: &str) -> Self {
        self.content.push(ToolContent::Diff { path: path.into(), old: Some(old.into()), new: new.into() });
        self
    }
}

/// The tools that the documents name, with the shapes that they give.
fn calls() -> Vec<Call> {
    use ToolKind::{Delete, Edit, Execute, Fetch, Other, Read, Search};
    let found = json!({ "output": "src/a.rs\nsrc/b.rs", "metadata": { "count": 2, "truncated": false } });
    let todos = json!([
        { "content": "Find the file", "status": "completed", "activeForm": "Finding the file" },
        { "content": "Read the file", "status": "in_progress", "activeForm": "Reading the file" },
        { "content": "Run tests", "status": "pending", "activeForm": "Running tests" },
    ]);
    let file = "/home/ada/project/src/lib.rs";
    let patched = |name: &str, kind: &str, before: &str| {
        json!({
            "filePath": format!("/home/ada/project/{name}"), "relativePath": name, "type": kind, "diff": "Index: …",
            "before": before, "after": "new content", "additions": 16, "deletions": 8,
        })
    };
    let list = Call::new("list", Read, json!({ "path": "/home/ada/project/src" }));
    let delete = Call::new("delete", Delete, json!({ "filePath": "/home/ada/project/old.rs" }));
    let search = Call::new("websearch", Fetch, json!({ "query": "sse", "numResults": 5 }));
    vec![
        Call::new("bash", Execute, json!({ "command": "ls", "description": "List the files" })).gives(json!({
            "output": "src\n",
            "metadata": { "output": "src\n", "exit": 0, "description": "List the files", "truncated": false },
        })),
        Call {
            error: Some("The command was ended after 60 s."),
            ..Call::new("bash", Execute, json!({ "command": "sleep 100", "description": "Sleep", "timeout": 60000 }))
        },
        Call::new("read", Read, json!({ "filePath": file })).gives(json!({
            "output": "<file>\n00001| one\n</file>", "metadata": { "preview": "one", "truncated": false },
        })),
        Call { error: Some("File not found"), ..Call::new("read", Read, json!({ "filePath": "/nowhere" })) },
        Call::new("glob", Search, json!({ "pattern": "src/**/*.rs" })).gives(found.clone()),
        Call::new("grep", Search, json!({ "pattern": "fn main", "path": "/home/ada/project/src" })).gives(found),
        list.gives(json!({ "output": "src/a.rs\nsrc/b.rs" })),
        Call::new("write", Edit, json!({ "filePath": "/home/ada/project/new.rs", "content": "two\n" }))
            .gives(json!({
                "output": "Wrote file successfully.",
                "metadata": {
                    "diagnostics": {}, "filepath": "/home/ada/project/new.rs", "exists": false, "truncated": false,
                },
            }))
            .shows("/home/ada/project/new.rs", "", "two\n"),
        Call::new("edit", Edit, json!({ "filePath": file, "old_string": "one", "new_string": "two" }))
            .gives(json!({ "output": "Edit applied successfully." }))
            .shows(file, "one\n", "two\n"),
        Call {
            title: Some("Success. Updated the following files:\nM src/lib.rs\nA src/new.rs"),
            ..Call::new("apply_patch", Other, json!({ "patchText": "*** Begin Patch\n*** End Patch" }))
        }
        .gives(json!({
            "output": "Success. Updated the following files:\nM src/lib.rs\nA src/new.rs",
            "metadata": {
                "diff": "Index: …", "diagnostics": {}, "truncated": false,
                "files": [patched("src/lib.rs", "update", "old content"), patched("src/new.rs", "add", "")],
            },
        })),
        delete.gives(json!({ "output": "Deleted." })),
        Call { title: Some("3 todos"), ..Call::new("todowrite", Other, json!({ "todos": todos })) }
            .gives(json!({ "output": todos.to_string(), "metadata": { "todos": todos, "truncated": false } })),
        Call::new("task", Other, json!({ "prompt": "Look around", "description": "Look", "subagent_type": "Explore" }))
            .gives(json!({ "output": "Nothing there." })),
        Call::new("webfetch", Fetch, json!({ "url": "https://example.com" }))
            .gives(json!({ "output": "<html></html>" })),
        search.gives(json!({ "output": "No results." })),
    ]
}

fn plan() -> Vec<PlanEntry> {
    [
        ("Read the file", PlanStatus::Completed, Priority::High),
        ("Make changes", PlanStatus::InProgress, Priority::Medium),
        ("Run tests", PlanStatus::Pending, Priority::Low),
    ]
    .map(|(content, status, priority)| PlanEntry { content: content.into(), status, priority })
    .to_vec()
}

fn failures() -> Vec<Failed> {
    let failed = |kind, message: &str, retryable, details: Value| Failed {
        kind,
        message: message.into(),
        code: None,
        retryable,
        details: (!details.is_null()).then(|| Json::from(details)),
    };
    vec![
        failed(FailureKind::Auth, "The key is wrong.", false, json!({ "providerID": "anthropic" })),
        failed(FailureKind::Unknown, "Something went wrong.", false, Value::Null),
        failed(FailureKind::OutputLength, "The answer did not fit.", false, Value::Null),
        failed(FailureKind::Aborted, "It was aborted.", false, Value::Null),
        failed(
            FailureKind::Provider,
            "Too many requests.",
            true,
            json!({ "statusCode": 429, "responseHeaders": { "retry-after": "1" }, "responseBody": "slow down" }),
        ),
        failed(FailureKind::Sandbox, "Sandbox not running", false, Value::Null),
        failed(FailureKind::Storage, "Database error", false, Value::Null),
        failed(FailureKind::Agent, "The agent stopped.", true, Value::Null),
    ]
}

fn model() -> Model {
    Model { provider: "anthropic".into(), id: "claude".into() }
}
