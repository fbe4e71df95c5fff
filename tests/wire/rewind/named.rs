//! Files that are not told or seen by the name that a checkpoint has them by: ignored ones that a repository tracks, and
//! those that links lead to.

use serde_json::json;
use tolka_scripted::Call;

use super::stage::{Rewinds, Stage, bash, names, prompts, put, write};
use crate::native::stage::Talk;

#[test]
fn what_commands_do_to_ignored_files_that_are_tracked_goes_back() {
    let stage = Stage::set();
    let folder = stage.workspace();
    for name in ["kept.log", "gone.log", "persons.log", "src"] {
        put(&folder, name, "at first\n");
    }
    stage.commit_all();
    put(&folder, ".gitignore", "*.log\n");
    put(&folder, "other.log", "not tracked\n");
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    let before = stage.tree();
    // The second rule is the turn's own, and what it hides is tracked as well.
    let calls = ["echo agent > kept.log; rm gone.log; echo src >> .gitignore", "echo agent > src"];
    stage.turn(&mut talk, calls.map(bash).to_vec());
    put(&folder, "persons.log", "mine\n");

    let first = prompts(&talk)[0].clone();
    let done = talk.rewind(&first, "both");
    let mut went = names(&done["files"]);
    went.sort_unstable();
    assert_eq!(went, [".gitignore", "gone.log", "kept.log", "src"], "{done}");
    assert_eq!(names(&done["kept"]), ["persons.log"], "{done}");
    assert_eq!(done["kept"][0]["why"], "not_ours");
    put(&folder, "persons.log", "at first\n");
    super::tree::assert_same(&stage.tree(), &before, "all that the turn did");
}

#[test]
fn what_tools_write_by_way_of_links_goes_back() {
    let stage = Stage::set();
    let folder = stage.workspace();
    put(&folder, "libs/x/a", "at first\n");
    put(&folder, "real", "at first\n");
    std::os::unix::fs::symlink("libs/x", folder.join("package")).unwrap();
    std::os::unix::fs::symlink("real", folder.join("link")).unwrap();
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    let before = stage.tree();
    let read = |path: &str| Call::new("read", json!({ "filePath": path }));
    let calls = vec![
        read("package/a"),
        write("package/a", "agent\n"),
        write("package/new", "agent\n"),
        read("link"),
        write("link", "agent\n"),
        // The way there is gone, and what was told of it is no file that nobody saved.
        bash("rm package"),
    ];
    stage.turn(&mut talk, calls);
    assert_eq!(std::fs::read_to_string(folder.join("libs/x/a")).unwrap(), "agent\n");
    let first = prompts(&talk)[0].clone();
    let preview = talk.preview(&first, "both");
    let done = talk.rewind(&first, "both");
    let mut went = names(&done["files"]);
    went.sort_unstable();
    assert_eq!(went, ["libs/x/a", "libs/x/new", "package", "real"], "{done}");
    assert_eq!((&preview["kept"], &done["kept"]), (&json!([]), &json!([])));
    super::tree::assert_same(&stage.tree(), &before, "all that the turn did");
}
