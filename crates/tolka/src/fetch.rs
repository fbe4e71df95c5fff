//! A request to any server, ours or another's: what `check` judges over HTTP.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub(crate) struct Question<'a> {
    pub(crate) url: &'a str,
    /// JSON to POST; without it this is a GET.
    pub(crate) post: Option<Bytes>,
    pub(crate) headers: &'a [(HeaderName, HeaderValue)],
    pub(crate) token: Option<&'a str>,
}

impl Question<'_> {
    /// The answer as the server gives it: other statuses are answers too, and no redirect is followed.
    pub(crate) async fn ask(self) -> Result<Response<Incoming>> {
        let uri: Uri = self.url.parse().with_context(|| format!("`{}` is no address", self.url))?;
        let host = uri.host().with_context(|| format!("`{}` names no host", self.url))?.to_owned();
        let is_secure = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let request = self.request(&uri, &host)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let socket = TcpStream::connect((host, port)).await.with_context(|| format!("cannot reach {host}:{port}"))?;
        if !is_secure {
            return send(socket, request).await;
        }
        let name = ServerName::try_from(host.to_owned()).with_context(|| format!("`{host}` is no host's name"))?;
        let secured = secure()?.connect(name, socket).await;
        send(secured.with_context(|| format!("no secure connection to {host}"))?, request).await
    }

    fn request(self, uri: &Uri, host: &str) -> Result<Request<Full<Bytes>>> {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let authority = uri.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let method = if self.post.is_some() { Method::POST } else { Method::GET };
        let mut request = Request::builder().method(method).uri(path).body(Full::default())?;
        let headers = request.headers_mut();
        headers.insert(HOST, authority.parse()?);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if self.post.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(token) = self.token {
            headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().context("the token is no header's value")?);
        }
        for (name, value) in self.headers {
            headers.insert(name, value.clone());
        }
        *request.body_mut() = Full::new(self.post.unwrap_or_default());
        Ok(request)
    }
}

async fn send<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Response<Incoming>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // It lives as long as the response's body is read, and its errors come out there.
    tokio::spawn(connection);
    sender.send_request(request).await.context("the server gives no answer")
}

fn secure() -> Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    let (known, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if known == 0 {
        bail!("this system trusts no certificates, so that nothing can be had over https; install its CA certificates");
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions()?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// `name: value`, as people write headers.
pub(crate) fn header(text: &str) -> Result<(HeaderName, HeaderValue)> {
    let (name, value) = text.split_once(':').context("a header is written `name: value`")?;
    Ok((name.trim().parse()?, value.trim().parse()?))
}
