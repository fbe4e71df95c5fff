//! The connection loop: HTTP/1 with small buffers, because a server of streams has many idle connections
//! and each should cost little.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tolka_facts::event::InstanceDisposed;

use crate::app::App;

/// Beside the readers, so many connections for everything else.
const OTHER_CONNECTIONS: usize = 1024;
/// The least that hyper takes; headers beyond it are refused.
const BUFFER: usize = 16 * 1024;
const HEADERS: usize = 64;
/// A client that sends its headers slower than this is not one of ours.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// Streams end at once when told to; a request that is still being answered gets this long.
const LAST_WORDS: Duration = Duration::from_secs(3);

pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    app: App,
    shutdown: impl Future<Output = ()>,
    stop: watch::Sender<bool>,
) {
    let places = Arc::new(Semaphore::new(app.config.max_readers + OTHER_CONNECTIONS));
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        while connections.try_join_next().is_some() {}
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    // Without a place the connection is closed at once: better than a client that hangs.
                    if let Ok(place) = places.clone().try_acquire_owned() {
                        let connection = connection(socket, router.clone(), stop.subscribe());
                        connections.spawn(async move {
                            connection.await;
                            drop(place);
                        });
                    }
                }
                Err(error) => {
                    // Out of file descriptors, most likely: wait for some to come back.
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    // Turns end first, so that their streams can still tell it.
    let disposed = InstanceDisposed { directory: app.config.workspace.display().to_string() };
    if let Err(error) = app.desk.note(disposed).await {
        tracing::error!(%error, "the shutdown could not be noted");
    }
    app.desk.shut_down().await;
    stop.send_replace(true);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if timeout(LAST_WORDS, all_ended).await.is_err() {
        connections.shutdown().await;
    }
}

async fn connection(socket: TcpStream, router: Router, mut stopping: watch::Receiver<bool>) {
    // Frames are gathered before they are written; waiting for more would only delay them.
    let _ = socket.set_nodelay(true);
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_headers(HEADERS)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(socket), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // A sender that is gone means a server that is gone.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}
