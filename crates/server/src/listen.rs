//! The connection loop: HTTP/1 with small buffers, because a server of streams has many idle connections
//! and each should cost little.

mod socket;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tolka_facts::event::InstanceDisposed;

use self::socket::{Socket, Stall};
use crate::app::App;
use crate::guard::guard;
use crate::request::Resumable;

/// Beside the readers, so many connections for everything else.
const OTHER_CONNECTIONS: usize = 1024;
/// Connections that may wait to be taken: all readers at once after a restart.
const BACKLOG: u32 = 1024;
/// What the kernel may hold for one client. Left alone it grows to 4 MB, and a thousand clients that stand still would hold
/// as many gigabytes; a quarter of a megabyte takes several of the largest pieces that a stream is written in.
const SEND_BUFFER: u32 = 256 * 1024;
/// Headers beyond it are refused. The buffers of an idle connection take 8 KiB each whatever stands here.
const BUFFER: usize = 16 * 1024;
const HEADERS: usize = 64;
/// A client that sends its headers slower than this is not one of ours.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// Streams end at once when told to; a request that is still being answered gets this long.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// What every connection is told.
#[derive(Debug, Clone, Copy, Default)]
struct Order {
    /// Memory is short: who has taken nothing since this moment goes.
    stalled_since: Option<Instant>,
    /// Finish what is being answered, and go.
    stop: bool,
}

pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    // Connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    app: App,
    shutdown: impl Future<Output = ()>,
    stop: watch::Sender<bool>,
) {
    let places = Arc::new(Semaphore::new(app.config.max_readers + OTHER_CONNECTIONS));
    let orders = watch::Sender::new(Order::default());
    let mut pressure = app.tongues.pressure();
    let mut connections = JoinSet::new();
    let router = TowerToHyperService::new(router);
    tokio::pin!(shutdown);
    loop {
        while connections.try_join_next().is_some() {}
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    // Without a place the connection is closed at once: better than a client that hangs.
                    if let Ok(place) = places.clone().try_acquire_owned() {
                        let service = service(app.clone(), router.clone());
                        connections.spawn(connection(socket, service, orders.subscribe(), place));
                    }
                }
                Err(error) => {
                    // Out of file descriptors, most likely: wait for some to come back.
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Ok(()) = pressure.changed() => {
                let stalled_since = *pressure.borrow_and_update();
                orders.send_modify(|order| order.stalled_since = stalled_since);
            }
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
    orders.send_modify(|order| order.stop = true);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if timeout(LAST_WORDS, all_ended).await.is_err() {
        connections.shutdown().await;
    }
}

fn service(
    app: App,
    router: TowerToHyperService<Router>,
) -> impl Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send> {
    service_fn(move |request: Request<Incoming>| {
        // Boxed, so that it is gone when a stream begins: hyper keeps the place of an answer as long as the connection.
        let answer = Box::pin(guard(app.clone(), request.map(Body::new), router.clone()));
        async { Ok(answer.await) }
    })
}

/// `_place` is given back with the connection.
async fn connection<S>(socket: TcpStream, service: S, mut orders: watch::Receiver<Order>, _place: OwnedSemaphorePermit)
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
{
    // Frames are gathered before they are written; waiting for more would only delay them.
    let _ = socket.set_nodelay(true);
    let stall = Stall::default();
    let service = service_fn(|request| {
        let (answer, stall) = (service.call(request), stall.clone());
        async move {
            let Ok(response) = answer.await;
            stall.answers(response.extensions().get::<Resumable>().is_some());
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_headers(HEADERS)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(Socket::new(socket, stall.clone())), service);
    let ended = loop {
        tokio::select! {
            ended = &mut connection => break ended,
            Ok(()) = orders.changed() => {
                let order = *orders.borrow_and_update();
                if order.stop {
                    std::pin::Pin::new(&mut connection).graceful_shutdown();
                } else if stall.is_of_stream() && order.stalled_since.is_some_and(|moment| stall.lasts_since(moment)) {
                    tracing::debug!("a client that takes nothing was cut off: memory is short");
                    connection.into_parts().io.into_inner().cut();
                    return;
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{StreamExt, stream};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::mpsc;

    use super::*;

    async fn connect(
        listener: &TcpListener,
        response: Response<Body>,
        orders: &watch::Sender<Order>,
    ) -> (TcpStream, tokio::task::JoinHandle<()>) {
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        let response = Mutex::new(Some(response));
        let service = service_fn(move |_: Request<Incoming>| {
            let response = response.lock().unwrap().take().unwrap();
            async { Ok::<_, Infallible>(response) }
        });
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let task = tokio::spawn(connection(socket, service, orders.subscribe(), place));
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        (client, task)
    }

    fn told(body: Body) -> Response<Body> {
        let mut response = Response::new(body);
        response.extensions_mut().insert(Resumable);
        response
    }

    async fn read_until(client: &mut TcpStream, word: &str) {
        let mut heard = Vec::new();
        while !String::from_utf8_lossy(&heard).contains(word) {
            assert_ne!(client.read_buf(&mut heard).await.unwrap(), 0, "closed before {word}");
        }
    }

    #[tokio::test]
    async fn when_memory_is_short_streams_that_nobody_takes_are_cut_off_and_nothing_else() {
        const PIECE: usize = 65536;
        const DOWNLOAD: usize = 512;
        let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let orders = watch::Sender::new(Order::default());
        let endless = || stream::repeat_with(|| Ok::<_, Infallible>(vec![7; PIECE]));
        let given = Arc::new(AtomicUsize::new(0));
        let file = endless().take(DOWNLOAD).inspect({
            let given = given.clone();
            move |_| _ = given.fetch_add(1, Ordering::Relaxed)
        });
        let (mut download, spared) = connect(&listener, Response::new(Body::from_stream(file)), &orders).await;
        let (mut stalled, mut cut) = connect(&listener, told(Body::from_stream(endless())), &orders).await;
        let (say, said) = mpsc::channel::<Result<&str, Infallible>>(1);
        let words = stream::unfold(said, async |mut said| Some((said.recv().await?, said)));
        let (mut idle, kept) = connect(&listener, told(Body::from_stream(words)), &orders).await;
        say.send(Ok("first")).await.unwrap();
        read_until(&mut idle, "first").await;

        // Until the kernel's buffers are full it does not stall.
        let pressing = async {
            while !cut.is_finished() {
                orders.send_modify(|order| order.stalled_since = Some(Instant::now()));
                tokio::task::yield_now().await;
            }
            (&mut cut).await.unwrap();
        };
        timeout(Duration::from_secs(30), pressing).await.unwrap();
        let ended = timeout(Duration::from_secs(30), stalled.read_to_end(&mut Vec::new())).await.unwrap();
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::ConnectionReset);

        say.send(Ok("second")).await.unwrap();
        read_until(&mut idle, "second").await;
        assert!(!kept.is_finished());

        assert!(given.load(Ordering::Relaxed) < DOWNLOAD, "the download did not stand still");
        assert!(!spared.is_finished(), "it holds nothing that is short");
        let mut taken = Vec::new();
        while taken.len() < DOWNLOAD * PIECE {
            assert_ne!(download.read_buf(&mut taken).await.unwrap(), 0, "closed after {} bytes", taken.len());
        }
    }
}
