//! Files that an agent made, as downloads. They are the agent's words: nothing of them may run on this origin.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path as FilePath;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use tokio::task::spawn_blocking;
use tolka_dialect::onyx_steps::in_workspace;
use tolka_facts::Head;
use tolka_facts::uri_path;
use tolka_journal::Mark;
use tolka_workspace::{Folder, FolderError};

use super::{Answered, find};
use crate::app::App;
use crate::fault::Fault;

const PIECE: usize = 64 * 1024;

/// No system opens a longer path.
const LONGEST_PATH: usize = 4096;

pub(super) async fn download(State(app): State<App>, Path((id, path)): Path<(String, String)>) -> Answered {
    let head = find(&app, &id).await?.head;
    let path = in_workspace(&path, &head.workspace).to_owned();
    let Some(artifact) = Artifact::holding(&app, &head, &path).await? else {
        let words = "No artifact of this session is at that path; GET …/artifacts lists those there are.";
        return Err(Fault::NotFound(words.to_owned()).into());
    };
    let (workspace, wanted) = (head.workspace, path.clone());
    let opened = spawn_blocking(move || artifact.read(&Folder::open(FilePath::new(&workspace))?, &wanted)).await;
    let (file, size) = opened.map_err(|_| Fault::Internal)?.map_err(|error| fault(&error))?;
    let mut response = Response::new(content(file.take(size)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(size));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_DISPOSITION, attachment(&path));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// What a download is of. A workspace holds more than what an agent made for others: keys, for one. So nothing is read
/// but what an artifact is or has in it, and a link in its place, or one that leads out of it, is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Artifact {
    File,
    /// A folder, whose path has this length and ends with a slash.
    Folder(usize),
}

impl Artifact {
    /// The artifact that holds what is at `path`: the outermost folder if there are several, for it shows the most.
    async fn holding(app: &App, head: &Head, path: &str) -> Result<Option<Self>, Fault> {
        if path.len() > LONGEST_PATH {
            return Ok(None);
        }
        for (slash, _) in path.match_indices('/') {
            if is_saved(app, head, &path[..=slash]).await? {
                return Ok(Some(Artifact::Folder(slash + 1)));
            }
        }
        Ok(is_saved(app, head, path).await?.then_some(Artifact::File))
    }

    fn read(self, workspace: &Folder, path: &str) -> Result<(File, u64), FolderError> {
        match self {
            Artifact::File => workspace.read_itself(path),
            Artifact::Folder(length) => {
                let (folder, rest) = path.split_at(length);
                workspace.enter(folder)?.read(rest)
            }
        }
    }
}

/// Agents name what they made by a path in the workspace or by a whole one; both are the same artifact.
async fn is_saved(app: &App, head: &Head, path: &str) -> Result<bool, Fault> {
    let whole = format!("{}/{path}", head.workspace.trim_end_matches('/'));
    let is_known = app.mark(&head.id, Mark::Artifact(path)).await?.is_some();
    Ok(is_known || app.mark(&head.id, Mark::Artifact(&whole)).await?.is_some())
}

/// Read as the client takes it. A file that shrinks meanwhile breaks the body off: its length was promised.
fn content(file: io::Take<File>) -> Body {
    Body::from_stream(futures_util::stream::try_unfold(file, async |mut file| {
        let read = spawn_blocking(move || {
            let mut piece = vec![0; PIECE];
            let read = file.read(&mut piece)?;
            piece.truncate(read);
            Ok::<_, io::Error>((piece, file))
        });
        let (piece, file) = read.await.map_err(io::Error::other)??;
        Ok::<_, io::Error>((!piece.is_empty()).then(|| (Bytes::from(piece), file)))
    }))
}

/// Under its own name, in the form that takes any characters.
fn attachment(path: &str) -> HeaderValue {
    let name = path.rsplit('/').next().unwrap_or_default();
    let value = format!("attachment; filename*=UTF-8''{}", uri_path(name));
    HeaderValue::from_str(&value).unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

fn fault(error: &FolderError) -> Fault {
    let message = error.to_string();
    match error {
        // A file may stand by now where the folder was.
        FolderError::NotFound { .. } | FolderError::IsFile { .. } => Fault::NotFound(message),
        FolderError::Outside { .. } | FolderError::IsLink { .. } => {
            Fault::Forbidden("This path leads out of the artifact; only what is in it can be read.".to_owned())
        }
        FolderError::IsFolder { .. } | FolderError::NoContent { .. } => Fault::BadRequest(message),
        FolderError::Closed { .. } | FolderError::Unreadable { .. } => {
            tracing::warn!(%error, "a file cannot be read");
            Fault::NotFound("This file cannot be read; the server's log says why.".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_out_of_its_header() {
        for (path, value) in [
            ("outputs/a.py", "attachment; filename*=UTF-8''a.py"),
            ("a \"b\"\r\nx: y", "attachment; filename*=UTF-8''a%20%22b%22%0D%0Ax%3A%20y"),
            ("mål.html", "attachment; filename*=UTF-8''m%C3%A5l.html"),
        ] {
            assert_eq!(attachment(path), value);
        }
    }
}
