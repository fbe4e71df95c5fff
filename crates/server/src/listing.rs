//! Lists that a wire wants whole, told while they are read: memory holds a piece of them, however long they are.
//!
//! A list that fits into one piece is an answer like any other. Of a longer one the first piece is made before the answer
//! begins, so that most failures have their status; later ones can only break the body off.

use std::io;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde::Serialize;

use crate::app::App;
use crate::fault::Fault;
use crate::request::Seat;
use crate::stream::WRITE;

/// What makes a list, step by step.
pub(crate) trait Lister: Send + 'static {
    /// Puts in what a few hundred facts tell; whether there is more to come.
    fn more(&mut self, items: &mut Items) -> impl Future<Output = Result<bool, Fault>> + Send;
}

#[derive(Debug)]
pub(crate) struct Items {
    bytes: Vec<u8>,
    has_first: bool,
}

impl Items {
    pub(crate) fn push(&mut self, item: &impl Serialize) {
        if std::mem::replace(&mut self.has_first, true) {
            self.bytes.push(b',');
        }
        if let Err(error) = serde_json::to_writer(&mut self.bytes, item) {
            // Rows are structs with names for keys, and a Vec takes every byte.
            tracing::error!(%error, "an item of a list could not be written");
        }
    }
}

/// The answer that has the items between two pieces of JSON.
pub(crate) async fn list(
    app: &App,
    open: &'static str,
    close: &'static str,
    lister: impl Lister,
) -> Result<Response, Fault> {
    let items = Items { bytes: open.into(), has_first: false };
    let mut listing = Listing { lister, items, close, has_more: true };
    let first = listing.piece().await?;
    if !listing.has_more {
        return Ok(json(Body::from(first)));
    }
    let (seat, stopping) = (Seat::take(app)?, app.stopping.clone());
    let state = (listing, Some(first), seat);
    let pieces = futures_util::stream::try_unfold(state, move |(mut listing, first, seat)| {
        let is_stopping = *stopping.borrow();
        async move {
            if is_stopping {
                return Err(io::Error::other("the server is shutting down"));
            }
            let piece = match first {
                Some(first) => first,
                None if listing.has_more => listing.piece().await.map_err(|fault| {
                    tracing::error!(fault = fault.message(), "a list broke off");
                    io::Error::other("the journal cannot be read")
                })?,
                None => return Ok(None),
            };
            Ok(Some((piece, (listing, None, seat))))
        }
    });
    Ok(json(Body::from_stream(pieces)))
}

struct Listing<T> {
    lister: T,
    items: Items,
    close: &'static str,
    has_more: bool,
}

impl<T: Lister> Listing<T> {
    async fn piece(&mut self) -> Result<Bytes, Fault> {
        while self.has_more && self.items.bytes.len() < WRITE {
            self.has_more = self.lister.more(&mut self.items).await?;
        }
        if !self.has_more {
            self.items.bytes.extend_from_slice(self.close.as_bytes());
        }
        Ok(Bytes::from(std::mem::take(&mut self.items.bytes)))
    }
}

fn json(body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
