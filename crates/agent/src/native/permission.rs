//! What the agent may do without asking, what it must ask, and what it may not do at all.
//!
//! [`Rules`] are read from top to bottom and the last one that matches counts: ours first, then those of the
//! configuration. What they leave to be asked, [`Grants`] may have been given for always. Nothing overrides a deny, and
//! what is not understood (a command line with a substitution in it) is asked.

mod command;
mod grants;
mod usual;
mod wildcard;

use std::path::Path;

pub use grants::{Grant, GrantError, Grants};

pub(crate) use command::{Line, pattern};
pub(crate) use wildcard::literal;

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
    fn covers(&self, permission: &str, subject: &str) -> bool {
        wildcard::matches(&self.permission, permission) && wildcard::matches(&self.pattern, subject)
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
        self.deciding(permission, subject).map_or(Leave::Ask, |(_, rule)| rule.leave)
    }

    /// What is said to a command line that would run in `workspace`: every command in it must be allowed.
    pub fn leave_command(&self, line: &str, workspace: &Path) -> Leave {
        let read = Line::read(line);
        let whole = self.deciding("bash", line.trim());
        let said = read.commands.iter().map(|command| self.leave_part(command, workspace));
        let parts = said.reduce(Leave::stricter).unwrap_or(Leave::Ask);
        match whole {
            Some((_, Rule { leave: Leave::Deny, .. })) => Leave::Deny,
            _ if parts == Leave::Deny => Leave::Deny,
            // Whoever allows everything means everything.
            Some((_, Rule { leave: Leave::Allow, pattern, .. })) if pattern == "*" => Leave::Allow,
            _ if read.is_odd => Leave::Ask,
            _ => parts,
        }
    }

    fn leave_part(&self, command: &str, workspace: &Path) -> Leave {
        match self.deciding("bash", command) {
            None => Leave::Ask,
            // We only vouch for commands that stay at home; who writes a rule of their own knows why.
            Some((at, rule)) if self.is_usual(at) && rule.leave == Leave::Allow => {
                match command::stays_inside(command, workspace) {
                    true => Leave::Allow,
                    false => Leave::Ask,
                }
            }
            Some((_, rule)) => rule.leave,
        }
    }

    fn deciding(&self, permission: &str, subject: &str) -> Option<(usize, &Rule)> {
        self.0.iter().enumerate().rev().find(|(_, rule)| rule.covers(permission, subject))
    }

    /// Whether the rule at this place is one of ours.
    fn is_usual(&self, at: usize) -> bool {
        let usual = usual::rules();
        at < usual.len() && self.0.get(at) == usual.get(at)
    }
}

/// Whether this command line changes nothing and shows nothing from outside, in our own opinion. All that runs in plan
/// mode.
pub(crate) fn is_harmless(line: &str, workspace: &Path) -> bool {
    Rules::default().leave_command(line, workspace) == Leave::Allow
}
