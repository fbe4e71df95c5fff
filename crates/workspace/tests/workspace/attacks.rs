//! Ways out of the workspace, and ways to hold its hands up: each fails, changes nothing and says why.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, makedev, mkdirat, mknodat, openat};
use tempfile::TempDir;
use tolka_workspace::files::Files;
use tolka_workspace::search::{Query, glob, grep, list};

const MOST: u64 = 1024 * 1024;

/// A workspace, and beside it a folder with a secret that must never be read or changed.
struct House {
    dir: TempDir,
    files: Files,
}

impl House {
    fn new() -> Self {
        House::within(&std::env::temp_dir())
    }

    fn within(parent: &Path) -> Self {
        let dir = tempfile::tempdir_in(parent).unwrap();
        fs::create_dir_all(dir.path().join("work")).unwrap();
        fs::create_dir_all(dir.path().join("outside")).unwrap();
        fs::write(dir.path().join("outside/secret"), "secret").unwrap();
        let files = Files::open(&dir.path().join("work")).unwrap();
        House { dir, files }
    }

    fn work(&self) -> std::path::PathBuf {
        self.dir.path().join("work")
    }

    fn outside(&self) -> std::path::PathBuf {
        self.dir.path().join("outside")
    }

    /// Reading, writing over, writing anew and removing all fail with these words.
    #[track_caller]
    fn refuses(&self, path: &str, words: &str) {
        let tries = [
            self.files.read(path, MOST).map(drop),
            self.files.write(path, b"x", Some(b"secret")),
            self.files.write(path, b"x", None),
            self.files.remove(path, b"secret"),
        ];
        for (n, tried) in tries.into_iter().enumerate() {
            let error = tried.expect_err(path).to_string();
            assert!(error.contains(words), "{n}: {path}: {error}");
        }
        self.is_untouched();
    }

    #[track_caller]
    fn is_untouched(&self) {
        assert_eq!(fs::read(self.outside().join("secret")).unwrap(), b"secret");
        assert_eq!(fs::read_dir(self.outside()).unwrap().count(), 1);
    }
}

#[test]
fn paths_that_go_up_or_are_elsewhere_are_refused() {
    let house = House::new();
    fs::create_dir(house.work().join("a")).unwrap();
    for path in ["..", "../outside/secret", "a/../../outside/secret", "a/..", "./../outside/secret"] {
        house.refuses(path, "`..` may lead out of the workspace; name it by a path from the workspace's root");
    }
    let inside = house.work().join("../outside/secret");
    house.refuses(inside.to_str().unwrap(), "`..` may lead out of the workspace");
    for path in [house.outside().join("secret").to_str().unwrap(), "/etc/passwd", "/", "//etc/passwd"] {
        house.refuses(path, "leads out of the workspace");
    }
    // A neighbour whose name begins like the workspace's.
    house.refuses(&format!("{}2/x", house.work().display()), "leads out of the workspace");
}

#[test]
fn links_that_lead_out_are_refused_and_those_that_stay_are_written_through() {
    let house = House::new();
    let work = house.work();
    symlink(house.outside().join("secret"), work.join("absolute")).unwrap();
    symlink("../outside/secret", work.join("up")).unwrap();
    symlink("../outside", work.join("folder")).unwrap();
    symlink("../outside/new", work.join("dangling")).unwrap();
    symlink("round", work.join("round")).unwrap();
    for path in ["absolute", "up", "folder/secret", "dangling", "round", "folder/new/deep"] {
        let words = "leads out of the workspace";
        for (n, tried) in [
            house.files.read(path, MOST).map(drop),
            house.files.write(path, b"x", Some(b"secret")),
            house.files.write(path, b"x", None),
            house.files.remove(path, b"secret"),
        ]
        .into_iter()
        .enumerate()
        {
            let error = tried.expect_err(path).to_string();
            assert!(error.contains(words), "{n}: {path}: {error}");
        }
        house.is_untouched();
    }

    fs::create_dir_all(work.join("real/in")).unwrap();
    fs::write(work.join("real/in/file"), "old").unwrap();
    symlink("real/in", work.join("short")).unwrap();
    symlink("../short/../file2", work.join("real/back")).unwrap();
    symlink("short/file", work.join("link")).unwrap();
    house.files.write("link", b"new", Some(b"old")).unwrap();
    assert_eq!(fs::read(work.join("real/in/file")).unwrap(), b"new");
    assert!(work.join("link").is_symlink(), "the link is as it was");
    house.files.write("real/back", b"made", None).unwrap();
    assert_eq!(fs::read(work.join("real/file2")).unwrap(), b"made", "`..` of a link is that of where it leads");
    house.files.remove("link", b"new").unwrap();
    assert!(work.join("real/in/file").exists() && !work.join("link").is_symlink(), "of a link, the link goes");
}

