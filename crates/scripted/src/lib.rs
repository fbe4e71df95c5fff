//! A model provider on loopback that says what a [`Script`] says, over the real OpenAI and Anthropic wires.
//!
//! Its bytes are as the providers write them, and it refuses what they refuse: a result without its call, a call
//! without its result, roles out of order, a thought whose signature is missing or changed. So a conversation that
//! it takes is one that they would take.
//!
//! ```no_run
//! use tolka_scripted::{Answer, Script, Scripted};
//! let provider = Scripted::start(Script::of([Answer::text("Hello!")])).unwrap();
//! println!("{}", provider.openai_url());
//! ```

mod script;
mod server;
mod stage;
mod wire;
mod words;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub use script::{Answer, Beat, Call, Counts, Cut, Ending, Order, Reasoning, Script, ScriptError, When};
pub use stage::{Outcome, Received};
pub use wire::Wire;

use stage::Stage;

/// A provider that runs; it ends with this.
#[derive(Debug)]
pub struct Scripted {
    address: SocketAddr,
    stage: Arc<Stage>,
    /// Dropped, it ends the server.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Scripted {
    /// On a free port, in a thread of its own: neither needs nor disturbs the caller's runtime.
    pub fn start(script: Script) -> io::Result<Self> {
        Scripted::start_at(script, 0)
    }

    pub fn start_at(script: Script, port: u16) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stage = Arc::new(Stage::new(script));
        let (stop, stopped) = oneshot::channel();
        let there = Arc::clone(&stage);
        let thread = std::thread::Builder::new().name("scripted".to_owned()).spawn(move || {
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("the runtime has its I/O driver");
                tokio::select! {
                    () = server::serve(listener, there) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Scripted { address, stage, stop: Some(stop), thread: Some(thread) })
    }

    /// `http://127.0.0.1:…`, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base URL for a client of the OpenAI wire.
    pub fn openai_url(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// The base URL for a client of the Anthropic wire.
    pub fn anthropic_url(&self) -> String {
        self.url()
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<Received> {
        self.stage.received()
    }

    /// Waits until what was asked is as wanted.
    pub async fn until(&self, is_so: impl FnMut(&Vec<Received>) -> bool) -> Vec<Received> {
        self.stage.until(is_so).await
    }

    /// Lets answers past their [`Beat::Gate`] of this name, now and later.
    pub fn open(&self, gate: &str) {
        self.stage.open(gate);
    }

    /// Adds answers after those of the script.
    pub fn add(&self, answers: impl IntoIterator<Item = Answer>) {
        self.stage.add(answers);
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has panicked at worst, and has said so.
            let _ = thread.join();
        }
    }
}
