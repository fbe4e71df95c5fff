//! Endings of file names, and what they say.

use std::path::Path;

use tolka_facts::event::ArtifactKind::{
    self, Code, Document, File, Image, Markdown, Pdf, Presentation, Spreadsheet, WebApp,
};

const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const PPTX: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation";
const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

/// Ending, kind, type.
const TABLE: &[(&str, ArtifactKind, &str)] = &[
    ("avif", Image, "image/avif"),
    ("bmp", Image, "image/bmp"),
    ("gif", Image, "image/gif"),
    ("ico", Image, "image/x-icon"),
    ("jpeg", Image, "image/jpeg"),
    ("jpg", Image, "image/jpeg"),
    ("png", Image, "image/png"),
    ("svg", Image, "image/svg+xml"),
    ("tif", Image, "image/tiff"),
    ("tiff", Image, "image/tiff"),
    ("webp", Image, "image/webp"),
    ("htm", WebApp, "text/html"),
    ("html", WebApp, "text/html"),
    ("markdown", Markdown, "text/markdown"),
    ("md", Markdown, "text/markdown"),
    ("mdx", Markdown, "text/markdown"),
    ("doc", Document, "application/msword"),
    ("docx", Document, DOCX),
    ("odt", Document, "application/vnd.oasis.opendocument.text"),
    ("rtf", Document, "application/rtf"),
    ("odp", Presentation, "application/vnd.oasis.opendocument.presentation"),
    ("ppt", Presentation, "application/vnd.ms-powerpoint"),
    ("pptx", Presentation, PPTX),
    ("csv", Spreadsheet, "text/csv"),
    ("ods", Spreadsheet, "application/vnd.oasis.opendocument.spreadsheet"),
    ("tsv", Spreadsheet, "text/tab-separated-values"),
    ("xls", Spreadsheet, "application/vnd.ms-excel"),
    ("xlsm", Spreadsheet, "application/vnd.ms-excel.sheet.macroenabled.12"),
    ("xlsx", Spreadsheet, XLSX),
    ("pdf", Pdf, "application/pdf"),
    ("bash", Code, "text/x-shellscript"),
    ("c", Code, "text/x-c"),
    ("cc", Code, "text/x-c++"),
    ("cpp", Code, "text/x-c++"),
    ("cs", Code, "text/x-csharp"),
    ("css", Code, "text/css"),
    ("dart", Code, "text/x-dart"),
    ("ex", Code, "text/x-elixir"),
    ("go", Code, "text/x-go"),
    ("h", Code, "text/x-c"),
    ("hpp", Code, "text/x-c++"),
    ("hs", Code, "text/x-haskell"),
    ("ipynb", Code, "application/x-ipynb+json"),
    ("java", Code, "text/x-java"),
    ("js", Code, "text/javascript"),
    ("json", Code, "application/json"),
    ("jsonl", Code, "application/jsonl"),
    ("jsx", Code, "text/javascript"),
    ("kt", Code, "text/x-kotlin"),
    ("less", Code, "text/css"),
    ("lua", Code, "text/x-lua"),
    ("mjs", Code, "text/javascript"),
    ("php", Code, "text/x-php"),
    ("pl", Code, "text/x-perl"),
    ("py", Code, "text/x-python"),
    ("r", Code, "text/x-r"),
    ("rb", Code, "text/x-ruby"),
    ("rs", Code, "text/x-rust"),
    ("scala", Code, "text/x-scala"),
    ("scss", Code, "text/css"),
    ("sh", Code, "text/x-shellscript"),
    ("sql", Code, "application/sql"),
    ("svelte", Code, "text/plain"),
    ("swift", Code, "text/x-swift"),
    ("toml", Code, "application/toml"),
    ("ts", Code, "text/typescript"),
    ("tsx", Code, "text/typescript"),
    ("vue", Code, "text/plain"),
    ("xml", Code, "application/xml"),
    ("yaml", Code, "application/yaml"),
    ("yml", Code, "application/yaml"),
    ("zig", Code, "text/x-zig"),
    ("gz", File, "application/gzip"),
    ("log", File, "text/plain"),
    ("mp3", File, "audio/mpeg"),
    ("mp4", File, "video/mp4"),
    ("tar", File, "application/x-tar"),
    ("txt", File, "text/plain"),
    ("wasm", File, "application/wasm"),
    ("wav", File, "audio/wav"),
    ("webm", File, "video/webm"),
    ("zip", File, "application/zip"),
];

/// Code that has no ending.
const NAMES: &[&str] = &["dockerfile", "justfile", "makefile"];

fn row(name: &str) -> Option<(ArtifactKind, &'static str)> {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    match ending.map(str::to_lowercase) {
        Some(ending) => TABLE.iter().find(|row| row.0 == ending).map(|row| (row.1, row.2)),
        None => NAMES.contains(&name.to_lowercase().as_str()).then_some((Code, "text/plain")),
    }
}

pub(super) fn kind_of(name: &str) -> ArtifactKind {
    row(name).map_or(File, |(kind, _)| kind)
}

pub(super) fn mime_of(name: &str) -> Option<&'static str> {
    row(name).map(|(_, mime)| mime)
}

/// For a file whose kind somebody names and whose ending says nothing.
pub(super) fn usual_mime(kind: ArtifactKind) -> &'static str {
    match kind {
        Markdown => "text/markdown",
        WebApp | ArtifactKind::NextjsApp => "text/html",
        Document => DOCX,
        Presentation => PPTX,
        Spreadsheet => "text/csv",
        Pdf => "application/pdf",
        Code => "text/plain",
        Image | File => "application/octet-stream",
    }
}
