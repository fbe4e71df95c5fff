//! `webfetch`: a page of the web as Markdown, as plain text or as it is; or a picture.
//!
//! Leave is for a host. A redirect to another one is followed if that one needs no leave, or was given it; else the call
//! says where the page is, and the model can ask for it by its own name.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tolka_facts::{Block, ToolContent};

use super::act::{Act, Done, Stop};
use super::ask::{self, Want};
use super::field::{FORMAT, Fields, TIMEOUT, URL};
use super::read::fields as map;
use super::read::kind::{Kind, PICTURE};
use super::{Call, Tools};
use crate::native::permission::{Leave, literal};
use crate::native::web::{self, Answer, Arrived, Shape};

/// For all of it, redirects and body.
const USUAL: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(120);
const REDIRECTS: usize = 5;
/// What is kept of a page. The model is sent less; see [`super::outcome`].
const KEPT: usize = 512 * 1024;
/// Of the page that comes with an error.
const SHOWN: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Markdown,
    Text,
    Html,
}

impl Format {
    fn of(fields: &Fields) -> Result<Self, Stop> {
        match fields.words(FORMAT).as_deref() {
            None | Some("markdown" | "md") => Ok(Format::Markdown),
            Some("text" | "txt") => Ok(Format::Text),
            Some("html") => Ok(Format::Html),
            Some(_) => Err(Stop::failed("`format` is `markdown`, `text` or `html`")),
        }
    }

    fn accept(self) -> &'static str {
        match self {
            Format::Markdown => "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5",
            Format::Text => "text/plain, text/html;q=0.9, text/markdown;q=0.8, */*;q=0.5",
            Format::Html => "text/html, application/xhtml+xml;q=0.9, */*;q=0.5",
        }
    }
}

/// Whether the rules let everybody fetch from there.
pub(super) fn is_free(tools: &Tools, call: &Call) -> bool {
    let url = Fields::of(&call.input).and_then(|fields| fields.need_words(URL));
    url.is_ok_and(|url| web::url(&url).is_ok_and(|url| ask::is_free(tools, "webfetch", &web::host(&url))))
}

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let url = web::url(&fields.need_words(URL)?).map_err(Stop::Failed)?;
    let format = Format::of(fields)?;
    // In seconds, as OpenCode has it. What can only be meant as milliseconds is.
    let wanted =
        fields.number(TIMEOUT)?.map(|n| if n >= 1000 { Duration::from_millis(n) } else { Duration::from_secs(n) });
    let time = wanted.filter(|time| !time.is_zero()).unwrap_or(USUAL).min(LONGEST);
    let host = web::host(&url);
    let want = Want {
        permission: "webfetch",
        subjects: vec![host.clone()],
        title: format!("Fetch {url}"),
        metadata: json!({ "url": url.as_str(), "host": host, "format": format!("{format:?}").to_lowercase() }),
        always: vec![literal(&host)],
    };
    act.leave(want, &[]).await?;
    act.running_for_good(url.as_str(), &[]).await?;
    let fetching = timeout(time, fetch(act, &url, format));
    tokio::select! {
        fetched = fetching => fetched.unwrap_or_else(|_| {
            Err(Stop::Failed(format!("{host} took longer than {} seconds, so it was given up", time.as_secs())))
        }),
        () = act.scene.cancel.fired() => Err(Stop::Cancelled(None)),
    }
}

async fn fetch(act: &Act<'_>, url: &Url, format: Format) -> Result<Done, Stop> {
    let (web, head) = (&act.tools.settings.web, web::wanting(format.accept()));
    let mut at = url.clone();
    for _ in 0..=REDIRECTS {
        match web::step(web, &at, &head).await.map_err(Stop::Failed)? {
            Answer::Here(arrived) => return read(url, &at, arrived, format).await,
            Answer::Moved(to) => {
                let leave = act.tools.settings.rules.leave("webfetch", &web::host(&to));
                let may_go = match leave {
                    Leave::Deny => false,
                    Leave::Allow => true,
                    Leave::Ask => is_same(&at, &to) || act.is_granted_host(&web::host(&to)).await?,
                };
                if !may_go {
                    return Err(Stop::Failed(format!(
                        "{at} redirects to {to}, which is another host; call webfetch with that URL to ask for it"
                    )));
                }
                at = to;
            }
        }
    }
    Err(Stop::Failed(format!("{url} redirects more than {REDIRECTS} times, so it was given up at {at}")))
}

/// Whether leave for the one is leave for the other: `example.com` and `www.example.com` are one place to everybody.
fn is_same(one: &Url, other: &Url) -> bool {
    let bare = |url: &Url| web::host(url).trim_start_matches("www.").to_owned();
    bare(one) == bare(other)
}

/// What a body is, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
enum Sort {
    Page,
    Text,
    Picture,
    /// Nobody said, so its bytes tell.
    Unsaid,
    Other,
}

fn sort(mime: Option<&str>) -> Sort {
    let Some(mime) = mime else { return Sort::Unsaid };
    match mime {
        "text/html" | "application/xhtml+xml" => Sort::Page,
        "image/png" | "image/jpeg" | "image/jpg" | "image/gif" | "image/webp" => Sort::Picture,
        "application/octet-stream" | "binary/octet-stream" => Sort::Unsaid,
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/ecmascript"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/x-sh"
        | "application/graphql"
        | "application/sql"
        | "application/x-ndjson"
        | "application/jsonl"
        | "application/rtf" => Sort::Text,
        mime if mime.starts_with("text/") || mime.ends_with("+json") || mime.ends_with("+xml") => Sort::Text,
        _ => Sort::Other,
    }
}

