//! `tolka dialects`, and the document that is made of it.

use tolka_dialect::Dialect;

use crate::cli::{code, stdout};
use crate::convert::file;
use crate::server::tolka;

#[test]
fn every_dialect_is_listed() {
    let listed = tolka().arg("dialects").output().unwrap();
    assert_eq!(code(&listed), 0);
    let listed = stdout(&listed);
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_once("  ")).map(|(name, _)| name).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    assert_eq!(names, Dialect::ALL.map(Dialect::name));
}

/// `make docs` writes it anew.
#[test]
fn the_document_is_made_from_the_code() {
    let printed = stdout(&tolka().args(["dialects", "--markdown"]).output().unwrap());
    let path = file("../docs/dialects.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &printed).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    let differs = printed.lines().zip(written.lines()).find(|(printed, written)| printed != written);
    assert!(
        printed == written,
        "docs/dialects.md is not what the code says, first in {differs:?}; `make docs` writes it"
    );
    assert!(!written.contains("| ? |"), "a table does not say how it carries an event");
    for family in ["tolka", "acp", "agentsmithy", "onyx", "onyx-steps", "opencode"] {
        assert!(written.contains(&format!("### `{family}`")), "{family}");
    }
}
