//! A bare hyper server: how soon a program can answer that has nothing to do.

use std::convert::Infallible;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use super::raw::listen;

pub(crate) async fn serve() -> Result<()> {
    let listener = listen().await?;
    loop {
        let (socket, _) = listener.accept().await?;
        tokio::spawn(async move {
            let answer = |_: Request<hyper::body::Incoming>| async {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok"))))
            };
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service_fn(answer))
                .await;
        });
    }
}
