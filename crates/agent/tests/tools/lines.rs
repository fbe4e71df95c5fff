//! Command lines against real shells: whatever we allow without asking runs nothing that we did not read in it.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;
use tolka_agent::native::permission::{Ground, Leave, Rules};

use crate::hall::rule;

/// A folder whose only program leaves a mark when it runs.
struct Trap {
    folder: TempDir,
    bin: PathBuf,
}

impl Trap {
    fn set() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let rm = bin.join("rm");
        std::fs::write(&rm, "#!/bin/sh\n: > \"$MARK\"\n").unwrap();
        std::fs::set_permissions(rm, std::fs::Permissions::from_mode(0o755)).unwrap();
        Trap { folder, bin }
    }

    /// Whether `rm` is run by this line.
    fn runs_rm(&self, shell: &str, line: &str) -> bool {
        // Each line has its own mark: one that goes to the background may leave it late.
        let (place, marks) = (self.made(), self.made());
        let mark = marks.path().join("ran");
        let mut command = Command::new(shell);
        command.arg("-c").arg(line).env_clear().env("PATH", &self.bin).env("MARK", &mark).current_dir(place.path());
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.unwrap();
        mark.exists()
    }

    fn made(&self) -> TempDir {
        tempfile::tempdir_in(self.folder.path()).unwrap()
    }
}

const BASH: &str = "/bin/bash";
/// What a line is run with where there is no bash.
const SHELL: &str = "/bin/sh";

fn said(rules: &Rules, line: &str) -> Leave {
    rules.leave_command(line, Ground::of(Path::new("/no/such/place")))
}

/// Everything is allowed but this.
fn all_but_rm() -> Rules {
    Rules::with([rule("bash", "*", Leave::Allow), rule("bash", "rm *", Leave::Deny)])
}

#[test]
fn what_hides_a_command_is_never_free() {
    let trap = Trap::set();
    for line in [
        "echo \\ #; rm -rf .",
        "echo a\\\n#; rm -rf .",
        "echo x\r#; rm -rf .",
        "echo x\u{a0}#; rm -rf .",
        "echo \u{b}#; rm -rf .",
        "echo ''#; rm -rf .",
        "echo \"\"\\\n#; rm -rf .",
        "echo \\>&rm -rf .",
        "echo '>'&rm -rf .",
        "echo \\<&rm -rf .",
        "echo a\\\n&rm -rf .",
        "echo a # \\\nrm -rf .",
        "echo ' # '; rm -rf . #'",
        "echo \\'; rm -rf . #'",
        "echo \"\\\"\"; rm -rf . #\"",
        "r\"\"m -rf .",
        "\\rm -rf .",
        "'rm' x",
        ">/dev/null rm x",
        "2>&1 rm x",
        "echo $(rm x)",
        "echo \"`rm x`\"",
        "echo ${x:-`rm y`}",
        "echo ${x:- #}; rm x",
        "echo $'\\''; rm x #'",
        "((1 # 2)); rm x",
        "(rm x)",
        "f(){ rm x;}; f",
        "case a in a) rm x;; esac",
        "if true; then rm x; fi",
        "x=1 rm y",
        "$x rm y",
        "echo a;\\\nrm x",
        "echo a |\\\n rm x",
        "echo a &>x; rm y",
        "command rm x",
        "true && ! rm x",
        "time rm x",
        "{ rm x; }",
        "echo <(rm x; echo) >/dev/null; read -t 1 y < <(rm x)",
        "cat() { rm x; }; echo a | cat",
    ] {
        assert!(trap.runs_rm(BASH, line), "this is no attack in bash: {line:?}");
        assert_eq!(said(&Rules::default(), line), Leave::Ask, "{line:?}");
        assert_eq!(said(&all_but_rm(), line), Leave::Deny, "{line:?}");
    }
    // What follows is no command to bash.
    let line = "echo a &>x rm y";
    assert_eq!(said(&all_but_rm(), line), Leave::Deny);
    assert!(!trap.runs_rm(BASH, line));
}

