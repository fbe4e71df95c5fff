//! What an agent made and a person may want to look at, described from nothing but where it is.

mod table;

use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use tolka_facts::ArtifactId;
use tolka_facts::event::{ArtifactKind, ArtifactSaved};

use crate::folder::{Folder, FolderError, Found, relative};
use table::{kind_of, mime_of, usual_mime};

/// A `package.json` is far smaller; what is larger is something else.
const MANIFEST_LIMIT: u64 = 1 << 20;
const HTML: &str = "text/html";

#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("the whole workspace is no artifact; name a file or a folder in it")]
    Whole,
}

/// Describes the file or folder at `path`, which is relative to the workspace or absolute and inside it. What is not
/// given is found out: the kind by the ending or by what a folder holds, the name from the path.
pub fn artifact_from_file(
    id: ArtifactId,
    workspace: &Path,
    path: &str,
    kind: Option<ArtifactKind>,
    name: Option<&str>,
) -> Result<ArtifactSaved, ArtifactError> {
    let outside = || FolderError::Outside { path: path.to_owned() };
    let within = Path::new(path).strip_prefix(workspace).ok().and_then(Path::to_str).unwrap_or(path);
    let relative = relative(within).ok_or_else(outside)?;
    let path = relative.to_str().ok_or_else(outside)?;
    let Some(last) = relative.file_name().and_then(|last| last.to_str()) else { return Err(ArtifactError::Whole) };
    let found = Folder::open(workspace)?.find(path)?;
    let given = name.map(str::trim).filter(|name| !name.is_empty());
    match found {
        Found::File(_, size) => {
            let kind = kind.unwrap_or_else(|| kind_of(last));
            let mime = mime_of(last).unwrap_or_else(|| usual_mime(kind)).to_owned();
            let name = given.map_or_else(|| file_name(last, kind), str::to_owned);
            Ok(ArtifactSaved { id, kind, name, path: path.to_owned(), mime, size, preview: None })
        }
        Found::Folder(folder) => {
            let kind = kind.unwrap_or_else(|| kind_of_folder(&folder));
            let is_app = matches!(kind, ArtifactKind::WebApp | ArtifactKind::NextjsApp);
            let mime = if is_app { HTML } else { "inode/directory" }.to_owned();
            let unreadable = |error| FolderError::Unreadable { path: path.to_owned(), error };
            let size = folder.size().map_err(unreadable)?;
            let name = given.map_or_else(|| humane(last), str::to_owned);
            Ok(ArtifactSaved { id, kind, name, path: format!("{path}/"), mime, size, preview: None })
        }
    }
}

#[derive(Deserialize, Default)]
struct Manifest {
    #[serde(default)]
    dependencies: serde_json::Map<String, serde_json::Value>,
    #[serde(default, rename = "devDependencies")]
    dev_dependencies: serde_json::Map<String, serde_json::Value>,
}

fn kind_of_folder(folder: &Folder) -> ArtifactKind {
    let manifest = read_manifest(folder).unwrap_or_default();
    if manifest.dependencies.contains_key("next") || manifest.dev_dependencies.contains_key("next") {
        ArtifactKind::NextjsApp
    } else if matches!(folder.find("index.html"), Ok(Found::File(..))) {
        ArtifactKind::WebApp
    } else {
        ArtifactKind::File
    }
}

/// `None` where there is none, or none that can be understood: then the folder is no app that we know.
fn read_manifest(folder: &Folder) -> Option<Manifest> {
    let (file, _) = folder.read("package.json").ok()?;
    let mut text = Vec::new();
    file.take(MANIFEST_LIMIT).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// People know programs and odd files by their names, and documents by their titles.
fn file_name(last: &str, kind: ArtifactKind) -> String {
    match kind {
        ArtifactKind::Code | ArtifactKind::File => last.to_owned(),
        ArtifactKind::Image
        | ArtifactKind::WebApp
        | ArtifactKind::NextjsApp
        | ArtifactKind::Markdown
        | ArtifactKind::Document
        | ArtifactKind::Presentation
        | ArtifactKind::Spreadsheet
        | ArtifactKind::Pdf => {
            let stem = Path::new(last).file_stem().and_then(|stem| stem.to_str()).unwrap_or(last);
            humane(stem)
        }
    }
}

/// `quarterly_report-2` as a title: `Quarterly report 2`.
fn humane(stem: &str) -> String {
    let spaced = stem.replace(['_', '-'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let mut letters = spaced.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => stem.to_owned(),
    }
}
