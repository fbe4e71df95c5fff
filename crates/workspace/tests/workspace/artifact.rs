//! Artifacts and the folder they are read from.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::process::Command;

use tolka_facts::event::{ArtifactKind, ArtifactSaved};
use tolka_workspace::{ArtifactError, Folder, FolderError, artifact_from_file};

use crate::house::House;

fn describe(house: &House, path: &str) -> Result<ArtifactSaved, ArtifactError> {
    artifact_from_file("art_1".into(), &house.workspace, path, None, None)
}

#[test]
fn everything_is_found_out_from_the_path() {
    use ArtifactKind::{Code, Document, File, Image, Markdown, NextjsApp, Pdf, Presentation, Spreadsheet, WebApp};
    const OFFICE: &str = "application/vnd.openxmlformats-officedocument";
    let (docx, pptx) = (format!("{OFFICE}.wordprocessingml.document"), format!("{OFFICE}.presentationml.presentation"));
    let xlsx = format!("{OFFICE}.spreadsheetml.sheet");
    let house = House::new();
    house.write("outputs/web/index.html", "<p>hello</p>");
    house.write("outputs/web/deep/app.js", "12345678");
    symlink("/etc/passwd", house.workspace.join("outputs/web/link")).unwrap();
    house.write("site/package.json", r#"{"name": "site", "dependencies": {"next": "15.0.0", "react": "19"}}"#);
    house.write("site/index.html", "");
    house.write("tool/package.json", r#"{"dependencies": {"left-pad": "1"}}"#);
    house.write("broken/package.json", "{ not json");
    for (path, kind, mime, name, size) in [
        ("outputs/web/", WebApp, "text/html", "Web", 20),
        ("site/", NextjsApp, "text/html", "Site", 67),
        ("tool/", File, "inode/directory", "Tool", 35),
        ("broken/", File, "inode/directory", "Broken", 10),
        ("outputs/web/index.html", WebApp, "text/html", "Index", 12),
        ("docs/READ_me-first.md", Markdown, "text/markdown", "READ me first", 3),
        ("a.PNG", Image, "image/png", "A", 3),
        ("data_2026.csv", Spreadsheet, "text/csv", "Data 2026", 3),
        ("data.xlsx", Spreadsheet, &xlsx, "Data", 3),
        ("deck.pptx", Presentation, &pptx, "Deck", 3),
        ("über_uns.docx", Document, &docx, "Über uns", 3),
        ("report.final.pdf", Pdf, "application/pdf", "Report.final", 3),
        ("src/my_main.rs", Code, "text/x-rust", "my_main.rs", 3),
        ("Makefile", Code, "text/plain", "Makefile", 3),
        ("thing.xyz", File, "application/octet-stream", "thing.xyz", 3),
        ("plain", File, "application/octet-stream", "plain", 3),
    ] {
        if !house.workspace.join(path).exists() {
            house.write(path, "abc");
        }
        let (id, mime) = ("art_1".into(), mime.to_owned());
        let expected = ArtifactSaved { id, kind, name: name.into(), path: path.into(), mime, size, preview: None };
        assert_eq!(describe(&house, path).unwrap(), expected);
        let absolute = format!("{}/./{path}", house.workspace.display());
        assert_eq!(describe(&house, &absolute).unwrap(), expected, "{absolute}");
    }
}

#[test]
fn what_is_given_counts() {
    let house = House::new();
    house.write("outputs/web/app.js", "x");
    house.write("table", "a,b");
    let make = |path, kind, name| artifact_from_file("art_1".into(), &house.workspace, path, Some(kind), name).unwrap();
    let web = make("outputs/web/", ArtifactKind::WebApp, Some("Web Application"));
    let expected = ArtifactSaved {
        id: "art_1".into(),
        kind: ArtifactKind::WebApp,
        name: "Web Application".into(),
        path: "outputs/web/".into(),
        mime: "text/html".into(),
        size: 1,
        preview: None,
    };
    assert_eq!(web, expected);
    let table = make("table", ArtifactKind::Spreadsheet, Some(" "));
    assert_eq!((table.name.as_str(), table.mime.as_str()), ("Table", "text/csv"));
}

#[test]
fn nothing_outside_of_the_workspace_is_reached() {
    let house = House::new();
    house.write("inside/file", "in");
    let secret = house.workspace.with_file_name("secret");
    fs::write(&secret, "out").unwrap();
    let link = |target: &str, at: &str| symlink(target, house.workspace.join(at)).unwrap();
    link("../secret", "climbs");
    link(secret.to_str().unwrap(), "jumps");
    link("..", "parent");
    link("/", "root");
    link("../../secret", "inside/climbs");
    link("loop", "loop");
    link("inside", "allowed");
    link("../inside/file", "inside/back");
    let folder = Folder::open(&house.workspace).unwrap();
    for path in [
        "climbs",
        "jumps",
        "parent/secret",
        "root/etc/passwd",
        "inside/climbs",
        "loop",
        "../secret",
        "/etc/passwd",
        "inside/../../secret",
        "inside/../inside/file",
        "allowed/../../secret",
    ] {
        assert!(matches!(folder.read(path), Err(FolderError::Outside { .. })), "{path}: {:?}", folder.read(path));
        let described = describe(&house, path);
        assert!(matches!(described, Err(ArtifactError::Folder(FolderError::Outside { .. }))), "{path}: {described:?}");
    }
    for path in ["inside/file", "./inside//file", "allowed/file", "inside/back"] {
        let (mut file, size) = folder.read(path).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), size), ("in", 2), "{path}");
    }
}

#[test]
fn what_cannot_be_an_artifact_says_why() {
    let house = House::new();
    house.write("file", "x");
    assert!(Command::new("mkfifo").arg(house.workspace.join("pipe")).status().unwrap().success());
    let words = |path: &str| describe(&house, path).unwrap_err().to_string();
    assert_eq!(words("none"), "nothing is at none in the workspace");
    assert_eq!(words("file/x"), "nothing is at file/x in the workspace");
    assert_eq!(words("pipe"), "pipe is neither a file nor a folder");
    assert_eq!(words("a\0b"), "a\0b cannot be read: Invalid argument (os error 22)");
    let whole = "the whole workspace is no artifact; name a file or a folder in it";
    assert_eq!((words("").as_str(), words(".").as_str()), (whole, whole));
    assert_eq!(words("../x"), "../x leads out of the workspace; name something inside it, by a path from its root");
    let error = artifact_from_file("art_1".into(), &house.workspace.join("gone"), "file", None, None).unwrap_err();
    assert!(error.to_string().ends_with("gone cannot be opened: No such file or directory (os error 2)"), "{error}");
    let folder = Folder::open(&house.workspace).unwrap();
    assert_eq!(folder.read(".").unwrap_err().to_string(), ". is a folder; name a file in it");
}