#[test]
fn what_is_free_runs_nothing_else() {
    let trap = Trap::set();
    for line in [
        "echo a # ; rm -rf .",
        "echo a\t#; rm -rf .",
        "echo a;# rm -rf .",
        "echo 'a\n# ; rm -rf .'",
        "echo \"; rm x\" '& rm x' \\;rm",
        "echo a 2>&1 >/dev/null rm x",
        "echo \\$(rm",
        "echo '$(rm x)'",
    ] {
        let expected = if line.contains("\\$(") { Leave::Ask } else { Leave::Allow };
        assert_eq!(said(&Rules::default(), line), expected, "{line:?}");
        assert!(!trap.runs_rm(BASH, line) && !trap.runs_rm(SHELL, line), "{line:?}");
    }
}

/// Pieces from which every trick of quoting, commenting and redirecting can be made.
fn line(pieces: &'static [&'static str], beginning: &'static str) -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(pieces);
    proptest::collection::vec(piece, 1..14).prop_map(move |pieces| format!("{beginning}{}", pieces.concat()))
}

/// Shells that one test starts at most.
const STARTS: u32 = 300;

#[test]
fn of_any_line_that_is_free_only_what_was_read_runs() {
    const PIECES: &[&str] = &[
        "#",
        " #",
        "\\",
        "\\\n",
        "'",
        "\"",
        "&",
        ">",
        "<",
        "|",
        ";",
        "\n",
        " ",
        "\t",
        "\r",
        "$",
        "(",
        ")",
        "{",
        "}",
        "a",
        "rm",
        " rm",
        "\u{a0}",
        "*",
        "~",
        "/dev/null",
        "1",
        ",",
        "[",
        "!",
        "=",
    ];
    let (trap, starts) = (Trap::set(), Cell::new(0));
    let mut runner = TestRunner::new(ProptestConfig { cases: 6_000, failure_persistence: None, ..Default::default() });
    let checked = runner.run(&line(PIECES, "echo "), |line| {
        if starts.get() < STARTS && said(&Rules::default(), &line) == Leave::Allow {
            starts.set(starts.get() + 1);
            prop_assert!(!trap.runs_rm(BASH, &line), "bash runs more of {line:?}");
            prop_assert!(!trap.runs_rm(SHELL, &line), "sh runs more of {line:?}");
        }
        Ok(())
    });
    checked.unwrap();
    assert!(starts.get() > 50, "only {} lines were free", starts.get());
}

#[test]
fn no_line_gets_around_a_deny() {
    // Without what makes a word out of others: of that see the configuration's documentation.
    const PIECES: &[&str] = &[
        "#",
        " #",
        "\\",
        "\\\n",
        "'",
        "\"",
        "&",
        ">",
        "|",
        ";",
        "\n",
        " ",
        " ",
        "\r",
        "$(",
        "(",
        ")",
        "{ ",
        "}",
        "a",
        "rm",
        " rm ",
        "rm",
        "/dev/null",
        "2",
        "`",
        "&>",
    ];
    let (trap, starts) = (Trap::set(), Cell::new((0, 0)));
    let mut runner = TestRunner::new(ProptestConfig { cases: 6_000, failure_persistence: None, ..Default::default() });
    let rules = all_but_rm();
    let checked = runner.run(&line(PIECES, ""), |line| {
        let (free, denied) = starts.get();
        let leave = said(&rules, &line);
        match leave == Leave::Deny {
            true if denied < 40 => {
                starts.set((free, denied + u32::from(trap.runs_rm(BASH, &line))));
            }
            false if free < STARTS && line.contains("rm") => {
                starts.set((free + 1, denied));
                prop_assert!(!trap.runs_rm(BASH, &line), "bash runs rm in {line:?}, which is {leave:?}");
                prop_assert!(!trap.runs_rm(SHELL, &line), "sh runs rm in {line:?}, which is {leave:?}");
            }
            _ => {}
        }
        Ok(())
    });
    checked.unwrap();
    assert!(starts.get().0 > 50 && starts.get().1 > 10, "{:?}", starts.get());
}
