//! Tools that read and change files.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tolka_agent::native::model::Input;
use tolka_agent::native::permission::{Leave, Rules};
use tolka_facts::event::FileOperation;
use tolka_facts::{Blobs, Block, CallId, Event, Location, ToolContent, ToolKind, ToolStatus};

use crate::hall::{Hall, Person, rule};

#[tokio::test]
async fn a_file_is_read_as_the_document_shows() {
    let mut hall = Hall::open();
    hall.put("app/page.tsx", "import Image from \"next/image\";\n\nexport default function Home() {\n");
    let ended = hall.call("read", json!({ "filePath": hall.absolute("app/page.tsx") })).await;
    let text = "<file>\n00001| import Image from \"next/image\";\n00002| \n00003| export default function Home() {\n\n\
                (End of file - total 3 lines)\n</file>";
    let preview = "import Image from \"next/image\";\n\nexport default function Home() {";
    assert_eq!(ended.output(), json!({ "output": text, "metadata": { "preview": preview, "truncated": false } }));
    assert_eq!(ended.said(), text);
    assert_eq!((ended.tool.kind, ended.tool.status), (ToolKind::Read, ToolStatus::Completed));
    assert_eq!(ended.tool.title, "app/page.tsx");
    assert_eq!(ended.tool.locations, Some(vec![Location { path: hall.absolute("app/page.tsx"), line: None }]));
    assert_eq!(hall.asked(), []);
}

#[tokio::test]
async fn a_new_file_is_written_and_told() {
    let mut hall = Hall::open();
    let ended = hall.call("write", json!({ "filePath": "src/new.txt", "content": "one\ntwo\n" })).await;
    ended.went_well();
    assert_eq!(hall.get("src/new.txt"), "one\ntwo\n");
    let absolute = hall.absolute("src/new.txt");
    let diff = "--- /dev/null\n+++ b/src/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n";
    assert_eq!(
        ended.output(),
        json!({
            "output": "Wrote file successfully.",
            "metadata": {
                "diagnostics": {},
                "filepath": absolute,
                "exists": false,
                "diff": diff,
                "truncated": false,
                "filediff": {
                    "file": absolute, "before": "", "after": "one\ntwo\n", "additions": 2, "deletions": 0,
                },
            },
        })
    );
    assert!(matches!(
        &ended.tool.content.as_deref().unwrap()[1],
        ToolContent::Diff { path, old: None, new } if *path == absolute && new.head() == "one\ntwo\n"
    ));
    let changed = hall.changed().remove(0);
    assert_eq!((changed.path, changed.operation), (absolute, FileOperation::Create));
    assert_eq!((changed.added, changed.removed, changed.before), (2, 0, None));
    assert_eq!(hall.told().blob(&changed.after.unwrap().hash).unwrap(), b"one\ntwo\n");
    assert_eq!(changed.call.unwrap(), ended.tool.call);
}

/// I6: the call is durable as running before anything is on the disk; the change is told before the end.
#[tokio::test]
async fn intent_stands_before_effect_and_effect_before_the_end() {
    let mut hall = Hall::open();
    hall.call("write", json!({ "filePath": "a", "content": "x" })).await.went_well();
    let told = hall.told();
    let names: Vec<_> = told.events.iter().map(Event::name).collect();
    assert_eq!(names, ["tool_changed", "file_changed", "tool_changed"]);
    assert_eq!(told.settled, [1]);
}

#[tokio::test]
async fn a_range_of_lines_is_read() {
    let mut hall = Hall::open();
    let text: String = (1..=5_000).map(|n| format!("line {n}\n")).collect();
    hall.put("long.txt", &text);
    // Models write numbers as strings, and other agents' names.
    let ended = hall.call("Read", json!({ "file_path": "long.txt", "offset": "4999", "limit": 1.0 })).await;
    assert_eq!(
        ended.said(),
        "<file>\n04999| line 4999\n\n(The file has more lines. Use offset 5000 to read on; 5000 in all)\n</file>"
    );
    assert_eq!(ended.output()["metadata"]["truncated"], true);
    let ended = hall.call("read", json!({ "filePath": "long.txt" })).await;
    assert!(ended.said().contains("\n02000| line 2000\n\n(The file has more lines. Use offset 2001 to read on"));
    assert!(!ended.said().contains("left out"), "a read is never cut in its middle");
    hall.call("read", json!({ "filePath": "long.txt", "offset": 5_001 })).await.failed("line 5001 is behind its end");
    hall.call("read", json!({ "filePath": "long.txt", "offset": "soon" })).await.failed("`offset` is a whole number");
}

