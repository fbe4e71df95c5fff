//! The web, as the agent may see it: pages that it fetches, and a search engine that somebody configured.
//!
//! **No address is connected to that was not judged.** A name is looked up once, every address of it is judged, and the
//! connection is made to those addresses and no others, so that a name cannot be one thing when it is judged and another
//! when it is used. Each redirect is a new request with the same judgement. Proxies of the environment are not used for
//! pages: a proxy looks names up by itself, and nobody would judge what it finds.

mod body;
mod charset;
mod page;
mod reach;
mod search;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

pub use search::{Engine, Search};
pub use tolka_workspace::address::{Allowed, NoPlace, Place};

pub(super) use charset::decoded;
pub(super) use page::{Shape, told};
pub(super) use reach::{Answer, Arrived, host, step, url, wanting};

/// What the agent is given of the web.
#[derive(Debug, Clone)]
pub struct Web {
    /// Places of this machine or its network that may be fetched from.
    pub allowed: Allowed,
    /// `None`: there is no search.
    pub search: Option<Arc<Search>>,
    pub names: Arc<dyn Names>,
}

impl Default for Web {
    fn default() -> Self {
        Web { allowed: Allowed::default(), search: None, names: Arc::new(SystemNames) }
    }
}

pub type LookedUp = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Who knows the addresses of a name.
pub trait Names: fmt::Debug + Send + Sync {
    fn look_up(&self, name: &str) -> LookedUp;
}

/// As this machine looks them up.
#[derive(Debug, Clone, Copy)]
pub struct SystemNames;

impl Names for SystemNames {
    fn look_up(&self, name: &str) -> LookedUp {
        let name = name.to_owned();
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect()) })
    }
}
