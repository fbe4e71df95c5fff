//! Files that an agent made, as downloads. They are the agent's words: nothing of them may run on this origin.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path as FilePath;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use tokio::task::spawn_blocking;
use tolka_facts::Event;
use tolka_workspace::{Folder, FolderError};

use super::{Answered, find};
use crate::app::App;
use crate::fault::Fault;

const PIECE: usize = 64 * 1024;

pub(super) async fn download(State(app): State<App>, Path((id, path)): Path<(String, String)>) -> Answered {
    let head = find(&app, &id).await?.head;
    let mut is_artifact = false;
    app.each_fact(&head.id, 0, |entry| {
        if let Event::ArtifactSaved(saved) = &entry.fact.event {
            is_artifact |= belongs_to(&path, &saved.path);
        }
    })
    .await?;
    if !is_artifact {
        let words = "No artifact of this session is at that path; GET …/artifacts lists those there are.";
        return Err(Fault::NotFound(words.to_owned()).into());
    }
    let (workspace, wanted) = (head.workspace, path.clone());
    let opened = spawn_blocking(move || Folder::open(FilePath::new(&workspace))?.read(&wanted)).await;
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

/// A workspace holds more than what an agent made for others: keys, for one. An artifact that is a folder has all that
/// is in it; whether the path stays in there is for [`Folder`] to see.
fn belongs_to(path: &str, artifact: &str) -> bool {
    path == artifact || (artifact.ends_with('/') && path.starts_with(artifact))
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
    use std::fmt::Write;
    let mut value = "attachment; filename*=UTF-8''".to_owned();
    for byte in path.rsplit('/').next().unwrap_or_default().bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            value.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(value, "%{byte:02X}");
        }
    }
    HeaderValue::from_str(&value).unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

fn fault(error: &FolderError) -> Fault {
    let message = error.to_string();
    match error {
        FolderError::NotFound { .. } => Fault::NotFound(message),
        FolderError::Outside { .. } => Fault::Forbidden(message),
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