#[tokio::test]
async fn long_lines_are_cut_and_an_empty_file_says_so() {
    let mut hall = Hall::open();
    hall.put("wide.js", "ö".repeat(100_000));
    hall.put("empty", "");
    let ended = hall.call("read", json!({ "filePath": "wide.js" })).await;
    assert!(ended.said().starts_with(&format!("<file>\n00001| {}...\n", "ö".repeat(2_000))));
    let ended = hall.call("read", json!({ "filePath": "empty" })).await;
    assert_eq!(ended.said(), "<file>\n\n(The file is empty)\n</file>");
    hall.put("many", format!("{}\n", "x".repeat(1_000)).repeat(200));
    let ended = hall.call("read", json!({ "filePath": "many" })).await;
    assert!(ended.said().len() < 50_000 && ended.said().contains("Use offset 49 to read on; 200 in all"));
}

#[tokio::test]
async fn a_picture_is_looked_at_and_other_bytes_are_refused() {
    let mut hall = Hall::open();
    let png = [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &[7; 60_000]].concat();
    hall.put("a.png", &png);
    let ended = hall.call("read", json!({ "filePath": "a.png" })).await;
    ended.went_well();
    let [Input::Text(words), Input::Image { mime, data }] = &ended.outcome.content[..] else { panic!("{ended:?}") };
    assert_eq!((words.as_str(), mime.as_str()), ("Image read successfully", "image/png"));
    assert_eq!(STANDARD.decode(data).unwrap(), png);
    let content = ended.tool.content.as_deref().unwrap();
    assert!(matches!(&content[1], ToolContent::Content { block: Block::Image { mime, .. } } if mime == "image/png"));

    hall.put("big.png", [&b"\x89PNG\r\n\x1a\n\0"[..], &vec![7; 5 << 20]].concat());
    hall.call("read", json!({ "filePath": "big.png" })).await.failed("make it smaller first");
    hall.put("prog", b"\x7fELF\x02\x01\x01\0\0\0");
    hall.call("read", json!({ "filePath": "prog" })).await.failed("is binary (a program or library, 10 bytes)");
    hall.put("latin", b"caf\xe9\n");
    let ended = hall.call("read", json!({ "filePath": "latin" })).await;
    assert!(ended.said().contains("00001| caf\u{fffd}") && ended.said().contains("the file is not UTF-8"));
    hall.put("huge", vec![b'x'; 17 << 20]);
    hall.call("read", json!({ "filePath": "huge" })).await.failed("look for what you need with grep");
}

#[tokio::test]
async fn what_cannot_be_read_says_what_to_do() {
    let mut hall = Hall::open();
    hall.put("src/config.rs", "x");
    hall.put("src/Readme.md", "x");
    hall.call("read", json!({ "filePath": "src/confg.rs" })).await.failed("did you mean src/config.rs?");
    hall.call("read", json!({ "filePath": "src/readme.md" })).await.failed("did you mean src/Readme.md?");
    hall.call("read", json!({ "filePath": "nowhere/at.all" })).await.failed("find it with glob or list");
    hall.call("read", json!({ "filePath": "src" })).await.failed("use list to see what is in it");
    hall.call("read", json!({})).await.failed("`filePath` is missing");
    hall.call("read", json!({ "filePath": "../x" })).await.failed("`..` may lead out of the workspace");
    hall.call("read", json!({ "filePath": "/no/such/thing" })).await.failed("/no/such/thing cannot be read");
    hall.call("fly", json!({})).await.failed("there is no tool `fly`; use one of bash, read, write");
    make_pipe(&hall.workspace.join("pipe"));
    hall.call("read", json!({ "filePath": "pipe" })).await.failed("is neither a file nor a folder");
}

fn make_pipe(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[tokio::test]
async fn outside_is_asked_and_then_read() {
    let mut hall = Hall::open();
    let outside = hall.data.with_file_name("secret.txt");
    std::fs::write(&outside, "hidden\n").unwrap();
    std::os::unix::fs::symlink(&outside, hall.workspace.join("link")).unwrap();
    for path in [outside.to_str().unwrap(), "link"] {
        let ended = hall.call("read", json!({ "filePath": path })).await;
        assert!(ended.went_well().said().contains("00001| hidden"));
    }
    let asked = hall.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!((asked[1].permission.as_str(), asked[1].call.as_ref()), ("outside", Some(&CallId::from("call_2"))));
    assert_eq!(asked[0].patterns, [outside.to_str().unwrap()], "that file, and not those beside it");
    hall.person = Person::Chooses("reject", Some("it is private"));
    let ended = hall.call("read", json!({ "filePath": outside })).await;
    ended.failed(
        "The user rejected permission to use this specific tool call with the following feedback: it is private",
    );
    assert!(!ended.outcome.ends_turn);
    hall.call("write", json!({ "filePath": outside, "content": "x" })).await.failed("leads out of the workspace");
    hall.call("write", json!({ "filePath": "link", "content": "x" })).await.failed("link");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "hidden\n");
}

