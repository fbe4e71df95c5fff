//! The proxy in front of a host of our own, by names that a look-up of our own knows.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use super::*;

/// A host that answers each connection with what it was sent first.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut read = vec![0; 4096];
                let count = client.read(&mut read).await.unwrap_or(0);
                let said = String::from_utf8_lossy(&read[..count]).into_owned();
                let _ = client.write_all(format!("HTTP/1.1 200 OK\r\n\r\nheard: {said}").as_bytes()).await;
            });
        }
    });
    address
}

struct Place {
    proxy: Proxy,
    looked: Arc<AtomicUsize>,
}

/// The first look-up gives what is in `addresses`; every later one this machine, as a name server that lies would.
fn place(hosts: &[&str], addresses: Vec<SocketAddr>) -> Place {
    let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
    let looked = Arc::<AtomicUsize>::default();
    let count = looked.clone();
    let look_up: LookUp = Arc::new(move |_, port| {
        let is_first = count.fetch_add(1, Ordering::Relaxed) == 0;
        let found = if is_first { addresses.clone() } else { vec![SocketAddr::from(([127, 0, 0, 1], port))] };
        Box::pin(async move { Ok(found) })
    });
    Place { proxy: Proxy::looking_up(hosts, Reach::Port, look_up).unwrap(), looked }
}

async fn say(proxy: &Proxy, words: &str) -> String {
    let mut client = TcpStream::connect(("127.0.0.1", proxy.port)).await.unwrap();
    client.write_all(words.as_bytes()).await.unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).await.unwrap();
    said
}

fn authorization(pass: &Pass) -> String {
    // As curl makes it of the name and the password in the proxy's address.
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let plain = format!("tolka:{}", pass.word);
    let mut coded = String::new();
    for three in plain.as_bytes().chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for at in 0..=three.len() {
            coded.push(char::from(LETTERS[(bits >> (18 - 6 * at) & 63) as usize]));
        }
    }
    format!("Proxy-Authorization: Basic {coded}\r\n")
}

