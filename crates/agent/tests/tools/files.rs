//! Tools that read and change files.

use serde_json::json;
use tolka_facts::event::FileOperation;
use tolka_facts::{Blobs, Event, Location, ToolContent, ToolKind, ToolStatus};

use crate::hall::Hall;

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
        ToolContent::Diff { path, old: Some(old), new } if *path == absolute && old.is_empty() && new.head() == "one\ntwo\n"
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
