//! From a network of its own to the server's proxy: a port of the loopback inside, a socket that leads outside.
//!
//! Run by the keeper inside, which commands can neither look into nor end. It understands nothing of what it passes on.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

/// Where the proxy's socket is, inside.
pub(super) const SOCKET: &str = "/run/tolka-proxy";

/// At the same time; each takes two small threads.
const MOST: usize = 64;

const STACK: usize = 64 << 10;

pub(super) fn begin(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let open = Arc::new(AtomicUsize::new(0));
    small_thread(move || {
        for inner in listener.incoming().flatten() {
            // One too many is closed, which is what a busy machine would do.
            if open.load(Ordering::Relaxed) >= MOST {
                continue;
            }
            open.fetch_add(1, Ordering::Relaxed);
            let open = open.clone();
            let passed = small_thread(move || {
                let _ = pass(&inner);
                open.fetch_sub(1, Ordering::Relaxed);
            });
            if passed.is_err() {
                return;
            }
        }
    })
    .map(drop)
}

fn pass(inner: &TcpStream) -> io::Result<()> {
    let outer = UnixStream::connect(SOCKET)?;
    let (from, to) = (inner.try_clone()?, outer.try_clone()?);
    let up = small_thread(move || {
        let _ = io::copy(&mut &from, &mut &to);
        let _ = to.shutdown(Shutdown::Write);
    })?;
    let _ = io::copy(&mut &outer, &mut &*inner);
    let _ = inner.shutdown(Shutdown::Write);
    let _ = up.join();
    Ok(())
}

fn small_thread(work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().stack_size(STACK).spawn(work)
}
