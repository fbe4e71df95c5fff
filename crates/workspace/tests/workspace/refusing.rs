//! Files that the system does not let be written: they stay, whole, and the rest goes on.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use tolka_facts::event::KeptWhy;
use tolka_workspace::checkpoint::{Plan, Whose};

use crate::house::{House, disk};
use crate::rewinding::{done, kept, request, span};

/// Root may write everything, so the test is run by somebody who may not.
#[test]
fn what_may_not_be_written_is_kept_and_the_rest_goes_on() {
    passes_as_nobody("refusing::where_some_may_not_be_written");
}

/// Runs a test that is ignored otherwise, as somebody who may not do all that root may.
pub(crate) fn passes_as_nobody(test: &str) {
    const NOBODY: u32 = 65_534;
    let own = std::env::current_exe().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut child = match rustix::process::geteuid().is_root() {
        true => {
            // Where it lies may be closed to others.
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
            let copy = folder.path().join("tests");
            fs::copy(own, &copy).unwrap();
            let mut child = Command::new(copy);
            child.uid(NOBODY).gid(NOBODY).current_dir(folder.path());
            child
        }
        false => Command::new(own),
    };
    child.args(["--exact", test, "--ignored"]);
    child.env("TMPDIR", folder.path()).env("HOME", folder.path());
    assert_passed(&run(&mut child));
}

/// A process that another test starts may hold the copy open for writing, for a moment.
fn run(child: &mut Command) -> Output {
    loop {
        match child.output() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            output => return output.unwrap(),
        }
    }
}

pub(crate) fn assert_passed(output: &Output) {
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && words.contains("1 passed"), "{words}");
}

#[tokio::test]
#[ignore = "runs inside what_may_not_be_written_is_kept_and_the_rest_goes_on"]
async fn where_some_may_not_be_written() {
    let house = House::new();
    for name in ["a", "closed/edited", "closed/gone", "read-only", "z"] {
        house.write(name, "before");
    }
    let target = house.commit().await;
    for name in ["a", "closed/edited", "closed/new", "read-only", "unreadable", "z"] {
        house.write(name, "after");
    }
    house.remove("closed/gone");
    let now = house.commit().await;
    let set = |path: &str, mode| {
        fs::set_permissions(house.workspace.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    set("closed", 0o555);
    set("read-only", 0o444);
    set("unreadable", 0o000);
    let plan = house.plan(vec![span(&target, &now, Whose::Ours)]).await;
    let restored = house.carry_out(&plan).await;
    set("closed", 0o755);
    set("unreadable", 0o644);
    assert_eq!(done(&restored), ["a", "z"]);
    let refused = ["closed/edited", "closed/gone", "closed/new", "read-only", "unreadable"];
    assert_eq!(kept(&restored.kept), refused.map(|name| (name.to_owned(), KeptWhy::Refused)));
    for name in ["closed/edited", "closed/new", "read-only", "unreadable"] {
        assert_eq!(house.read(name), "after", "{name}");
    }
    assert_eq!(disk(&house.workspace).len(), 6, "nothing is left beside them");
    set("read-only", 0o644);
    assert_eq!(house.carry_out(&plan).await.kept, []);
    assert_eq!(disk(&house.workspace), house.snapshot(&target));
}

/// The kernel stops a write in the middle of a file, as on a disk that is full.
#[tokio::test]
async fn what_does_not_fit_is_kept_and_nothing_is_left_of_it() {
    let house = House::new();
    let large = "before".repeat(20_000);
    house.write("large", &large);
    house.write("deep/er/large", &large);
    house.write("small", "before");
    let target = house.commit().await;
    house.write("large", "after");
    house.write("small", "after");
    fs::remove_dir_all(house.workspace.join("deep")).unwrap();
    let now = house.commit().await;
    let mut child = Command::new("sh");
    child.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    child.args(["--exact", "refusing::where_little_fits", "--ignored"]);
    child.env("TEST_DATA", &house.data).env("TEST_WORKSPACE", &house.workspace);
    assert_passed(&child.env("TEST_TARGET", &target).env("TEST_NOW", &now).output().unwrap());
    assert_eq!((house.read("large").as_str(), house.read("small").as_str()), ("after", "before"));
    assert_eq!(disk(&house.workspace).len(), 2);
    assert!(!house.has("deep"));
    // With room again it is done.
    let plan = house.plan(vec![span(&target, &now, Whose::Ours)]).await;
    assert_eq!(house.carry_out(&plan).await.kept, []);
    assert_eq!(disk(&house.workspace), house.snapshot(&target));
}

#[tokio::test]
#[ignore = "runs inside what_does_not_fit_is_kept_and_nothing_is_left_of_it"]
async fn where_little_fits() {
    let var = |name: &str| std::env::var(name).unwrap();
    let checkpoints = tolka_workspace::Checkpoints::new(Path::new(&var("TEST_DATA")));
    let workspace = var("TEST_WORKSPACE");
    let asked = request(vec![span(&var("TEST_TARGET"), &var("TEST_NOW"), Whose::Ours)]);
    let plan = checkpoints.plan(Path::new(&workspace), &asked).await.unwrap();
    let restored = checkpoints.restore(Path::new(&workspace), &plan).await.unwrap();
    assert_eq!(done(&restored), ["small"]);
    assert_eq!(kept(&restored.kept), ["deep/er/large", "large"].map(|name| (name.to_owned(), KeptWhy::NoRoom)));
    // What nothing of fits is an error, and nothing is touched.
    let plan = Plan { steps: plan.steps.into_iter().filter(|step| step.path.ends_with("large")).collect(), ..plan };
    let error = checkpoints.restore(Path::new(&workspace), &plan).await.unwrap_err();
    assert!(error.is_full() && error.to_string().contains("nothing was changed"), "{error}");
}
