//! The document's ten types of artifacts, both ways, and where their files are found.

use serde_json::json;
use tolka_facts::event::{ArtifactKind, ArtifactSaved};
use tolka_facts::{ArtifactId, Event};

use crate::{Session, decode, stream};

fn saved(kind: ArtifactKind, path: &str, mime: &str) -> ArtifactSaved {
    ArtifactSaved {
        id: ArtifactId::from("art_1"),
        kind,
        name: "It".into(),
        path: path.into(),
        mime: mime.into(),
        size: 7,
        preview: None,
    }
}

fn types() -> Vec<(&'static str, ArtifactSaved)> {
    use ArtifactKind::*;
    let sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    vec![
        ("web_app", saved(WebApp, "outputs/web/", "text/html")),
        ("markdown", saved(Markdown, "a.md", "text/markdown")),
        ("image", saved(Image, "a.png", "image/png")),
        ("csv", saved(Spreadsheet, "a", "text/csv; charset=utf-8")),
        ("csv", saved(Spreadsheet, "a.TSV", "application/octet-stream")),
        ("excel", saved(Spreadsheet, "a.xlsx", sheet)),
        ("pptx", saved(Presentation, "a.pptx", "application/octet-stream")),
        ("docx", saved(Document, "a.docx", "application/octet-stream")),
        ("pdf", saved(Pdf, "a.pdf", "application/pdf")),
        ("code", saved(Code, "a.rs", "text/plain")),
        ("other", saved(File, "a.bin", "application/octet-stream")),
    ]
}

#[test]
fn all_ten_types_are_told_and_read_back_whole() {
    let mut names: Vec<_> = types().iter().map(|(name, _)| *name).collect();
    names.dedup();
    assert_eq!(names.len(), 10);
    for (name, saved) in types() {
        let mut session = Session::created();
        session.tell(saved.clone());
        assert_eq!(session.packets()[0]["artifact"]["type"], name);
        let read: Vec<_> = decode(&stream(&session.frames())).into_iter().map(|draft| draft.event).collect();
        assert_eq!(read, [Event::from(saved)]);
    }
}

#[test]
fn a_nextjs_app_is_a_web_app() {
    let mut session = Session::created();
    session.tell(saved(ArtifactKind::NextjsApp, "web", "text/html"));
    assert_eq!(session.packets()[0]["artifact"]["type"], "web_app");
}

#[test]
fn addresses_are_safe_in_a_url() {
    let mut session = Session::created();
    let preview = Some("http://localhost:4097/p/1/".to_owned());
    session.tell(ArtifactSaved { preview, ..saved(ArtifactKind::Markdown, "out puts/å?#%.md", "text/markdown") });
    let told = json!({"type": "artifact_created", "artifact": {
        "id": "art_1", "type": "markdown", "name": "It", "path": "out puts/å?#%.md",
        "preview_url": "http://localhost:4097/p/1/",
        "download_url": "/api/build/sessions/ses_retold/artifacts/out%20puts/%C3%A5%3F%23%25.md",
        "mime_type": "text/markdown", "size_bytes": 7}, "timestamp": "2025-01-20T12:00:00.000Z"});
    assert_eq!(session.packets(), [told]);
}

#[test]
fn only_what_is_in_the_workspace_has_an_address() {
    for (path, told, address) in [
        ("outputs/a.md", "outputs/a.md", Some("outputs/a.md")),
        ("/project/outputs/a.md", "outputs/a.md", Some("outputs/a.md")),
        ("outputs/../a.md", "outputs/../a.md", Some("outputs/../a.md")),
        ("/elsewhere/a.md", "/elsewhere/a.md", None),
        ("/projects/a.md", "/projects/a.md", None),
        ("/project/../a.md", "../a.md", None),
        ("outputs/../../a.md", "outputs/../../a.md", None),
    ] {
        let mut session = Session::created();
        session.tell(saved(ArtifactKind::Markdown, path, "text/markdown"));
        let artifact = session.packets()[0]["artifact"].clone();
        let address = address.map(|path| format!("/api/build/sessions/ses_retold/artifacts/{path}"));
        assert_eq!((&artifact["path"], &artifact["download_url"]), (&json!(told), &json!(address)), "{path}");
    }
}
