// Made from Rust by `UPDATE_TYPES=1 cargo test -p tolka-facts types`. Do not edit.

export interface Envelope {
  v: number;
  session: SessionId;
  /** Gapless, from 1. */
  seq: number;
  time: Time;
  cause: Cause;
  /** What the agent sent, as it came. */
  raw?: unknown;
}

export type Event =
  | { type: "session_created"; data: SessionCreated }
  | { type: "session_changed"; data: SessionChanged }
  | { type: "session_deleted"; data: SessionDeleted }
  | { type: "prompt_queued"; data: PromptQueued }
  | { type: "prompt_dropped"; data: PromptDropped }
  | { type: "turn_started"; data: TurnStarted }
  | { type: "turn_ended"; data: TurnEnded }
  | { type: "step_started"; data: StepStarted }
  | { type: "step_ended"; data: StepEnded }
  | { type: "text_appended"; data: TextAppended }
  | { type: "thought_appended"; data: ThoughtAppended }
  | { type: "tool_changed"; data: ToolChanged }
  | { type: "input_appended"; data: InputAppended }
  | { type: "output_appended"; data: OutputAppended }
  | { type: "plan_set"; data: PlanSet }
  | { type: "mode_set"; data: ModeSet }
  | { type: "commands_set"; data: CommandsSet }
  | { type: "usage_set"; data: UsageSet }
  | { type: "noticed"; data: Noticed }
  | { type: "file_changed"; data: FileChanged }
  | { type: "artifact_saved"; data: ArtifactSaved }
  | { type: "permission_asked"; data: PermissionAsked }
  | { type: "permission_answered"; data: PermissionAnswered }
  | { type: "question_asked"; data: QuestionAsked }
  | { type: "question_answered"; data: QuestionAnswered }
  | { type: "compaction_started"; data: CompactionStarted }
  | { type: "compaction_ended"; data: CompactionEnded }
  | { type: "process_started"; data: ProcessStarted }
  | { type: "process_ended"; data: ProcessEnded }
  | { type: "checkpoint_saved"; data: CheckpointSaved }
  | { type: "rewind_started"; data: RewindStarted }
  | { type: "rewound"; data: Rewound }
  | { type: "unrewound"; data: Unrewound }
  | { type: "message_hidden"; data: MessageHidden }
  | { type: "failed"; data: Failed }
  | { type: "foreign"; data: Foreign }
  | { type: "instance_disposed"; data: InstanceDisposed }
  | { type: "version_changed"; data: VersionChanged }
  | { type: "update_found"; data: UpdateFound }
  | { type: "branch_changed"; data: BranchChanged }
  | { type: "pty_changed"; data: PtyChanged }
  | { type: "session_chosen"; data: SessionChosen }
  | { type: "prompt_steered"; data: PromptSteered }
  | { type: "retry_scheduled"; data: RetryScheduled }
  | { type: "rewind_failed"; data: RewindFailed }
  | { type: "approved"; data: Approved }
  | { type: "files_moved"; data: FilesMoved }
  | { type: "session_forked"; data: SessionForked };

/**
 * A person agreed to what was changed up to here.
 */
export type Approved = { checkpoint: string, message?: string, };

/**
 * `art_…`
 */
export type ArtifactId = string;

export type ArtifactKind = "file" | "image" | "web_app" | "nextjs_app" | "markdown" | "document" | "presentation" | "spreadsheet" | "pdf" | "code";

export type ArtifactSaved = { id: ArtifactId, kind: ArtifactKind, name: string, path: string, mime: string, size: number, preview?: string, };

/**
 * Something that waits for a person.
 */
export type Ask = { "permission": PermissionAsked } | { "question": QuestionAsked };

export type Base = { checkpoint: string, 
/**
 * The fact that named it.
 */
seq: number, 
/**
 * When it was approved; `None` if nothing was yet.
 */
approved?: Time, 
/**
 * How often work was approved or reset.
 */
settled: number, };

export type BlobRef = { hash: Hash, size: number, };

/**
 * A piece of content, with the fields that the Agent Client Protocol gives it.
 */