async fn read(asked: &Url, at: &Url, arrived: Arrived, format: Format) -> Result<Done, Stop> {
    let (status, mime, charset) = (arrived.status, arrived.mime.clone(), arrived.charset.clone());
    let shown = mime.as_deref().unwrap_or("of no said type").to_owned();
    let sort = sort(mime.as_deref());
    if sort == Sort::Other && (200..300).contains(&status) {
        return Err(Stop::Failed(format!(
            "{at} is {shown}, which cannot be read as text; only pages, text and pictures can"
        )));
    }
    let body = arrived.body().await.map_err(|why| Stop::Failed(format!("{at}: {why}")))?;
    // To convert a page takes a while, and a hostile one a longer while.
    let told = Told { asked: asked.clone(), at: at.clone(), status, mime, charset };
    tokio::task::spawn_blocking(move || told.of(sort, &body.bytes, body.is_cut, format))
        .await
        .map_err(|error| Stop::Failed(format!("the tool broke: {error}")))?
}

/// What is known of a page beside its content.
struct Told {
    asked: Url,
    at: Url,
    status: u16,
    mime: Option<String>,
    charset: Option<String>,
}

impl Told {
    fn of(&self, sort: Sort, bytes: &[u8], is_cut: bool, format: Format) -> Result<Done, Stop> {
        let kind = Kind::of(bytes);
        let what = match (sort, kind) {
            (Sort::Picture | Sort::Unsaid, Kind::Picture(mime)) if (200..300).contains(&self.status) => {
                return self.picture(bytes, mime, is_cut);
            }
            (Sort::Page, _) => Sort::Page,
            (Sort::Unsaid, Kind::Text | Kind::BrokenText) if begins_as_page(bytes) => Sort::Page,
            (Sort::Unsaid, Kind::Binary(what)) if !is_utf16(bytes) => return Err(self.binary(what)),
            (Sort::Text, Kind::Binary(what)) if self.charset.is_none() && !is_utf16(bytes) => {
                return Err(self.binary(what));
            }
            (Sort::Picture | Sort::Other, _) if (200..300).contains(&self.status) => {
                return Err(self.binary("not a picture that can be looked at"));
            }
            (Sort::Text | Sort::Unsaid | Sort::Picture | Sort::Other, _) => Sort::Text,
        };
        let decoded = web::decoded(bytes, self.charset.as_deref());
        let (output, is_long) = match (what, format) {
            (Sort::Page, Format::Markdown) => web::told(&decoded.text, &self.at, Shape::Markdown, KEPT),
            (Sort::Page, Format::Text) => web::told(&decoded.text, &self.at, Shape::Text, KEPT),
            _ => {
                let kept = &decoded.text[..decoded.text.floor_char_boundary(KEPT)];
                (kept.to_owned(), kept.len() < decoded.text.len())
            }
        };
        if !(200..300).contains(&self.status) {
            let said = &output[..output.floor_char_boundary(SHOWN)];
            let said = if said.trim().is_empty() { String::new() } else { format!(" It says:\n{said}") };
            return Err(Stop::Failed(format!("{} answered {}.{said}", self.at, self.status)));
        }
        let mut metadata = self.metadata(bytes.len(), is_cut || is_long);
        metadata.insert("encoding".to_owned(), decoded.encoding.into());
        let note = match (output.trim().is_empty(), is_cut || is_long, decoded.is_broken) {
            (true, ..) => Some("[there are no words on this page]".to_owned()),
            (_, true, _) => Some("[this is only the beginning of it: the rest is too long]".to_owned()),
            (_, _, true) => Some(format!("[some of it is not {}, and is shown as \u{fffd}]", decoded.encoding)),
            _ => None,
        };
        metadata.extend(note.map(|note| ("note".to_owned(), note.into())));
        Ok(Done { title: self.title(), output, metadata, ..Done::default() })
    }

    fn title(&self) -> String {
        format!("{} ({})", self.at, self.mime.as_deref().unwrap_or("of no said type"))
    }

    fn metadata(&self, size: usize, is_cut: bool) -> Map<String, Value> {
        map(json!({
            "url": self.asked.as_str(), "final_url": self.at.as_str(), "status": self.status, "content_type": self.mime,
            "size": size, "truncated": is_cut,
        }))
    }

    fn binary(&self, what: &str) -> Stop {
        Stop::Failed(format!("{} is binary ({what}) and cannot be read as text", self.at))
    }

    fn picture(&self, bytes: &[u8], mime: &'static str, is_cut: bool) -> Result<Done, Stop> {
        if is_cut || bytes.len() > PICTURE {
            return Err(Stop::Failed(format!(
                "{} is a picture ({mime}) of more than {PICTURE} bytes, which is too large",
                self.at
            )));
        }
        let block =
            Block::Image { data: STANDARD.encode(bytes).into(), mime: mime.to_owned(), uri: Some(self.at.to_string()) };
        let output = "Image fetched successfully".to_owned();
        let content = vec![ToolContent::Content { block }];
        Ok(Done {
            title: self.title(),
            output,
            metadata: self.metadata(bytes.len(), false),
            content,
            ..Done::default()
        })
    }
}

fn begins_as_page(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(512)]).to_ascii_lowercase();
    let head = head.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']);
    head.starts_with("<!doctype html") || head.starts_with("<html")
}

/// By its byte order mark.
fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff])
}
