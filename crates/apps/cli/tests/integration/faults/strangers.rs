//! Nobody, or somebody else, answers.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use netaware_netns::{Running, Transport, wait_until_bound};
use netaware_testkit::program::{Finished, free_port, run};
use netaware_units::Span;
use netaware_wire::stranger::Stranger;

#[test]
fn unknown_host_is_named() {
    for command in ["test", "tcp", "udp", "latency"] {
        let failed = cannot_measure(&[command, "no-such-host.invalid"], Span::from_secs(30));
        says(&failed, &["no-such-host.invalid"]);
    }
}

#[test]
fn refused_port_is_told_with_its_address_and_what_to_try() {
    let port = free_port().to_string();
    for command in ["test", "tcp", "udp", "latency"] {
        let failed = cannot_measure(&[command, "127.0.0.1", "--port", &port], Span::from_secs(10));
        says(&failed, &["127.0.0.1", &port, "refused", "serve"]);
    }
}

#[test]
fn web_server_is_recognised() {
    let port = answering(|stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ =
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    });
    is_recognised(&port, Stranger::Http);
}

#[test]
fn ssh_server_is_recognised() {
    let port = answering(|stream| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n");
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"Invalid SSH identification string.\r\n");
    });
    is_recognised(&port, Stranger::Ssh);
}

#[test]
fn iperf3_server_is_recognised_by_its_first_state() {
    const PARAM_EXCHANGE: u8 = 9;
    let port = answering(|stream| {
        if stream.read_exact(&mut [0; 37]).is_ok() {
            let _ = stream.write_all(&[PARAM_EXCHANGE]);
        }
        let _ = stream.read_to_end(&mut Vec::new());
    });
    is_recognised(&port, Stranger::Iperf3);
}

#[test]
fn real_iperf3_server_is_recognised() {
    if Command::new("iperf3").arg("--version").output().is_err() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "iperf3 is missing");
        return eprintln!("SKIPPED: iperf3 is not installed");
    }
    let port = free_port();
    let text = port.to_string();
    let server = Running::start(
        Command::new("iperf3").args(["-s", "-p", &text]).stdout(Stdio::null()).stderr(Stdio::null()),
    )
    .unwrap();
    wait_until_bound(server.id(), Transport::Tcp, port).unwrap();
    is_recognised(&text, Stranger::Iperf3);
}

#[test]
fn program_that_closes_at_once_is_told_as_such() {
    let port = answering(|_| {});
    is_recognised(&port, Stranger::Silent);
}

#[test]
fn program_that_never_says_anything_is_given_up() {
    let port = answering(|stream| drop(stream.read_to_end(&mut Vec::new())));
    let failed = cannot_measure(&["test", "127.0.0.1", "--port", &port], Span::from_secs(10));
    says(&failed, &["127.0.0.1", &port]);
}

#[test]
fn program_that_floods_is_given_up() {
    let port = answering(|stream| while stream.write_all(&[b'x'; 8192]).is_ok() {});
    is_recognised(&port, Stranger::Unknown);
}

/// A program that treats every connection like this, for as long as the test runs; returns its
/// port.
fn answering(treat: fn(&mut TcpStream)) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || treat(&mut stream.unwrap()));
        }
    });
    port.to_string()
}

fn is_recognised(port: &str, stranger: Stranger) {
    for command in ["test", "tcp", "udp", "latency"] {
        let failed = cannot_measure(&[command, "127.0.0.1", "--port", port], Span::from_secs(10));
        says(&failed, &["127.0.0.1", port, stranger.name()]);
    }
}

/// The error is one line: what was tried, where, what came back, what to try.
fn cannot_measure(arguments: &[&str], limit: Span) -> Finished {
    let failed = run(arguments, limit).exits_with(2);
    assert_eq!(failed.stderr.trim().lines().count(), 1, "{failed:#?}");
    failed
}

fn says(failed: &Finished, words: &[&str]) {
    for word in words {
        assert!(failed.stderr.contains(word), "'{word}' is missing: {failed:#?}");
    }
}