#[tokio::test]
async fn a_listed_host_is_reached_by_tunnel_and_by_plain_request() {
    let host = echo().await;
    let (listed, near) = (format!("good.test:{}", host.port()), host.to_string());
    let place = place(&[&listed, &near], vec![host]);
    let (way, pass) = place.proxy.admit(Path::new("/a")).unwrap();
    assert_eq!(way, Way::Proxy { port: place.proxy.port, socket: None });
    let head = authorization(&pass);
    let said = say(&place.proxy, &format!("GET http://{listed}/a?key=1 HTTP/1.1\r\n{head}Accept: x\r\n\r\n")).await;
    assert!(said.contains("heard: GET /a?key=1 HTTP/1.1\r\nHost: good.test:"), "{said}");
    assert!(!said.contains("Proxy-Authorization") && said.contains("Connection: close\r\nAccept: x"), "{said}");
    let said = say(&place.proxy, &format!("CONNECT {listed} HTTP/1.1\r\n{head}\r\nhello")).await;
    assert_eq!(said, "HTTP/1.1 200 Connection Established\r\n\r\nHTTP/1.1 200 OK\r\n\r\nheard: hello");
    assert_eq!(pass.refused(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_not_listed_is_refused_in_words_and_never_looked_up() {
    let place = place(&["good.test", "*.good.test:8080"], vec![echo().await]);
    let (_, pass) = place.proxy.admit(Path::new("/a")).unwrap();
    let head = authorization(&pass);
    for target in
        ["evil.test:443", "good.test:22", "good.test.evil.test:443", "2130706433:80", "a.good.test:443", "0x7f.1:80"]
    {
        let said = say(&place.proxy, &format!("CONNECT {target} HTTP/1.1\r\n{head}\r\n")).await;
        assert!(said.starts_with("HTTP/1.1 403 ") && said.contains(&format!("{target} is not on it")), "{said}");
    }
    assert_eq!(place.looked.load(Ordering::Relaxed), 0);
    assert_eq!(pass.refused().len(), 6);
    for odd in ["CONNECT good.test HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "\r\n\r\n"] {
        assert!(say(&place.proxy, odd).await.starts_with("HTTP/1.1 400 "), "{odd}");
    }
}

#[tokio::test]
async fn a_name_on_the_list_does_not_lead_into_this_machine() {
    let host = echo().await;
    let port = host.port();
    // The name is listed, with its port too, and has only addresses of this machine and its network.
    for listed in [format!("*.good.test:{port}"), format!("inner.good.test:{port}")] {
        let place = place(&[&listed], vec![host, SocketAddr::from(([169, 254, 169, 254], port))]);
        let (_, pass) = place.proxy.admit(Path::new("/a")).unwrap();
        let head = authorization(&pass);
        let said = say(&place.proxy, &format!("CONNECT inner.good.test:{port} HTTP/1.1\r\n{head}\r\n")).await;
        assert!(said.starts_with("HTTP/1.1 403 ") && said.contains("of this machine"), "{listed}: {said}");
        assert_eq!(pass.refused(), [format!("inner.good.test:{port}")]);
    }
}

/// Opens a tunnel and keeps it.
async fn tunnel(proxy: &Proxy, pass: &Pass, target: &str) -> (String, TcpStream) {
    let mut client = TcpStream::connect(("127.0.0.1", proxy.port)).await.unwrap();
    let ask = format!("CONNECT {target} HTTP/1.1\r\n{}\r\n", authorization(pass));
    client.write_all(ask.as_bytes()).await.unwrap();
    let mut line = String::new();
    BufReader::new(&mut client).read_line(&mut line).await.unwrap();
    (line, client)
}

#[tokio::test]
async fn one_workspace_does_not_take_the_room_of_another() {
    let address = echo().await;
    let host = address.to_string();
    let place = place(&[&host], vec![address]);
    let admit = |workspace: &str| place.proxy.admit(Path::new(workspace)).unwrap().1;
    let (one, same, other) = (admit("/a"), admit("/a"), admit("/b"));
    let mut held = Vec::new();
    for at in 0..MOST_OF_ONE {
        let (line, client) = tunnel(&place.proxy, if at % 2 == 0 { &one } else { &same }, &host).await;
        assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
        held.push(client);
    }
    for full in [&one, &same] {
        assert!(tunnel(&place.proxy, full, &host).await.0.starts_with("HTTP/1.1 503 "));
    }
    assert!(tunnel(&place.proxy, &other, &host).await.0.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn those_who_say_nothing_keep_nobody_out() {
    let address = echo().await;
    let host = address.to_string();
    let place = place(&[&host], vec![address]);
    let (_, pass) = place.proxy.admit(Path::new("/a")).unwrap();
    let mut silent = Vec::new();
    for _ in 0..MOST + 100 {
        silent.push(TcpStream::connect(("127.0.0.1", place.proxy.port)).await.unwrap());
    }
    assert!(tunnel(&place.proxy, &pass, &host).await.0.starts_with("HTTP/1.1 200 "));
    // They were not waited for: the first ones had to go, without a word.
    let mut said = String::new();
    silent[0].read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "");
}

#[tokio::test]
async fn it_connects_to_the_address_that_it_judged() {
    // Later look-ups give 127.0.0.1 with the port that is asked for, where nobody listens.
    let host = echo().await;
    let place = place(&["good.test:9", &host.to_string()], vec![host]);
    let (_, pass) = place.proxy.admit(Path::new("/a")).unwrap();
    let said = say(&place.proxy, &format!("CONNECT good.test:9 HTTP/1.1\r\n{}\r\nhello", authorization(&pass))).await;
    assert!(said.ends_with("heard: hello"), "{said}");
    assert_eq!(place.looked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn only_who_has_a_pass_gets_through_and_only_while_it_lasts() {
    let host = echo().await;
    let (listed, near) = (format!("good.test:{}", host.port()), host.to_string());
    let place = place(&[&listed, &near], vec![host]);
    let (_, pass) = place.proxy.admit(Path::new("/a")).unwrap();
    let ask = |head: &str| format!("CONNECT {listed} HTTP/1.1\r\n{head}\r\nhello");
    let wrong = "Proxy-Authorization: Basic dG9sa2E6c2VzYW1l\r\n";
    for head in ["", wrong] {
        assert!(say(&place.proxy, &ask(head)).await.starts_with("HTTP/1.1 407 "), "{head}");
    }
    let head = authorization(&pass);
    assert!(say(&place.proxy, &ask(&head)).await.contains("heard: hello"));
    drop(pass);
    assert!(say(&place.proxy, &ask(&head)).await.starts_with("HTTP/1.1 407 "));
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let place = place(&["good.test"], Vec::new());
    let (_, _pass) = place.proxy.admit(Path::new("/a")).unwrap();
    let client = TcpStream::connect(("127.0.0.1", place.proxy.port)).await.unwrap();
    let (read, mut write) = client.into_split();
    let flood = tokio::spawn(async move { while write.write_all(&[b'x'; 4096]).await.is_ok() {} });
    let mut line = String::new();
    // It may be cut off before the answer is read, with what it had not read itself.
    let _ = BufReader::new(read).read_line(&mut line).await;
    assert!(line.is_empty() || line.starts_with("HTTP/1.1 400 "), "{line}");
    flood.await.unwrap();
}