export type Block = { "type": "text", text: Body, annotations?: unknown, } | { "type": "image", 
/**
 * Base64.
 */
data: Body, mime: string, uri?: string, } | { "type": "audio", 
/**
 * Base64.
 */
data: Body, mime: string, } | { "type": "link", uri: string, name: string, title?: string, description?: string, mime?: string, size?: number, } | { "type": "resource", uri: string, mime?: string, 
/**
 * `text` for readable content, `blob` (base64) for the rest; exactly one is there.
 */
text?: Body, blob?: Body, };

export type Body = string | { head: string, hash: Hash, size: number, };

export type BranchChanged = { directory: string, branch?: string, };

/**
 * The agent's own name for a tool call; kept as it came.
 */
export type CallId = string;

/**
 * Who brought a fact about.
 */
export type Cause = "agent" | "client" | "tolka";

/**
 * Files that changed; of very many the first, and how many there are.
 */
export type Changes = { files: Array<FileStat>, 
/**
 * Of all of them.
 */
count: number, added: number, removed: number, };

/**
 * The workspace was saved. The snapshot before a turn is told by the fact that starts it.
 */
export type CheckpointSaved = { checkpoint: string, files: number, moment?: Moment, 
/**
 * The turn that it was saved after.
 */
turn?: TurnId, 
/**
 * What the turn changed, by its commands too.
 */
changes?: Changes, 
/**
 * What has changed since the session began, or since its changes were last approved.
 */
total?: Changes, 
/**
 * Sessions whose turns ran in the same folder meanwhile: what nobody told may be theirs.
 */
beside?: Array<SessionId>, 
/**
 * The turn was cut off, and nobody saw when: what changed may be anybody's who came since.
 */
late?: boolean, 
/**
 * The turn told of every file that it changed: what it did not tell is somebody else's, who worked meanwhile.
 */
tells?: boolean, };

export type Command = { name: string, description: string, hint?: string, };

export type CommandsSet = { commands: Array<Command>, };

export type CompactionEnded = { id: string, summary?: Body, error?: string, 
/**
 * The first message that the model goes on to see as it is; of those before it, only the summary. `None`: none.
 */
keeps?: MessageId, 
/**
 * What making the summary took, also where it came to nothing.
 */
usage?: Usage, cost?: number, };

export type CompactionStarted = { id: string, automatic: boolean, };

export type Cost = { amount: number, currency: string, };

/**
 * The calls of a turn that have ended, the oldest first. Copies share them until a call ends: a session's tip is copied
 * for everybody who asks for it.
 *
 * As JSON it is a list of ids.
 */
export type EndedCalls = Array<CallId>;

/**
 * Something that happened, at its place in the journal of a session. Never changed.
 *
 * As JSON it is `{"v","session","seq","time","cause","type","data","raw"?}`; that is what the journal
 * stores and what the `tolka` dialect sends.
 */
export type Fact = Envelope & Event;

/**
 * Something went wrong that the person should know. Inside a turn it is why the turn fails.
 */
export type Failed = { kind: FailureKind, message: string, code?: number, retryable: boolean, details?: Json, };

export type FailureKind = "agent" | "auth" | "provider" | "output_length" | "aborted" | "sandbox" | "storage" | "unknown";

export type FileChanged = { path: string, operation: FileOperation, before?: BlobRef, after?: BlobRef, added: number, removed: number, 
/**
 * The call that changed it; this fact then stands before the one that ends the call.
 */
call?: CallId, 
/**
 * A unified diff, where whoever told of the change gave one.
 */
diff?: Body, };

export type FileOperation = "create" | "update" | "delete";

export type FileStat = { path: string, operation: FileOperation, 
/**
 * Lines; none are counted in a file that is no text.
 */
added: number, removed: number, 
/**
 * A `FileChanged` of the turn told of it.
 */
told?: boolean, };

/**
 * A restore in another session of the same folder wrote or removed files that this one may know.
 */
export type FilesMoved = { by: SessionId, changes: Changes, };

export type Finish = "stop" | "tool_calls" | "length" | "error" | "cancelled" | "unknown";

/**
 * What an agent said and we have no word for; the envelope's `raw` has it whole.
 */
export type Foreign = { origin: string, what: string, };

/**
 * SHA-256 of the content, as lower-case hex.
 */
export type Hash = string;

