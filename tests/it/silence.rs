//! A server that takes a connection and never answers: Ctrl-C ends the wait within a second.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::real::sandbox;

/// What the server does before it falls silent.
const STAGES: [(&str, &str); 3] = [
    ("nothing", ""),
    ("the head of an answer", "HTTP/1.1 200 OK\r\n"),
    ("half a page", "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 999\r\n\r\n<html>"),
];

#[test]
fn a_signal_ends_the_wait_for_a_silent_index() {
    let warm = sandbox();
    warm.run(&["toolchain", "install"]).assert_code(0);
    for (stage, words) in STAGES {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let index = format!("http://{}/simple", listener.local_addr().unwrap());
        let sandbox = sandbox().var("UV_DEFAULT_INDEX", &index);
        let recipe = format!(
            "schema = 1\n[package]\nname = \"silent\"\nversion = \"1\"\n[source]\npypi = \"silent==1\"\nsha256 = \"{}\"\n",
            "0".repeat(64)
        );
        sandbox.file("silent.toml", &recipe);
        let mut command = sandbox.command(&["build", "./silent.toml", "--arch", "9.0"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        listener.set_nonblocking(true).unwrap();
        let since = Instant::now();
        let mut stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(_) if since.elapsed() < Duration::from_mins(1) => std::thread::sleep(Duration::from_millis(20)),
                Err(error) => panic!("{stage}: nobody asked: {error}: {:?}", child.wait_with_output().unwrap()),
            }
        };
        stream.write_all(words.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let asked = Instant::now();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        let took = asked.elapsed();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(130), "{stage}: {said}");
        assert!(took < Duration::from_secs(1), "{stage}: {took:?}: {said}");
    }
}
