//! What the agent may do without asking, what it must ask, and what it may not do at all.
//!
//! [`Rules`] are read from top to bottom and the last one that matches counts: ours first, then those of the
//! configuration. What they leave to be asked, [`Grants`] may have been given for always. Nothing overrides a deny, and
//! what is not understood (a command line with a substitution in it) is asked.

mod grants;
mod line;
mod pattern;
mod places;
mod usual;
mod wildcard;

pub use grants::{Grant, GrantError, Grants};
pub use places::Ground;

use line::{Command, Line};
pub(crate) use pattern::pattern;
use places::Whereabouts;
pub(crate) use wildcard::literal;

/// What a person who is asked can choose, by the id of the option.
pub const ONCE: &str = "once";
pub const ALWAYS: &str = "always";
pub const REJECT: &str = "reject";

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    Allow,
    Ask,
    Deny,
}

impl Leave {
    /// The one that lets less happen.
    fn stricter(self, other: Leave) -> Leave {
        match (self, other) {
            (Leave::Deny, _) | (_, Leave::Deny) => Leave::Deny,
            (Leave::Ask, _) | (_, Leave::Ask) => Leave::Ask,
            (Leave::Allow, Leave::Allow) => Leave::Allow,
        }
    }
}

/// One line of the rules: a permission (`bash`, `edit`, `read`, `outside`, `*`), a pattern of what it is wanted for, and
/// what is said to it. In both, `*` stands for anything and `?` for one character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub permission: String,
    pub pattern: String,
    pub leave: Leave,
}

impl Rule {
    fn covers(&self, permission: &str, names: &[&str]) -> bool {
        let is_named = || names.iter().any(|name| wildcard::matches(&self.pattern, name));
        wildcard::matches(&self.permission, permission) && is_named()
    }
}

/// Rules in their order; the last one that matches counts. The usual ones come first in every list: see
/// [`Rules::default`] and [`Rules::with`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules(pub Vec<Rule>);

impl Default for Rules {
    fn default() -> Self {
        Rules(usual::rules())
    }
}

impl Rules {
    /// The usual rules, and then these.
    pub fn with(own: impl IntoIterator<Item = Rule>) -> Self {
        let mut rules = Rules::default();
        rules.0.extend(own);
        rules
    }

    /// What is said to `permission` for `subject`: a path from the workspace on, an absolute one for `outside`. Nothing
    /// said is a reason to ask. Of commands see [`Rules::leave_command`].
    pub fn leave(&self, permission: &str, subject: &str) -> Leave {
        self.deciding(permission, &[subject]).map_or(Leave::Ask, |(_, rule)| rule.leave)
    }

    /// The same of what git obeys: our own leave is for files that run nothing.
    pub(crate) fn leave_obeyed(&self, permission: &str, subject: &str) -> Leave {
        match self.deciding(permission, &[subject]) {
            Some((at, rule)) if self.is_usual(at) => rule.leave.stricter(Leave::Ask),
            decided => decided.map_or(Leave::Ask, |(_, rule)| rule.leave),
        }
    }

    /// What is said to a command line: every command in it must be allowed. Looks where its words lead, so it blocks.
    pub fn leave_command(&self, line: &str, ground: Ground<'_>) -> Leave {
        self.weigh(line, ground).leave
    }

    /// The same, with what is to be asked.
    pub(crate) fn weigh(&self, line: &str, ground: Ground<'_>) -> Weighed {
        let read = Line::read(line);
        let whole = self.deciding("bash", &[line.trim()]).map(|(_, rule)| rule);
        // Whoever allows everything means lines that are more than their words, too.
        let is_all_allowed = whole.is_some_and(|rule| rule.leave == Leave::Allow && rule.pattern == "*");
        let unread = if is_all_allowed { Leave::Allow } else { Leave::Ask };
        let mut leave = if read.is_odd || read.commands.is_empty() { unread } else { Leave::Allow };
        let mut whereabouts = Whereabouts::new(ground);
        let mut open = Vec::new();
        for command in read.commands {
            let said = self.leave_part(&command, &whereabouts);
            whereabouts.follow(&command);
            leave = leave.stricter(said);
            if said != Leave::Allow {
                open.push(command);
            }
        }
        if whole.is_some_and(|rule| rule.leave == Leave::Deny) {
            leave = Leave::Deny;
        }
        Weighed { leave, is_odd: read.is_odd, open }
    }

    fn leave_part(&self, command: &Command, whereabouts: &Whereabouts<'_>) -> Leave {
        let plain = command.plain();
        // In another folder it is another program, so this may only take leave away.
        let path = command.words.first().map_or(0, |word| word.plain.rfind('/').map_or(0, |slash| slash + 1));
        if matches!(self.deciding("bash", &[&plain[path..]]), Some((_, Rule { leave: Leave::Deny, .. }))) {
            return Leave::Deny;
        }
        match self.deciding("bash", &[&plain, &command.written]) {
            None => Leave::Ask,
            // We only vouch for commands that stay at home; who writes a rule of their own knows why.
            Some((at, rule)) if self.is_usual(at) && rule.leave == Leave::Allow => match whereabouts.named(command) {
                // It may run what a repository names.
                Some(_) if command.program() == "git" && !whereabouts.is_quiet() => Leave::Ask,
                Some(places) => {
                    places.iter().map(|place| self.leave("read", place)).fold(Leave::Allow, Leave::stricter)
                }
                None => Leave::Ask,
            },
            Some((_, rule)) => rule.leave,
        }
    }

    /// The last rule that covers it by one of its names.
    fn deciding(&self, permission: &str, names: &[&str]) -> Option<(usize, &Rule)> {
        self.0.iter().enumerate().rev().find(|(_, rule)| rule.covers(permission, names))
    }

    /// Whether the rule at this place is one of ours.
    fn is_usual(&self, at: usize) -> bool {
        let usual = usual::rules();
        at < usual.len() && self.0.get(at) == usual.get(at)
    }
}

/// What the rules say to a command line.
#[derive(Debug)]
pub(crate) struct Weighed {
    pub(crate) leave: Leave,
    /// Its words are not all there is to it.
    pub(crate) is_odd: bool,
    /// The commands in it that are not allowed as they are.
    pub(crate) open: Vec<Command>,
}

/// Whether this command line changes nothing and shows nothing from outside, in our own opinion. All that runs in plan
/// mode.
pub(crate) fn is_harmless(line: &str, ground: Ground<'_>) -> bool {
    Rules::default().leave_command(line, ground) == Leave::Allow
}