#[test]
fn what_is_swapped_while_files_are_written_leads_nowhere() {
    let house = House::new();
    let work = house.work();
    fs::create_dir(work.join("real")).unwrap();
    fs::write(work.join("real/secret"), "secret").unwrap();
    symlink("../outside", work.join("evil")).unwrap();
    fs::write(work.join("file"), "secret").unwrap();
    symlink("../outside/secret", work.join("evil file")).unwrap();
    let done = AtomicBool::new(false);
    let (mut written, mut refused, swaps) = (0_u32, 0_u32, AtomicU32::new(0));
    // A busy machine may let one of the two threads wait for a long time.
    let is_enough = |written: u32, refused: u32| written > 0 && refused > 0 && swaps.load(Relaxed) > 10;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Each step is one rename, so that the name is there nearly all the time, as a folder or as a link.
            let turn = |name: &str, evil: &str, away: &str| {
                let _ = fs::rename(work.join(name), work.join(away));
                let _ = fs::rename(work.join(evil), work.join(name));
                let _ = fs::rename(work.join(name), work.join(evil));
                let _ = fs::rename(work.join(away), work.join(name));
            };
            while !done.load(Relaxed) {
                turn("real", "evil", "away");
                turn("file", "evil file", "away file");
                swaps.fetch_add(1, Relaxed);
            }
        });
        let (end, last) = (Instant::now() + Duration::from_secs(1), Instant::now() + Duration::from_secs(60));
        let mut n = 0_u64;
        while Instant::now() < end || (Instant::now() < last && !is_enough(written, refused)) {
            n += 1;
            for tried in [
                house.files.write(&format!("real/new{n}"), b"mine", None),
                house.files.write("real/secret", b"secret", Some(b"secret")),
                house.files.write("file", b"secret", Some(b"secret")),
                house.files.remove(&format!("real/new{n}"), b"mine"),
            ] {
                match tried {
                    Ok(()) => written += 1,
                    Err(_) => refused += 1,
                }
            }
            if let Ok(content) = house.files.read("real/secret", MOST) {
                assert_eq!(content, b"secret");
            }
        }
        done.store(true, Relaxed);
    });
    assert!(is_enough(written, refused), "{written} written, {refused} refused, {swaps:?} swaps");
    house.is_untouched();
}

#[test]
fn a_hard_link_to_a_file_outside_is_not_written_through() {
    let house = House::new();
    fs::hard_link(house.outside().join("secret"), house.work().join("hard")).unwrap();
    house.files.write("hard", b"mine", Some(b"secret")).unwrap();
    assert_eq!(fs::read(house.work().join("hard")).unwrap(), b"mine", "this name is replaced");
    house.is_untouched();
    fs::hard_link(house.outside().join("secret"), house.work().join("hard2")).unwrap();
    house.files.remove("hard2", b"secret").unwrap();
    house.is_untouched();
}

