//! Artifacts: the document's ten types, and where a client finds the file.

use serde::Serialize;
use serde_json::Value;
use tolka_facts::event::{ArtifactKind, ArtifactSaved};
use tolka_facts::{ArtifactId, SessionId, uri_path};

use super::encode::in_workspace;

#[derive(Debug, Serialize)]
pub(super) struct Artifact<'a> {
    id: &'a str,
    r#type: &'static str,
    name: &'a str,
    path: &'a str,
    preview_url: Option<&'a str>,
    /// Only what is in the workspace can be downloaded.
    download_url: Option<String>,
    mime_type: &'a str,
    size_bytes: u64,
}

impl<'a> Artifact<'a> {
    pub(super) fn new(saved: &'a ArtifactSaved, session: &SessionId, workspace: &str) -> Self {
        let path = in_workspace(&saved.path, workspace);
        Artifact {
            id: saved.id.as_str(),
            r#type: type_of(saved),
            name: &saved.name,
            path,
            preview_url: saved.preview.as_deref(),
            download_url: (!leads_out(path)).then(|| download_url(session, path)),
            mime_type: &saved.mime,
            size_bytes: saved.size,
        }
    }
}

fn type_of(saved: &ArtifactSaved) -> &'static str {
    match saved.kind {
        ArtifactKind::WebApp | ArtifactKind::NextjsApp => "web_app",
        ArtifactKind::Markdown => "markdown",
        ArtifactKind::Image => "image",
        ArtifactKind::Spreadsheet if is_plain_table(saved) => "csv",
        ArtifactKind::Spreadsheet => "excel",
        ArtifactKind::Presentation => "pptx",
        ArtifactKind::Document => "docx",
        ArtifactKind::Pdf => "pdf",
        ArtifactKind::Code => "code",
        ArtifactKind::File => "other",
    }
}

fn is_plain_table(saved: &ArtifactSaved) -> bool {
    let extension = saved.path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    saved.mime.starts_with("text/csv") || matches!(extension.as_deref(), Some("csv" | "tsv"))
}

fn read_type(name: &str) -> ArtifactKind {
    match name {
        "web_app" => ArtifactKind::WebApp,
        "markdown" => ArtifactKind::Markdown,
        "image" => ArtifactKind::Image,
        "csv" | "excel" => ArtifactKind::Spreadsheet,
        "pptx" => ArtifactKind::Presentation,
        "docx" => ArtifactKind::Document,
        "pdf" => ArtifactKind::Pdf,
        "code" => ArtifactKind::Code,
        _ => ArtifactKind::File,
    }
}

/// `None` if it is no artifact at all.
pub(super) fn read(artifact: &Value) -> Option<ArtifactSaved> {
    let text = |name: &str| artifact[name].as_str().map(str::to_owned);
    Some(ArtifactSaved {
        id: ArtifactId::from(text("id")?),
        kind: read_type(artifact["type"].as_str().unwrap_or_default()),
        name: text("name").unwrap_or_default(),
        path: text("path").unwrap_or_default(),
        mime: text("mime_type").unwrap_or_else(|| "application/octet-stream".to_owned()),
        size: artifact["size_bytes"].as_u64().unwrap_or_default(),
        preview: text("preview_url"),
    })
}

fn download_url(session: &SessionId, path: &str) -> String {
    format!("/api/build/sessions/{session}/artifacts/{}", uri_path(path))
}

/// Whether a path that stands in a workspace leaves it, by the look of it: links are for whoever reads the file.
fn leads_out(path: &str) -> bool {
    let mut depth = 0;
    path.starts_with('/')
        || path.split('/').any(|name| {
            depth += match name {
                "" | "." => 0,
                ".." => -1,
                _ => 1,
            };
            depth < 0
        })
}
