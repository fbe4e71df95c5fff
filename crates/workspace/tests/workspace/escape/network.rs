//! Ways to the network, where it is on, off, or a list.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::thread;
use std::time::Duration;

use tolka_workspace::command::{Gap, Level, Network, Shell};

use super::shells;
use crate::command::{code, hear, job};

/// A service of this machine: it answers every request in the same words.
fn service() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 2048]);
            let _ = client.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nanswered\n");
        }
    });
    port
}

fn networks(port: u16) -> [Network; 4] {
    let list = |hosts: &[&str]| Network::Only(hosts.iter().map(|host| host.parse().unwrap()).collect());
    let named = format!("localhost:{port}");
    [Network::On, Network::Off, list(&["example.org", "localhost", "*.example.org"]), list(&[&named])]
}

async fn run(shell: &Shell, line: &str) -> (String, tolka_workspace::command::Exit) {
    let workspace = tempfile::tempdir().unwrap();
    hear(&mut shell.start(&job(workspace.path(), line)).unwrap()).await
}

fn each(port: u16) -> Vec<Shell> {
    let mut all = Vec::new();
    for level in shells().iter().map(Shell::level) {
        let keeper = std::path::Path::new(env!("CARGO_BIN_EXE_tolka-keeper"));
        all.extend(networks(port).map(|network| Shell::at(keeper, level).unwrap().reaching(network).unwrap()));
    }
    all
}

#[tokio::test]
async fn connections_go_only_where_they_may() {
    let port = service();
    for shell in each(port) {
        let gaps = shell.gaps();
        let is_open = [Gap::Anything, Gap::Network, Gap::Connections].iter().any(|gap| gaps.contains(gap));
        // Past every proxy: what a program does that knows of none, or wants to know of none.
        let lines = [
            format!("curl -s --noproxy '*' --max-time 10 http://127.0.0.1:{port}/"),
            format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo GET / >&3 && cat <&3"),
        ];
        for line in lines {
            let (said, exit) = run(&shell, &line).await;
            let (level, network) = (shell.level(), shell.network().name());
            assert_eq!(said.contains("answered"), is_open, "{level:?} {network}: {line}: {said} {exit:?}");
        }
    }
}

#[tokio::test]
async fn datagrams_go_only_where_they_may() {
    for shell in each(1) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let gaps = shell.gaps();
        let is_open = [Gap::Anything, Gap::Network, Gap::Datagrams].iter().any(|gap| gaps.contains(gap));
        // As a question to a name server would go.
        run(&shell, &format!("echo question >/dev/udp/127.0.0.1/{port}")).await;
        // It has been sent when the command has ended, or never will be.
        socket.set_read_timeout(Some(Duration::from_millis(if is_open { 10_000 } else { 100 }))).unwrap();
        let got = socket.recv(&mut [0; 64]).is_ok();
        assert_eq!(got, is_open, "{:?} {}", shell.level(), shell.network().name());
    }
}

#[tokio::test]
async fn what_is_on_the_list_is_reached_and_all_else_is_told() {
    let port = service();
    for shell in each(port).iter().filter(|shell| shell.level() != Level::None) {
        let level = shell.level();
        let Network::Only(hosts) = shell.network() else { continue };
        let is_named = hosts[0].to_string() == format!("localhost:{port}");
        let curl = format!("curl -s --max-time 20 http://localhost:{port}/");
        if is_named {
            assert_eq!(run(shell, &curl).await, ("answered\n".to_owned(), code(0)), "{level:?}");
            // Another name for the same place is another place.
            let (said, exit) = run(shell, &format!("curl -s --noproxy '' http://127.0.0.1:{port}/")).await;
            assert!(said.contains("not on it"), "{level:?}: {said}");
            assert_eq!(exit.refused, [format!("127.0.0.1:{port}")]);
            continue;
        }
        for (host, why) in [
            (format!("localhost:{port}"), "is not on it"),
            (format!("2130706433:{port}"), "is not on it"),
            (format!("0x7f000001:{port}"), "is not on it"),
            ("localhost".to_owned(), "of this machine"),
            ("metadata.google.internal".to_owned(), "is not on it"),
            ("169.254.169.254".to_owned(), "is not on it"),
            ("example.org.evil.test".to_owned(), "is not on it"),
            ("evil.test".to_owned(), "is not on it"),
        ] {
            let (said, exit) = run(shell, &format!("curl -s --noproxy '' --max-time 20 http://{host}/")).await;
            assert!(said.starts_with("Tolka: ") && said.contains(why), "{level:?}: {host}: {said}");
            let port = if host.contains(':') { "" } else { ":80" };
            // Numbers are addresses to curl already, and are told as it asked for them.
            assert_eq!(exit.refused.len(), 1, "{host}{port}: {exit:?}");
        }
        let (said, exit) = run(shell, "curl -sS --max-time 20 https://evil.test/").await;
        assert!(said.contains("403") && exit.refused == ["evil.test:443"], "{said} {exit:?}");
    }
}

#[tokio::test]
async fn what_a_command_serves_itself_it_reaches_where_it_has_a_network_of_its_own() {
    for shell in each(1).iter().filter(|shell| shell.level() == Level::Bubblewrap) {
        let line = "exec 3<>/dev/tcp/127.0.0.1/9 || echo refused";
        assert!(run(shell, line).await.0.contains("refused"));
        assert_eq!(shell.is_reachable(), *shell.network() == Network::On);
    }
}