/**
 * What is known of the session as a whole.
 */
export type Head = { id: SessionId, workspace: string, agent: string, title: string, mode?: string, model?: Model, parent?: Parent, created: Time, updated: Time, archived: boolean, deleted: boolean, 
/**
 * Turns that were started, ever.
 */
turns: number, tokens: Usage, cost?: Cost, 
/**
 * What changed since the last approval, as the last snapshot has it, and the changes that were told since.
 */
files: number, added: number, removed: number, 
/**
 * A turn is open, or a restore under way. Kept here so that a list can say so, and so that a restart finds what to recover.
 */
busy: boolean, queued: number, 
/**
 * That go on beside turns. A restart finds here what to tell as ended.
 */
processes?: number, 
/**
 * Permissions and questions that wait for a person.
 */
waiting: number, 
/**
 * The rewind that says what is hidden of the conversation: the last one that hides anything.
 */
rewound?: Rewind, };

export type InputAppended = { call: CallId, text: string, };

export type InstanceDisposed = { directory: string, };

/**
 * A JSON value kept as it was written: numbers keep their digits, objects their order, nulls their place.
 *
 * It holds no line break, so that it can stand in a line of a stream as it is.
 */
export type Json = unknown;

/**
 * A file that a restore left as it is.
 */
export type KeptFile = { path: string, why: KeptWhy, };

export type KeptWhy = "conflict" | "not_ours" | "moved" | "not_saved" | "refused" | "no_room";

export type Location = { path: string, line?: number, };

export type Message = { id: MessageId, turn: TurnId, 
/**
 * Where its turn started. A prompt that waits for its own has none.
 */
started?: number, 
/**
 * Where it took its place in the conversation: a prompt where its turn started or took it, an answer where it began.
 */
placed?: number, role: Role, created: Time, ended?: Time, 
/**
 * How its step ended.
 */
finish?: Finish, parts: Array<Part>, 
/**
 * What the client knew beside its prompt.
 */
context?: Json, usage?: Usage, 
/**
 * What the model's provider wants back; see [`StepEnded`](crate::event::StepEnded).
 */
kept?: Json, 
/**
 * On the last message of a turn: the agent's, if it said anything.
 */
stop?: Stop, 
/**
 * Where that was told.
 */
stopped?: number, failure?: Failed, 
/**
 * Nobody is shown it, nor is a model sent it.
 */
hidden?: boolean, 
/**
 * Hidden by a rewind, and back again if that is taken back. Otherwise it is hidden for good.
 */
rewound?: boolean, 
/**
 * It began before this view did, inside a turn. Here is what was open of it and what came since: a call that the turn
 * has already, and a text with the name of its last one, are those, grown; the rest is new. If no message before has
 * its id, it goes on with the last one of the turn, and is hidden if that is.
 */
continued?: boolean, };

export type MessageHidden = { message: MessageId, };

/**
 * `msg_…`: a user's prompt, or one step of the agent.
 */
export type MessageId = string;

export type ModeSet = { mode: string, };

export type Model = { provider: string, id: string, };

/**
 * Why a snapshot was taken.
 */
export type Moment = "after_turn" | "before_rewind" | "asked";

export type Noticed = { severity: Severity, title: string, description?: string, };

export type OpenStep = { message: MessageId, first_seq: number, started: Time, 
/**
 * A tool was called in it.
 */
tools: boolean, model?: Model, };

/**
 * A run of text that may still grow.
 */
export type OpenText = { part: PartId, voice: Voice, message: MessageId, first_seq: number, started: Time, text: Rope, };

export type OpenTurn = { id: TurnId, 
/**
 * From 0, over the whole session.
 */
index: number, first_seq: number, started: Time, 
/**
 * The user's message.
 */
message: MessageId, 
/**
 * The last message that was sent to the turn while it ran.
 */
steered?: MessageId, model?: Model, 
/**
 * The way of working that its prompt names.
 */
mode?: string, steps: number, step?: OpenStep, text?: OpenText, 
/**
 * Open calls, and the one that the last fact ended. Copies of a tip share them until they change: an input or a
 * diff may be long, and a tip is copied for everybody who asks for it.
 */
tools?: Array<Tool>, ended_calls?: EndedCalls, asks?: Array<Ask>, 
/**
 * The summary that is being made, by its id.
 */
compaction?: string, 
/**
 * What a summary took was counted with it; the turn's end tells it once more.
 */
has_counted?: boolean, failure?: Failed, };