/// A name that leads to a secret is no way around the rule.
#[tokio::test]
async fn secrets_are_asked_by_every_name() {
    let mut hall = Hall::open();
    for name in [".env", ".env.local", ".env.example"] {
        hall.put(name, "KEY=1\n");
    }
    std::os::unix::fs::symlink(".env", hall.workspace.join("harmless.txt")).unwrap();
    for (name, asks) in [(".env", 1), (".env.local", 2), (".env.example", 2), ("harmless.txt", 3)] {
        hall.call("read", json!({ "filePath": name })).await.went_well();
        assert_eq!(hall.asked().len(), asks, "{name}");
    }
}

#[tokio::test]
async fn secrets_are_not_searched_and_links_are_no_way_around_a_rule() {
    let mut hall = Hall::with(Rules::with([rule("edit", "locked/*", Leave::Deny)]));
    hall.put(".env", "KEY=1\n");
    hall.put("a.txt", "KEY=2\n");
    let said = hall.call("grep", json!({ "pattern": "KEY" })).await.went_well().said();
    assert!(said.starts_with("Found 1 matches\n") && !said.contains("KEY=1"), "{said}");
    assert!(said.ends_with("[some are in files that are read only with leave; read those to ask for it]"));
    hall.put("locked/b", "x\n");
    std::os::unix::fs::symlink("locked", hall.workspace.join("open")).unwrap();
    for path in ["locked/b", "open/b", "open/new", "open/deep/new", "locked/deep/new"] {
        let ended = match path.ends_with("new") {
            true => hall.call("write", json!({ "filePath": path, "content": "y" })).await,
            false => hall.call("edit", json!({ "filePath": path, "oldString": "x", "newString": "y" })).await,
        };
        ended.failed("do not allow `edit`");
    }
    assert_eq!((hall.get("locked/b").as_str(), hall.changed().len()), ("x\n", 0));
}

#[tokio::test]
async fn a_file_is_written_over_only_by_who_has_seen_it() {
    let mut hall = Hall::open();
    hall.put("a.txt", "one\n");
    let write = |content: &str| json!({ "filePath": "a.txt", "content": content });
    hall.call("write", write("mine\n")).await.failed("you have not read what is in it now; read it first");
    hall.call("read", json!({ "filePath": "a.txt" })).await.went_well();
    let ended = hall.call("write", write("two\n")).await;
    assert_eq!(ended.went_well().output()["metadata"]["exists"], true);
    hall.call("write", write("three\n")).await.went_well();
    hall.put("a.txt", "theirs\n");
    hall.call("write", write("four\n")).await.failed("you have not read what is in it now");
    assert_eq!(hall.get("a.txt"), "theirs\n");
    assert_eq!(hall.changed().len(), 2);
}

#[tokio::test]
async fn what_the_model_made_of_a_file_it_has_seen() {
    let mut hall = Hall::open();
    hall.put("a.txt", "one\n");
    hall.call("edit", json!({ "filePath": "a.txt", "oldString": "one", "newString": "two" })).await.went_well();
    hall.call("write", json!({ "filePath": "a.txt", "content": "three\n" })).await.went_well();
    let patch = "*** Begin Patch\n*** Update File: b.txt\n@@\n-one\n+two\n*** End Patch";
    hall.put("b.txt", "one\n");
    hall.call("apply_patch", json!({ "patchText": patch })).await.went_well();
    hall.call("write", json!({ "filePath": "b.txt", "content": "three\n" })).await.went_well();
    assert_eq!((hall.get("a.txt").as_str(), hall.get("b.txt").as_str()), ("three\n", "three\n"));
}

