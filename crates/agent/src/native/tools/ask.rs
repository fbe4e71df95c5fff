//! Leave for a call: from the rules, from what was granted before, or from a person.
//!
//! A refusal without a word ends the turn, as in OpenCode: the person wants to say something else, and a model that goes
//! on would try another way to the same thing. One with a reason goes back to the model, which goes on with it. Where
//! nobody answered the turn goes on too: nobody is there to whom it could be handed back.

use std::path::Path;

use serde_json::{Value, json};
use tolka_facts::event::{Noticed, OptionKind, PermissionAsked, PermissionOption, Severity};
use tolka_facts::{CallId, Draft, Time};
use tolka_workspace::obeyed::{is_named, quietly};

use super::act::{Act, Stop};
use super::hidden::{Hidden, real_path};
use super::name::OUTSIDE;
use super::{Scene, Tools};
use crate::native::permission::{self, ALWAYS, Ground, Leave, ONCE, REJECT, literal};
use crate::{Chosen, Gone, PLAN};

/// What is wanted, and of what.
#[derive(Debug)]
pub(super) struct Want {
    /// As rules name it.
    pub(super) permission: &'static str,
    /// Each of them must be allowed.
    pub(super) subjects: Vec<String>,
    /// For the person who is asked.
    pub(super) title: String,
    pub(super) metadata: Value,
    /// What is remembered if it is allowed always.
    pub(super) always: Vec<String>,
}

enum Answer {
    Allowed,
    Rejected,
    RejectedWith(String),
    Unanswered,
    Cancelled,
}

impl Want {
    /// To change these files, which are named from the workspace on.
    pub(super) fn edit(paths: &[&str], title: String, diff: &str) -> Self {
        let mut always: Vec<_> = paths.iter().map(|path| folder_of(path)).collect();
        always.sort();
        always.dedup();
        Want {
            permission: "edit",
            subjects: paths.iter().map(|path| (*path).to_owned()).collect(),
            title,
            metadata: json!({ "filepath": paths.join(", "), "diff": diff }),
            always,
        }
    }

    /// To look at this path, which is named from the workspace on.
    pub(super) fn look(permission: &'static str, subject: &str) -> Self {
        Want {
            permission,
            subjects: vec![subject.to_owned()],
            title: subject.to_owned(),
            metadata: json!({ "path": subject }),
            always: vec![literal(subject)],
        }
    }

    /// To read this file, which lies outside.
    pub(super) fn outside(path: &Path) -> Self {
        let path = path.to_string_lossy();
        Want {
            permission: OUTSIDE,
            subjects: vec![path.clone().into_owned()],
            title: format!("Read {path}, which is outside of the workspace"),
            metadata: json!({ "filepath": path, "parentDir": Path::new(&*path).parent().map(Path::to_string_lossy) }),
            always: vec![literal(&path)],
        }
    }
}

/// A pattern for all of the folder that something is in; what is in none stands for itself.
fn folder_of(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, _)) => format!("{}/*", literal(folder)),
        None => literal(path),
    }
}

/// Whether it need not be asked for, whoever is there.
pub(super) fn is_free(tools: &Tools, permission: &str, subject: &str) -> bool {
    tools.settings.rules.leave(permission, subject) == Leave::Allow
}

/// The same of reading a file of the workspace, by every name that it has.
pub(super) fn is_free_to_read(tools: &Tools, path: &str, hidden: &Hidden) -> bool {
    let real = real_path(&tools.workspace, path);
    let is_free = |path: &&str| is_free(tools, "read", path);
    [Some(path), real.as_deref()].iter().flatten().all(is_free) && !hidden.has(path)
}