export type OptionKind = "allow_once" | "allow_always" | "reject_once" | "reject_always";

export type OutputAppended = { call: CallId, text: string, };

/**
 * What a client says about files that would be kept as conflicts.
 */
export type Overwrite = "nothing" | { "these": Array<string> } | "all";

export type Parent = { session: SessionId, kind: ParentKind, 
/**
 * A fork has the facts of its parent up to this one, copied; see `SessionForked`.
 */
at?: number, 
/**
 * A subagent works for this call of its parent.
 */
call?: CallId, };

export type ParentKind = "subagent" | "fork";

/**
 * Tagged from outside (`{"tool": …}`): raw JSON inside it needs the deserializer itself.
 */
export type Part = { "content": Block } | { "text": Said } | { "thought": Said } | { "tool": Tool };

/**
 * `prt_…`: one run of text or thought.
 */
export type PartId = string;

export type PermissionAnswered = { request: RequestId, 
/**
 * `None`: nobody chose; the turn was cancelled or the server stopped.
 */
option?: string, by: string, reason?: string, };

export type PermissionAsked = { request: RequestId, call?: CallId, 
/**
 * What is asked for, as rules name it: `bash`, `edit`, …
 */
permission: string, title: string, patterns?: Array<string>, metadata?: Json, options: Array<PermissionOption>, };

export type PermissionOption = { id: string, name: string, kind: OptionKind, };

export type PlanEntry = { content: string, status: PlanStatus, priority: Priority, };

export type PlanSet = { entries: Array<PlanEntry>, };

export type PlanStatus = "pending" | "in_progress" | "completed" | "cancelled";

export type Priority = "high" | "medium" | "low";

export type ProcessEnded = { process: string, 
/**
 * `None`: a signal ended it, or nobody saw how it ended.
 */
code?: number, 
/**
 * Who ended it. `None`: it ended by itself.
 */
by?: string, };

/**
 * A command goes on while the session does: a development server, for one.
 */
export type ProcessStarted = { process: string, command: string, call?: CallId, };

/**
 * Taken out of the queue before it started.
 */
export type PromptDropped = { turn: TurnId, };

/**
 * A client asked for a turn. It waits here, durable, until the session is free.
 */
export type PromptQueued = { turn: TurnId, message: MessageId, content: Array<Block>, 
/**
 * The client's own name for this request: the same key twice is one turn.
 */
key?: string, agent?: string, model?: Model, 
/**
 * What the client knows beside the prompt: open file, selection, attachments.
 */
context?: Json, 
/**
 * The turn that it is meant for, which was running or about to. Should that end first, it is a prompt like any
 * other.
 */
steers?: TurnId, };

/**
 * A prompt that waited became part of the turn that runs; it will have none of its own.
 */
export type PromptSteered = { turn: TurnId, 
/**
 * The turn that took it.
 */
into: TurnId, };

export type PtyChange = "created" | "updated" | "exited" | "deleted";

export type PtyChanged = { id: string, change: PtyChange, info?: Json, };

export type Question = { question: string, header: string, options: Array<QuestionOption>, multiple?: boolean, };

export type QuestionAnswered = { request: RequestId, 
/**
 * One list of chosen labels per question. `None`: rejected.
 */
answers?: Array<Array<string>>, by: string, };

export type QuestionAsked = { request: RequestId, call?: CallId, questions: Array<Question>, };

export type QuestionOption = { label: string, description: string, };

export type Queued = { seq: number, time: Time, prompt: PromptQueued, };

/**
 * `per_…` or `que_…`: a permission or a question that waits for an answer.
 */
export type RequestId = string;

/**
 * The model could not be asked, or broke off; it is asked again after the delay.
 */
export type RetryScheduled = { 
/**
 * From 1.
 */
attempt: number, delay_ms: number, message: string, 
/**
 * What the provider answered, where it did: an HTTP status.
 */
code?: number, };

/**
 * A rewind that can be taken back.
 */
