//! JSON that comes when it is there, for clients that take the end of a turn as the answer to their prompt.
//!
//! Turns last longer than HTTP clients and proxies care to wait for a first byte (five minutes in Node, one
//! in nginx). So an answer that is not there soon begins with spaces, which JSON allows: until then a
//! failure has its own status, from then on it can only break the body off.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio::time::timeout;

use crate::fault::Fault;

/// How long nothing may be said.
const SILENCE: Duration = Duration::from_secs(20);

type Waiting = Pin<Box<dyn Future<Output = Result<Value, Fault>> + Send>>;

pub(crate) async fn answer(
    ending: impl Future<Output = Result<Value, Fault>> + Send + 'static,
) -> Result<Response, Fault> {
    let mut waiting: Waiting = Box::pin(ending);
    match timeout(SILENCE, &mut waiting).await {
        Ok(ended) => Ok(Json(ended?).into_response()),
        Err(_) => Ok(held_open(waiting, SILENCE)),
    }
}

fn held_open(waiting: Waiting, silence: Duration) -> Response {
    let body = futures_util::stream::unfold(Some(waiting), move |waiting| async move {
        let mut waiting = waiting?;
        match timeout(silence, &mut waiting).await {
            Err(_) => Some((Ok(Bytes::from_static(b" ")), Some(waiting))),
            Ok(Ok(value)) => Some((Ok(Bytes::from(value.to_string())), None)),
            Ok(Err(fault)) => Some((Err(io::Error::other(fault.message().to_owned())), None)),
        }
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::json;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_late_begins_with_spaces() {
        let (say, said) = oneshot::channel();
        let waiting: Waiting = Box::pin(async { said.await.map_err(|_| Fault::Internal) });
        let mut body = held_open(waiting, Duration::from_millis(1)).into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, " ");
        say.send(json!({ "info": {}, "parts": [] })).unwrap();
        let rest = body.collect().await.unwrap().to_bytes();
        assert_eq!(serde_json::from_slice::<Value>(&rest).unwrap(), json!({ "info": {}, "parts": [] }));
    }

    #[tokio::test]
    async fn a_failure_that_is_late_breaks_the_body_off() {
        let waiting: Waiting = Box::pin(async { Err(Fault::Failed("no".to_owned())) });
        assert!(held_open(waiting, SILENCE).into_body().collect().await.is_err());
    }
}