#[test]
fn a_repository_of_the_person_is_not_written() {
    let house = House::new();
    let work = house.work();
    fs::create_dir_all(work.join(".git/hooks")).unwrap();
    fs::create_dir_all(work.join("nested")).unwrap();
    fs::write(work.join(".git/config"), "secret").unwrap();
    fs::write(work.join("nested/.git"), "gitdir: ../.git").unwrap();
    // Laid out as a repository, whatever it is called.
    fs::create_dir_all(work.join("bare/objects")).unwrap();
    fs::create_dir_all(work.join("bare/refs")).unwrap();
    for file in ["HEAD", "config"] {
        fs::write(work.join("bare").join(file), "secret").unwrap();
    }
    symlink("bare", work.join("way")).unwrap();
    symlink(".git", work.join("link")).unwrap();
    symlink(".git/config", work.join("config")).unwrap();
    let words = "which is the person's own; use git through a command instead";
    let own =
        [".git/config", ".git/hooks/pre-commit", ".GIT/config", "nested/.git", "link/config", "link/new/deep", ".git"];
    for path in own.into_iter().chain(["bare/config", "bare/hooks/pre-commit", "way/config", "bare/refs/x/y"]) {
        for tried in [
            house.files.write(path, b"x", Some(b"secret")),
            house.files.write(path, b"x", None),
            house.files.remove(path, b"secret"),
        ] {
            let error = tried.expect_err(path).to_string();
            assert!(error.contains(words), "{path}: {error}");
        }
    }
    assert!(house.files.write("config", b"x", Some(b"secret")).unwrap_err().to_string().contains(words));
    assert_eq!(fs::read(work.join(".git/config")).unwrap(), b"secret");
    assert_eq!(fs::read(work.join("bare/config")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(work.join("bare")).unwrap().count(), 4);
    assert_eq!(fs::read_dir(work.join(".git")).unwrap().count(), 2);
    house.files.write(".gitignore", b"x", None).unwrap();
    house.files.write(".github/a", b"x", None).unwrap();
}

#[test]
fn names_that_are_no_line_of_text_are_shown_quoted_and_refused() {
    let house = House::new();
    let work = house.work();
    let refused = "`a\\nb` cannot be used as a path: it holds a line break or another control character";
    for tried in
        [house.files.relative("a\nb").map(drop), house.files.write("a\nb", b"x", None), house.files.remove("a\nb", b"")]
    {
        let error = tried.unwrap_err().to_string();
        assert!(error.contains(refused), "{error}");
    }
    house.refuses("a\0b", "cannot be used as a path");
    house.refuses(&"d/".repeat(3000), "it is longer than 4096 bytes");
    house.refuses(&"x".repeat(300), "File name too long");
    fs::write(work.join("line\nbreak"), "here").unwrap();
    fs::write(work.join(OsStr::from_bytes(b"bro\xffken")), "here").unwrap();
    fs::write(work.join("bro\\xffken"), "other").unwrap();
    let shown = ["\"bro\\xffken\"", "\"line\\nbreak\"", "bro\\xffken"];
    let sorted = |mut items: Vec<String>| {
        items.sort();
        items
    };
    assert_eq!(sorted(list(&work, ".", true, 10).unwrap().items), shown);
    let query = query(&work, "*");
    assert_eq!(sorted(glob(&query).unwrap().items), shown);
    let hits = grep(&Query { pattern: "here", ..query }).unwrap().items;
    assert_eq!(sorted(hits.into_iter().map(|hit| hit.path).collect()), shown[..2]);
    for name in &shown[..2] {
        let error = house.files.read(name, MOST).unwrap_err().to_string();
        assert!(error.contains("nothing is at"), "{error}");
    }
    assert_eq!(house.files.read("bro\\xffken", MOST).unwrap(), b"other");
}

fn query<'a>(workspace: &'a Path, pattern: &'a str) -> Query<'a> {
    Query { workspace, within: ".", pattern, include: None, limit: 100, stop: Arc::new(AtomicBool::new(false)) }
}

#[test]
fn folders_ten_thousand_deep_hold_nothing_up() {
    // Some disks take most of a minute to remove so many folders again.
    let memory = Path::new("/dev/shm");
    let house = if memory.is_dir() { House::within(memory) } else { House::new() };
    let work = house.work();
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let mut at = openat(CWD, &work, flags, Mode::empty()).unwrap();
    for n in 0..10_000 {
        if n == 100 {
            fs::write(work.join(format!("{}found.txt", "d/".repeat(100))), "needle").unwrap();
        }
        mkdirat(&at, "d", Mode::RWXU).unwrap();
        at = openat(&at, "d", flags, Mode::empty()).unwrap();
    }
    let mut file: File = openat(&at, "deepest", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap().into();
    file.write_all(b"needle").unwrap();
    let deep = format!("{}deepest", "d/".repeat(10_000));
    house.refuses(&deep, "it is longer than 4096 bytes");
    let reachable = "d/".repeat(1000);
    house.files.write(&format!("{reachable}file"), b"x", None).unwrap();
    assert_eq!(house.files.read(&format!("{reachable}file"), MOST).unwrap(), b"x");
    let hits = grep(&query(&work, "needle")).unwrap().items;
    assert_eq!(hits.len(), 1, "{hits:?}");
    assert_eq!(glob(&query(&work, "found.txt")).unwrap().items.len(), 1);
    assert!(list(&work, ".", true, 100).unwrap().is_cut);
    // The usual way of removing a folder may not go so deep.
    assert!(Command::new("rm").arg("-rf").arg(&work).status().unwrap().success());
}

#[test]
fn pipes_sockets_and_devices_are_refused_at_once() {
    let house = House::new();
    let work = house.work();
    mknodat(CWD, work.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = UnixListener::bind(work.join("socket")).unwrap();
    let mut paths = vec!["pipe", "socket"];
    match mknodat(CWD, work.join("zero"), FileType::CharacterDevice, Mode::RWXU, makedev(1, 5)) {
        Ok(()) => paths.push("zero"),
        Err(error) => eprintln!("no device can be made here: {error}"),
    }
    for path in paths {
        house.refuses(path, "is neither a file nor a folder");
        assert!(work.join(path).exists());
    }
    symlink("/dev/zero", work.join("link")).unwrap();
    house.refuses("link", "leads out of the workspace");
    assert!(grep(&query(&work, "x")).unwrap().items.is_empty());
}

#[test]
fn a_file_that_grows_while_it_is_read_is_cut_off() {
    let house = House::new();
    let path = house.work().join("log");
    fs::write(&path, "").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = OpenOptions::new().append(true).open(&path).unwrap();
            while !done.load(Relaxed) && file.metadata().unwrap().len() < 500_000_000 {
                file.write_all(&[b'x'; 64 * 1024]).unwrap();
            }
        });
        let refused = loop {
            if let Err(error) = house.files.read("log", 4 * MOST) {
                break error.to_string();
            }
        };
        done.store(true, Relaxed);
        assert!(refused.contains("grew beyond") || refused.contains("at most 4194304 can be used"), "{refused}");
    });
    // What the kernel says is empty, and is not.
    let house = Files::open(Path::new("/proc/self")).unwrap();
    let error = house.read("maps", 10).unwrap_err().to_string();
    assert_eq!(error, "maps grew beyond 10 bytes while it was read; wait until nobody writes to it");
}

