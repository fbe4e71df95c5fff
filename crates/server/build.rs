//! Puts the page that `web/` builds into the binary: a table of its files, and `cfg(web_ui)` if there are any.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rustc-check-cfg=cfg(web_ui)");
    let dist = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("../../web/dist");
    // The folder is in the repository, empty, so that cargo has something to watch.
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    if dist.join("index.html").exists() {
        println!("cargo::rustc-cfg=web_ui");
        find(&dist, &mut files)?;
        files.sort();
    }
    let mut table = "&[\n".to_owned();
    for path in &files {
        let name = path.strip_prefix(&dist).map_err(io::Error::other)?;
        let _ = writeln!(table, "({name:?}, include_bytes!({path:?})),");
    }
    table.push_str("]\n");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("built.rs"), table)
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