export type Rewind = { 
/**
 * Of its [`Rewound`](crate::event::Rewound) fact.
 */
seq: number, 
/**
 * `None`: the files stayed.
 */
checkpoint?: string, 
/**
 * The files before it; taking it back restores them.
 */
before?: string, 
/**
 * `None`: the conversation stayed.
 */
message?: MessageId, 
/**
 * Turns that started at this place or later, and before `seq`, are taken back.
 */
from?: number, };

/**
 * A rewind that began was not carried out: nothing has changed. Only where the snapshots themselves are gone nobody
 * can say so; then `message` tells that.
 */
export type RewindFailed = { message: string, };

/**
 * Logged before anything is touched: a restore that is cut off is taken up from here.
 */
export type RewindStarted = { 
/**
 * The files go back to it. `None`: they stay.
 */
checkpoint?: string, 
/**
 * The conversation goes back to before this prompt. `None`: it stays.
 */
message?: MessageId, 
/**
 * The files as they are now.
 */
before?: string, 
/**
 * Where the first turn that is taken back started.
 */
from?: number, overwrite?: Overwrite, 
/**
 * Which [`Rewound`] fact this takes back.
 */
undoes?: number, 
/**
 * All that was not approved goes.
 */
resets?: boolean, };

/**
 * Fields are as in [`RewindStarted`]. What it hides can be taken back until the next turn starts.
 */
export type Rewound = { checkpoint?: string, message?: MessageId, 
/**
 * Paths that were written or removed; of very many the first.
 */
files: Array<string>, before?: string, 
/**
 * The files as they were when it was done.
 */
after?: string, from?: number, 
/**
 * What is not as it was at the checkpoint, and why.
 */
kept?: Array<KeptFile>, 
/**
 * `None` with a checkpoint: it was given up in its middle, and nobody knows what it wrote.
 */
changes?: Changes, total?: Changes, resets?: boolean, };

export type Role = "user" | "agent";

/**
 * Text that grows at its end and is cheap to copy: copies share all but the last chunk. A session's tip is copied for
 * everybody who asks for it, and the text that is open in it may be long.
 *
 * As JSON it is a plain string.
 */
export type Rope = string;

/**
 * One run of text or thought.
 */
export type Said = { part: PartId, first_seq: number, started: Time, 
/**
 * When its last piece came.
 */
last: Time, text: Rope, };

/**
 * What is named changed; the rest stayed.
 */
export type SessionChanged = { title?: string, mode?: string, model?: Model, agent?: string, archived?: boolean, };

/**
 * Clients of a family that has a current session, one for all of them, work in this one from now on.
 */
export type SessionChosen = { session?: SessionId, };

export type SessionCreated = { 
/**
 * The folder the agent works in.
 */
workspace: string, agent: string, title: string, mode?: string, model?: Model, parent?: Parent, };

export type SessionDeleted = Record<symbol, never>;

/**
 * The last of the facts that a fork begins with: what came before was copied from another session.
 */
export type SessionForked = { from: SessionId, 
/**
 * The last fact of it that counts here.
 */
seq: number, 
/**
 * The files that it began with.
 */
checkpoint?: string, };

/**
 * `ses_…`, or `srv_…` for the server's own journal.
 */
export type SessionId = string;

export type Severity = "info" | "warning" | "error" | "other";

export type StepEnded = { message: MessageId, finish: Finish, usage?: Usage, cost?: number, 
/**
 * What the model's provider wants back with the next request, part by part: signatures and the like. For minds;
 * no client of another wire is told.
 */
kept?: Json, };

/**
 * One call of the model inside a turn.
 */
export type StepStarted = { message: MessageId, model?: Model, };

export type Stop = "end_turn" | "max_tokens" | "max_turn_requests" | "refusal" | "cancelled" | "failed" | "interrupted";

export type TextAppended = { part: PartId, text: string, };

export type ThoughtAppended = { part: PartId, text: string, };

/**
 * Microseconds since the Unix epoch: fine enough to order a burst, and exact in JSON until the year 2255.
 */
export type Time = number;