/// Not a test of its own: what the next one kills.
#[test]
fn writes_for_ever() {
    let Some(folder) = std::env::var_os("TOLKA_TEST_WRITES_FOR_EVER") else { return };
    let files = Files::open(Path::new(&folder)).unwrap();
    let texts = [vec![b'a'; 300_000], vec![b'b'; 400_000]];
    for n in 0.. {
        files.write("file", &texts[(n + 1) % 2], Some(&texts[n % 2])).unwrap();
    }
}

#[test]
fn a_kill_in_the_middle_of_writes_leaves_the_old_or_the_new_text() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    for n in 0..20 {
        fs::write(&file, vec![b'a'; 300_000]).unwrap();
        let before = fs::metadata(&file).unwrap().modified().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["attacks::writes_for_ever", "--exact"])
            .env("TOLKA_TEST_WRITES_FOR_EVER", dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // It is at work once the file is another.
        while fs::metadata(&file).unwrap().modified().unwrap() == before {
            assert!(child.try_wait().unwrap().is_none(), "it ended");
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_micros(n * 700));
        child.kill().unwrap();
        child.wait().unwrap();
        let text = fs::read(&file).unwrap();
        assert!(text == vec![b'a'; 300_000] || text == vec![b'b'; 400_000], "{} bytes", text.len());
        for entry in fs::read_dir(dir.path()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(name == "file" || tolka_workspace::files::is_leftover(&name), "{name}");
        }
        assert_eq!(list(dir.path(), ".", false, 10).unwrap().items, ["file"], "leftovers are not shown");
    }
}

#[test]
fn a_full_disk_leaves_the_old_text_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(dir.path()).output().unwrap();
    if !mount.status.success() {
        eprintln!("skipped, no small disk can be had here: {}", String::from_utf8_lossy(&mount.stderr));
        return;
    }
    let outcome = std::panic::catch_unwind(|| {
        let files = Files::open(dir.path()).unwrap();
        files.write("file", b"old", None).unwrap();
        let error = files.write("file", &vec![b'x'; 2_000_000], Some(b"old")).unwrap_err().to_string();
        assert!(error.contains("file cannot be written: No space left on device"), "{error}");
        let error = files.write("new/deep/file", &vec![b'x'; 2_000_000], None).unwrap_err().to_string();
        assert!(error.contains("No space left on device"), "{error}");
        assert_eq!(files.read("file", MOST).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        Command::new("mount").args(["-o", "remount,ro"]).arg(dir.path()).status().unwrap();
        let error = files.write("file", b"new", Some(b"old")).unwrap_err().to_string();
        assert!(error.contains("Read-only file system"), "{error}");
        let error = files.remove("file", b"old").unwrap_err().to_string();
        assert!(error.contains("Read-only file system"), "{error}");
        assert_eq!(files.read("file", MOST).unwrap(), b"old");
    });
    assert!(Command::new("umount").arg("-l").arg(dir.path()).status().unwrap().success());
    outcome.unwrap();
}