impl Act<'_> {
    /// `Ok` if it may be done. `paths` are what the call is about, for those who are asked.
    pub(super) async fn leave(&self, mut want: Want, paths: &[&str]) -> Result<(), Stop> {
        if want.permission == "edit" && self.scene.mode == PLAN {
            return Err(Stop::failed(
                "this is plan mode, in which no file is changed; say what you would change instead",
            ));
        }
        let is_of_files = matches!(want.permission, "read" | "edit" | OUTSIDE);
        let hidden = is_of_files.then(|| Hidden::of(self.tools));
        if let Some(path) = want.subjects.iter().find(|path| hidden.as_ref().is_some_and(|hidden| hidden.has(path))) {
            return Err(Stop::Failed(format!(
                "{path} is hidden from agents and from their commands: such files hold keys, or are no real files; ask the \
                 person for what you need of it"
            )));
        }
        let rules = &self.tools.settings.rules;
        let mut open = Vec::new();
        let subjects = self.by_every_name(&want);
        let obeyed = if want.permission == "edit" { self.obeyed(&subjects).await? } else { Vec::new() };
        for subject in subjects {
            let said = match obeyed.contains(&subject) {
                true => rules.leave_obeyed(want.permission, &subject),
                false => rules.leave(want.permission, &subject),
            };
            match said {
                Leave::Allow => {}
                Leave::Ask => open.push(subject),
                Leave::Deny => return Err(denied(want.permission, &subject)),
            }
        }
        if open.is_empty()
            || self.is_granted(want.permission, open.into_iter().map(|name| vec![name]).collect()).await?
        {
            return Ok(());
        }
        if !obeyed.is_empty() {
            want.title = format!("{} (git obeys it, as you and outside of any sandbox)", want.title);
        }
        self.announced(&want.title, paths).await?;
        self.asked(want).await
    }

    /// Those that git obeys: hooks and configurations that lie among the files of the workspace.
    async fn obeyed(&self, subjects: &[String]) -> Result<Vec<String>, Stop> {
        let (workspace, mut subjects) = (self.workspace(), subjects.to_vec());
        let look = move |_| {
            subjects.retain(|path| is_named(&workspace, Path::new(path)));
            subjects
        };
        self.looking(look).await
    }

    /// The subjects and, of files, where links lead: another name is no way around a rule.
    fn by_every_name(&self, want: &Want) -> Vec<String> {
        let mut subjects = want.subjects.clone();
        if matches!(want.permission, "read" | "edit") {
            subjects.extend(want.subjects.iter().filter_map(|path| real_path(&self.tools.workspace, path)));
            subjects.dedup();
        }
        subjects
    }

    /// The same of a command line that starts in `folder`. Gives back what it is to be started with.
    pub(super) async fn leave_command(
        &self,
        line: &str,
        folder: &Path,
        title: &str,
        metadata: Value,
    ) -> Result<Vec<(String, String)>, Stop> {
        let (rules, workspace, is_plan) =
            (self.tools.settings.rules.clone(), self.workspace(), self.scene.mode == PLAN);
        let (written, folder) = (line.to_owned(), folder.to_owned());
        let weigh = move |_| {
            let ground = Ground { workspace: &workspace, folder: &folder };
            let is_look = permission::is_harmless(&written, ground);
            let env = if is_look { quietly(&workspace) } else { Vec::new() };
            (!is_plan || is_look).then(|| (rules.weigh(&written, ground), env))
        };
        let Some((weighed, env)) = self.looking(weigh).await? else {
            return Err(Stop::failed(
                "this is plan mode, in which only commands that look are run (ls, git status, git diff, git log, …), \
                 git in a repository that names no program of its own; \
                 say what you would run instead",
            ));
        };
        match weighed.leave {
            Leave::Allow => return Ok(env),
            Leave::Deny => return Err(denied("bash", line.trim())),
            Leave::Ask => {}
        }
        // What is odd is more than its words, so it is granted as it stands or not at all.
        let (subjects, always, is_granted) = match weighed.is_odd || weighed.open.is_empty() {
            true => {
                let always = vec![literal(line.trim())];
                (vec![line.trim().to_owned()], always.clone(), self.is_granted_exactly("bash", always).await?)
            }
            false => {
                let open = weighed.open;
                let mut always: Vec<String> = Vec::new();
                for pattern in open.iter().map(permission::pattern) {
                    if !always.contains(&pattern) {
                        always.push(pattern);
                    }
                }
                let names = open.iter().map(|command| vec![command.plain(), command.written.clone()]).collect();
                let subjects = open.into_iter().map(|command| command.written).collect();
                (subjects, always, self.is_granted("bash", names).await?)
            }
        };
        if is_granted {
            return Ok(env);
        }
        self.announced(title, &[]).await?;
        let want = Want { permission: "bash", subjects, title: line.trim().to_owned(), metadata, always };
        self.asked(want).await.map(|()| env)
    }

    /// Whether each of these was allowed always, by one of its names.
    async fn is_granted(&self, permission: &'static str, subjects: Vec<Vec<String>>) -> Result<bool, Stop> {
        let (grants, workspace) = (self.tools.settings.grants.clone(), self.workspace());
        self.looking(move |_| {
            let is_granted = |name: &String| grants.matches(&workspace, permission, name);
            subjects.iter().all(|names| names.iter().any(is_granted))
        })
        .await
    }

    /// Whether fetching from this host was allowed always.
    pub(super) async fn is_granted_host(&self, host: &str) -> Result<bool, Stop> {
        self.is_granted("webfetch", vec![vec![host.to_owned()]]).await
    }

    async fn is_granted_exactly(&self, permission: &'static str, patterns: Vec<String>) -> Result<bool, Stop> {
        let (grants, workspace) = (self.tools.settings.grants.clone(), self.workspace());
        let is_it = move |pattern: &String| {
            let mut known = grants.list().into_iter().filter(|grant| grant.workspace == workspace);
            known.any(|grant| grant.permission == permission && grant.pattern == *pattern)
        };
        self.looking(move |_| patterns.iter().all(is_it)).await
    }

    async fn asked(&self, want: Want) -> Result<(), Stop> {
        match ask(self.tools, self.scene, self.call.id.clone(), want).await? {
            Answer::Allowed => Ok(()),
            Answer::Rejected => Err(Stop::Rejected),
            Answer::RejectedWith(reason) => Err(Stop::Failed(format!(
                "The user rejected permission to use this specific tool call with the following feedback: {reason}"
            ))),
            Answer::Unanswered => Err(Stop::failed(
                "Nobody answered the request for permission, so this was not done. It can be asked for again when \
                 somebody is there.",
            )),
            Answer::Cancelled => Err(Stop::Cancelled(None)),
        }
    }
}