#[tokio::test]
async fn of_a_link_that_leads_out_only_the_link_is_deleted() {
    let mut hall = Hall::open();
    let outside = hall.data.join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("theirs"), "x").unwrap();
    for (n, target) in [outside.join("theirs"), outside.clone(), outside.join("nothing")].iter().enumerate() {
        let link = hall.workspace.join("link");
        std::os::unix::fs::symlink(target, &link).unwrap();
        hall.call("delete", json!({ "filePath": "link" })).await.went_well();
        assert!(link.symlink_metadata().is_err(), "{target:?}");
        assert_eq!(std::fs::read_to_string(outside.join("theirs")).unwrap(), "x");
        let changed = hall.changed();
        assert_eq!((changed.len(), changed[n].operation), (n + 1, FileOperation::Delete));
    }
    std::os::unix::fs::symlink(&outside, hall.workspace.join("out")).unwrap();
    hall.call("delete", json!({ "filePath": "out/theirs" })).await.failed("leads out of the workspace");
    assert!(outside.join("theirs").exists());
}

#[tokio::test]
async fn line_ends_stay_as_they_are() {
    let mut hall = Hall::open();
    hall.put("dos.txt", "one\r\ntwo\r\n");
    hall.call("read", json!({ "filePath": "dos.txt" })).await.went_well();
    hall.call("write", json!({ "filePath": "dos.txt", "content": "one\nthree\n" })).await.went_well();
    assert_eq!(hall.get("dos.txt"), "one\r\nthree\r\n");
    let edit = json!({ "filePath": "dos.txt", "oldString": "three", "newString": "three\nfour" });
    hall.call("edit", edit).await.went_well();
    assert_eq!(hall.get("dos.txt"), "one\r\nthree\r\nfour\r\n");
}

#[tokio::test]
async fn an_edit_tells_what_it_changed() {
    let mut hall = Hall::open();
    hall.put("src/a.rs", "fn a() {}\nfn b() {}\n");
    let input = json!({ "filePath": "src/a.rs", "old_string": "fn b() {}", "new_string": "fn c() {}" });
    let ended = hall.call("edit", input).await;
    let absolute = hall.absolute("src/a.rs");
    let diff = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,2 @@\n fn a() {}\n-fn b() {}\n+fn c() {}\n";
    let (before, after) = ("fn a() {}\nfn b() {}\n", "fn a() {}\nfn c() {}\n");
    assert_eq!(
        ended.went_well().output(),
        json!({
            "output": "Edit applied successfully.",
            "metadata": {
                "diagnostics": {}, "filepath": absolute, "diff": diff, "truncated": false,
                "filediff": { "file": absolute, "before": before, "after": after, "additions": 1, "deletions": 1 },
            },
        })
    );
    assert_eq!((ended.tool.kind, ended.tool.title.as_str()), (ToolKind::Edit, "src/a.rs"));
    assert_eq!(hall.get("src/a.rs"), after);
    let changed = hall.changed().remove(0);
    assert_eq!((changed.operation, changed.added, changed.removed), (FileOperation::Update, 1, 1));
    assert_eq!(changed.diff.unwrap().head(), diff);
    assert_eq!(hall.told().blob(&changed.before.unwrap().hash).unwrap(), before.as_bytes());
}

#[tokio::test]
async fn an_edit_that_could_mean_two_places_changes_nothing() {
    let mut hall = Hall::open();
    hall.put("a", "x\nx\n");
    hall.put("b", b"\xff\xfe");
    let edit = |path: &str, old: &str, new: &str| json!({ "filePath": path, "oldString": old, "newString": new });
    hall.call("edit", edit("a", "x", "y")).await.failed("a: the old text is in the file 2 times");
    hall.call("edit", edit("a", "z", "y")).await.failed("the old text is not in the file");
    hall.call("edit", edit("a", "x", "x")).await.failed("the same");
    hall.call("edit", edit("none", "x", "y")).await.failed("there is no file none");
    hall.call("edit", edit("b", "x", "y")).await.failed("is not UTF-8 text");
    hall.call("edit", edit(".git/config", "x", "y")).await.failed(".git");
    hall.call("edit", edit("/etc/hosts", "x", "y")).await.failed("leads out of the workspace");
    assert_eq!((hall.get("a").as_str(), hall.changed().len()), ("x\nx\n", 0));
    let mut all = edit("a", "x", "y");
    all["replaceAll"] = json!("true");
    assert!(hall.call("edit", all).await.went_well().said().contains("[2 places were replaced]"));
    assert_eq!(hall.get("a"), "y\ny\n");
}

