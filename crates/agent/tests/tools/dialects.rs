//! What the tools tell, told on: every dialect must be able to make its own of it.

use serde_json::{Value, json};
use tolka_dialect::agentsmithy::{ToolResult, result};
use tolka_facts::Tool;

use crate::hall::{Ended, Hall};

pub(crate) fn smithy(hall: &Hall, ended: &Ended) -> Value {
    let tool = Tool { title: String::new(), ..ended.tool.clone() };
    let told: ToolResult = result(&tool, hall.workspace.to_str().unwrap(), &hall.told()).unwrap();
    serde_json::to_value(told).unwrap()
}

/// Document 003 names the results; what is in them is read from our outputs.
#[tokio::test]
async fn agentsmithy_reads_every_result() {
    let mut hall = Hall::allowing("bash");
    hall.put("src/a.rs", "fn one() {}\nfn two() {}\n");
    hall.put("src/deep/b.rs", "");
    let file = hall.absolute("src/a.rs");

    let ended = hall.call("grep", json!({ "pattern": "two", "path": "src" })).await;
    assert_eq!(
        smithy(&hall, &ended),
        json!({ "type": "search_files_result", "results": [{ "file": file, "line": 2, "context": "fn two() {}" }] })
    );
    let ended = hall.call("list", json!({ "path": "src" })).await;
    let items = [file.clone(), hall.absolute("src/deep")];
    assert_eq!(
        smithy(&hall, &ended),
        json!({ "type": "list_files_result", "path": hall.absolute("src"), "items": items })
    );
    let ended = hall.call("list", json!({ "path": "src", "recursive": true })).await;
    assert!(smithy(&hall, &ended)["items"].as_array().unwrap().contains(&json!(hall.absolute("src/deep/b.rs"))));
    let ended = hall.call("read", json!({ "filePath": "src/a.rs" })).await;
    assert_eq!(smithy(&hall, &ended)["content"], ended.said());
    let ended = hall.call("read", json!({ "filePath": "src/none" })).await;
    assert_eq!(smithy(&hall, &ended)["type"], "read_file_error");
    let ended = hall.call("write", json!({ "filePath": "new", "content": "x" })).await;
    assert_eq!(smithy(&hall, &ended), json!({ "type": "write_file_result", "path": hall.absolute("new") }));
    let edit = json!({ "filePath": "new", "oldString": "x", "newString": "y" });
    let ended = hall.call("edit", edit).await;
    assert_eq!(smithy(&hall, &ended)["type"], "replace_file_result");
    let ended = hall.call("delete", json!({ "filePath": "new" })).await;
    assert_eq!(smithy(&hall, &ended), json!({ "type": "delete_file_result", "path": hall.absolute("new") }));

    let ended = hall.call("bash", json!({ "command": "echo hi; exit 4", "workdir": "src" })).await;
    let told = smithy(&hall, &ended);
    assert_eq!(
        (&told["type"], &told["exit_code"], &told["stdout"]),
        (&json!("run_command_result"), &json!(4), &json!("hi\n"))
    );
    assert_eq!((&told["cwd"], &told["stdout_truncated"]), (&json!(hall.absolute("src")), &json!(false)));
    let ended = hall.call("bash", json!({ "command": "sleep 60", "timeout": 1000 })).await;
    let told = smithy(&hall, &ended);
    assert_eq!(
        (&told["type"], &told["timed_out"], &told["exit_code"]),
        (&json!("run_command_timeout"), &json!(true), &json!(null))
    );
}
