//! When git only looks. Even `git status` runs programs if the repository that it finds names some, and which one that is
//! depends on the folder: one that is laid out as a repository is taken for one, whoever wrote its files.
//!
//! So a look is free only in the workspace's own repository, if all that its configuration says is known to run nothing; and
//! then git is started with what a repository can name switched off all the same, since somebody may change it meanwhile.

use std::path::Path;

use super::config::Setting;
use super::find::{Repository, is_repository, settings};
use crate::checkpoint::index;

/// What a configuration may say, by its section and key.
const KNOWN: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "abbrev",
            "autocrlf",
            "bare",
            "commitgraph",
            "compression",
            "eol",
            "filemode",
            // Switched off when git only looks.
            "hookspath",
            "ignorecase",
            "logallrefupdates",
            "longpaths",
            "multipackindex",
            "precomposeunicode",
            "preloadindex",
            "protecthfs",
            "protectntfs",
            "quotepath",
            "repositoryformatversion",
            "safecrlf",
            "sparsecheckout",
            "sparsecheckoutcone",
            "symlinks",
            "untrackedcache",
        ],
    ),
    ("extensions", &["objectformat", "refstorage", "relativeworktrees", "worktreeconfig"]),
    ("lfs", &["access", "locksverify", "repositoryformatversion"]),
    ("remote", &["fetch", "gh-resolved", "prune", "push", "pushurl", "tagopt", "url"]),
    ("submodule", &["active"]),
];

/// Sections that name no program, whatever they say.
const HARMLESS: &[&str] = &["branch", "color", "gc", "init", "pull", "push", "user"];

/// Whether `git status` and its like obey nothing there but what is known. What is not there at all cannot be obeyed.
/// Blocks, for a few small files and the index.
pub fn is_quiet(workspace: &Path, folder: &Path) -> bool {
    let (Ok(root), Ok(folder)) = (workspace.canonicalize(), folder.canonicalize()) else { return true };
    let is_found = |folder: &Path| folder.join(".git").symlink_metadata().is_ok() || is_repository(folder);
    if !folder.starts_with(&root) || folder.ancestors().take_while(|above| *above != root).any(is_found) {
        return false;
    }
    if !is_found(&root) {
        // Then git goes on to the folders above, which nobody guards.
        return !root.ancestors().skip(1).any(is_found);
    }
    let own = Repository::of_workspace(&root);
    let is_known = |folder: &Path| ["config", "config.worktree"].iter().all(|name| is_known(&folder.join(name)));
    own.is_sure()
        && own.folders.iter().all(|folder| is_repository(folder) && is_known(folder))
        && own.folders.first().is_some_and(|folder| has_no_modules(&folder.join("index")))
}

fn is_known(file: &Path) -> bool {
    let is_known = |setting: &Setting| {
        let keys = KNOWN.iter().find(|(section, _)| *section == setting.section).map_or(&[][..], |(_, keys)| keys);
        keys.contains(&setting.key.as_str()) || HARMLESS.contains(&setting.section.as_str())
    };
    match settings(file) {
        Some(settings) => settings.iter().all(is_known),
        None => file.symlink_metadata().is_err(),
    }
}

fn has_no_modules(index: &Path) -> bool {
    match index::open(index).and_then(index::content) {
        Ok(bytes) => index::has_modules(&bytes) == Some(false),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// The surroundings of a command line that only looks. Others have to obey what they find: a commit without its hooks would
/// be no help.
pub fn quietly(workspace: &Path) -> Vec<(String, String)> {
    const OFF: &[(&str, &str)] = &[
        ("core.askPass", "false"),
        ("core.fsmonitor", "false"),
        ("core.hooksPath", "/dev/null"),
        ("core.pager", "cat"),
        ("core.sshCommand", "false"),
        ("credential.helper", ""),
        ("diff.ignoreSubmodules", "all"),
        ("log.showSignature", "false"),
        ("safe.bareRepository", "explicit"),
        ("submodule.recurse", "false"),
    ];
    const SET: &[(&str, &str)] =
        &[("GIT_ALLOW_PROTOCOL", "none"), ("GIT_NO_LAZY_FETCH", "1"), ("GIT_OPTIONAL_LOCKS", "0")];
    let owned = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut env: Vec<_> = SET.iter().map(|(name, value)| owned(name, value)).collect();
    env.push(owned("GIT_CONFIG_COUNT", &OFF.len().to_string()));
    for (n, (name, value)) in OFF.iter().enumerate() {
        env.push(owned(&format!("GIT_CONFIG_KEY_{n}"), name));
        env.push(owned(&format!("GIT_CONFIG_VALUE_{n}"), value));
    }
    let above = workspace.parent().and_then(Path::to_str);
    env.extend(above.map(|above| owned("GIT_CEILING_DIRECTORIES", above)));
    env
}