#[tokio::test]
async fn a_file_is_deleted_and_what_was_in_it_is_kept() {
    let mut hall = Hall::open();
    hall.put("old.txt", "gone\n");
    hall.put("folder/x", "x");
    let ended = hall.call("delete", json!({ "filePath": "old.txt" })).await;
    assert_eq!(ended.went_well().said(), "Deleted file successfully.");
    assert_eq!(ended.tool.kind, ToolKind::Delete);
    assert!(!hall.workspace.join("old.txt").exists());
    let changed = hall.changed().remove(0);
    assert_eq!((changed.operation, changed.removed, changed.after), (FileOperation::Delete, 1, None));
    assert_eq!(hall.told().blob(&changed.before.unwrap().hash).unwrap(), b"gone\n");
    hall.call("delete", json!({ "filePath": "old.txt" })).await.failed("nothing was deleted");
    hall.call("delete", json!({ "filePath": "folder" })).await.failed("is a folder");
}

#[tokio::test]
async fn a_patch_is_told_as_the_document_shows() {
    let mut hall = Hall::open();
    hall.put("a.txt", "one\ntwo\n");
    hall.put("b.txt", "b\n");
    hall.put("c.txt", "c\n");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** Add File: new/d.txt\n+d\n*** Delete File: \
                 b.txt\n*** Update File: c.txt\n*** Move to: e.txt\n@@\n-c\n+e\n*** End Patch";
    let ended = hall.call("apply_patch", json!({ "patchText": patch })).await;
    let words = "Success. Updated the following files:\nM a.txt\nA new/d.txt\nD b.txt\nA e.txt\nD c.txt";
    let output = ended.went_well().output();
    let mut lines: Vec<&str> = output["output"].as_str().unwrap().lines().collect();
    let mut wanted: Vec<&str> = words.lines().collect();
    assert_eq!(lines.remove(0), wanted.remove(0));
    lines.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(lines, wanted);
    assert_eq!((ended.tool.kind, &ended.tool.title), (ToolKind::Other, &output["output"].as_str().unwrap().to_owned()));
    let metadata = &output["metadata"];
    assert_eq!((&metadata["diagnostics"], &metadata["truncated"]), (&json!({}), &json!(false)));
    assert_eq!(
        metadata["files"][0],
        json!({
            "filePath": hall.absolute("a.txt"),
            "relativePath": "a.txt",
            "type": "update",
            "diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
            "before": "one\ntwo\n",
            "after": "one\n2\n",
            "additions": 1,
            "deletions": 1,
        })
    );
    assert_eq!(
        (hall.get("a.txt"), hall.get("new/d.txt"), hall.get("e.txt")),
        ("one\n2\n".into(), "d\n".into(), "e\n".into())
    );
    assert!(!hall.workspace.join("b.txt").exists() && !hall.workspace.join("c.txt").exists());
    assert_eq!(hall.changed().len(), 5);
}

#[tokio::test]
async fn a_patch_that_does_not_fit_changes_nothing() {
    let mut hall = Hall::open();
    hall.put("a.txt", "one\n");
    let wrapped = |body: &str| json!({ "patchText": format!("*** Begin Patch\n{body}\n*** End Patch") });
    let first = "*** Add File: new.txt\n+x\n";
    for (body, words) in [
        ("*** Update File: a.txt\n@@\n-nope\n+y", "a.txt: "),
        ("*** Delete File: none.txt", "none.txt: it is not there"),
        ("*** Add File: a.txt\n+x", "a.txt: it is there already"),
        ("*** Add File: ../out.txt\n+x", "`..` may lead out"),
        ("*** Add File: /etc/out.txt\n+x", "leads out of the workspace"),
    ] {
        hall.call("apply_patch", wrapped(&format!("{first}{body}"))).await.failed(words);
    }
    hall.call("apply_patch", json!({ "patchText": "hello" })).await.failed("the patch cannot be used");
    assert!(!hall.workspace.join("new.txt").exists() && hall.changed().is_empty());
}

/// Texts that are long stand in blobs, and the facts that name them still give back what was said.
#[tokio::test]
async fn a_large_file_is_edited() {
    let mut hall = Hall::open();
    let text: String = (0..200_000).map(|n| format!("this is line number {n}\n")).collect();
    assert!(text.len() > 5 << 20);
    hall.put("big.txt", &text);
    let edit = json!({ "filePath": "big.txt", "oldString": "number 150000\n", "newString": "no. 150000\n" });
    let ended = hall.call("edit", edit).await;
    assert_eq!(ended.went_well().output()["metadata"].get("filediff"), None);
    assert!(hall.get("big.txt").contains("no. 150000"));
    let changed = hall.changed().remove(0);
    assert_eq!((changed.added, changed.removed, changed.before.unwrap().size), (1, 1, text.len() as u64));
}