export type Tip = { seq: number, time: Time, head: Head, queue?: Array<Queued>, turn?: OpenTurn, plan?: Array<PlanEntry>, usage?: UsageSet, 
/**
 * A fork that does not have all its facts yet.
 */
is_copying?: boolean, 
/**
 * The restore that is under way.
 */
rewinding?: RewindStarted, 
/**
 * Rewinds that can be taken back, the last one last: no turn has started since. Of very many the last.
 */
rewinds?: Array<Rewind>, 
/**
 * Of those before them, the last that hides anything.
 */
buried?: Rewind, 
/**
 * By starting a turn the last fact ended all chance to take rewinds back. It stays for that one fact.
 */
has_settled?: boolean, 
/**
 * Those that run.
 */
processes?: Array<ProcessStarted>, 
/**
 * What the session's changes are counted from: the first snapshot, or the last that was approved.
 */
base?: Base, 
/**
 * What the last fact ended. It stays for that one fact, so that an encoder can tell the end.
 */
ended_text?: OpenText, ended_turn?: OpenTurn, answered?: Ask, dropped?: Queued, 
/**
 * The prompt that the last fact took out of the queue, to start its turn or to be part of the open one. It stays for
 * that one fact: an open turn need not hold it.
 */
taken?: Queued, };

export type Tool = { call: CallId, 
/**
 * Where it was first told: dialects make ids from it.
 */
first_seq: number, first_time: Time, message: MessageId, started?: Time, ended?: Time, name?: string, kind: ToolKind, title: string, status: ToolStatus, input?: Json, output?: Json, content?: Array<ToolContent>, locations?: Array<Location>, error?: Body, meta?: Json, 
/**
 * The session of the subagent that works for the call.
 */
subagent?: SessionId, 
/**
 * Input and output that were told piece by piece.
 */
live_input?: Rope, live_output?: Rope, };

/**
 * A tool call began or changed; the fold merges the updates of one call.
 */
export type ToolChanged = { call: CallId, name?: string, kind?: ToolKind, title?: string, status?: ToolStatus, input?: Json, output?: Json, content?: Array<ToolContent>, locations?: Array<Location>, error?: Body, meta?: Json, 
/**
 * The session of the subagent that works for the call. Only what makes such sessions tells it; what an agent of
 * somebody else's says of itself stands in `meta`.
 */
subagent?: SessionId, };

export type ToolContent = { "type": "content", block: Block, } | { "type": "diff", path: string, 
/**
 * `None` or empty: the file is new.
 */
old?: Body, new: Body, } | { "type": "terminal", id: string, };

export type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "switch_mode" | "other";

export type ToolStatus = "pending" | "running" | "completed" | "failed" | "cancelled";

export type TurnEnded = { turn: TurnId, stop: Stop, usage?: Usage, cost?: number, 
/**
 * `_meta` of the agent's answer, for dialects that pass it on.
 */
meta?: Json, };

/**
 * `trn_…`: one prompt and all that the agent did about it.
 */
export type TurnId = string;

export type TurnStarted = { turn: TurnId, checkpoint?: string, };

/**
 * The last rewind was taken back, or all from the one on that `RewindStarted` names.
 */
export type Unrewound = { 
/**
 * The files went back to it.
 */
checkpoint?: string, files: Array<string>, before?: string, after?: string, kept?: Array<KeptFile>, changes?: Changes, total?: Changes, };

export type UpdateFound = { version: string, };

export type Usage = { input: number, output: number, reasoning?: number, cache_read?: number, cache_write?: number, };

/**
 * How full the context is, and what the session has cost so far, with what was done for it by subagents.
 */
export type UsageSet = { used: number, size: number, cost?: Cost, 
/**
 * What its subagents have used since this was told last. It is part of the cost, and counts among the session's
 * tokens.
 */
subagents?: Usage, };

export type VersionChanged = { version: string, };

export type View = { 
/**
 * What is open now; its `seq` is the position of this view.
 */
tip: Tip, 
/**
 * In the order of their turns; prompts that wait for theirs come last.
 */
messages: Array<Message>, artifacts?: Array<ArtifactSaved>, commands?: Array<Command>, 
/**
 * What stands beside the conversation, as it was told: notices, answers, compactions, failures between turns, what
 * was taken back, brought back or approved.
 */
asides?: Array<Fact>, };

export type Voice = "text" | "thought";