fn denied(permission: &str, subject: &str) -> Stop {
    Stop::Failed(format!(
        "the rules of this server do not allow `{permission}` for `{subject}`; do it another way, or say that it is needed"
    ))
}

async fn ask(tools: &Tools, scene: &Scene<'_>, call: CallId, want: Want) -> Result<Answer, Gone> {
    let option = |id: &str, name: String, kind| PermissionOption { id: id.to_owned(), name, kind };
    let patterns = want.always;
    let shown = patterns.iter().map(|pattern| format!("`{pattern}`")).collect::<Vec<_>>().join(" and ");
    let asked = PermissionAsked {
        request: scene.teller.ids().permission(Time::now()),
        call: Some(call),
        permission: want.permission.to_owned(),
        title: want.title,
        patterns: patterns.clone(),
        metadata: Some(want.metadata.into()),
        options: vec![
            option(ONCE, "Allow once".to_owned(), OptionKind::AllowOnce),
            option(ALWAYS, format!("Always allow {shown}"), OptionKind::AllowAlways),
            option(REJECT, "Reject".to_owned(), OptionKind::RejectOnce),
        ],
    };
    let cancel = &scene.cancel;
    let chosen = tokio::select! {
        chosen = scene.teller.ask_permission(asked, None, tools.settings.patience.clone()) => chosen?,
        () = cancel.fired() => return Ok(Answer::Cancelled),
    };
    let Some(Chosen { option, reason }) = chosen else {
        return Ok(if cancel.is_fired() { Answer::Cancelled } else { Answer::Unanswered });
    };
    match option.as_str() {
        ONCE => Ok(Answer::Allowed),
        ALWAYS => {
            remember(tools, scene, want.permission, patterns).await?;
            Ok(Answer::Allowed)
        }
        _ => Ok(match reason.map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty()) {
            Some(reason) => Answer::RejectedWith(reason),
            None => Answer::Rejected,
        }),
    }
}

/// What cannot be remembered is still allowed now, and somebody should know that it will be asked again.
async fn remember(
    tools: &Tools,
    scene: &Scene<'_>,
    permission: &'static str,
    patterns: Vec<String>,
) -> Result<(), Gone> {
    let (grants, workspace, session) = (tools.settings.grants.clone(), tools.workspace.clone(), tools.session.clone());
    let add = move || patterns.iter().try_for_each(|p| grants.add(&workspace, permission, p, &session).map(drop));
    let problem = match tokio::task::spawn_blocking(add).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    let notice = Noticed {
        severity: Severity::Warning,
        title: "What was allowed always could not be remembered".to_owned(),
        description: Some(problem),
    };
    scene.teller.tell(Draft::tolka(notice)).await
}
