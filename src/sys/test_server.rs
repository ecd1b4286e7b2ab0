//! A tiny HTTP server for tests: fixed answers by path, in order, the last one for ever. Compiled for tests only.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Path, status (0 hangs), content type, body.
type Answer = (String, u16, String, Vec<u8>);

/// A running server; it ends with the test process.
#[derive(Debug)]
pub(crate) struct Server {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<Vec<Answer>>>,
}

impl Server {
    /// Starts with these answers.
    pub(crate) fn start(answers: &[(&str, u16, &str, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { address, requests: Arc::default(), answers: Arc::default() };
        for (path, status, media_type, body) in answers {
            server.answer(path, *status, media_type, body.as_bytes());
        }
        let (requests, answers) = (Arc::clone(&server.requests), Arc::clone(&server.answers));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (requests, answers) = (Arc::clone(&requests), Arc::clone(&answers));
                std::thread::spawn(move || serve(stream, &requests, &answers));
            }
        });
        server
    }

    /// Adds an answer.
    pub(crate) fn answer(&self, path: &str, status: u16, media_type: &str, body: &[u8]) {
        self.answers.lock().unwrap().push((path.to_owned(), status, media_type.to_owned(), body.to_vec()));
    }

    /// The address of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// Every request so far: its first line and headers.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, requests: &Mutex<Vec<String>>, answers: &Mutex<Vec<Answer>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|count| count > 2) {}
    let path = head.split_whitespace().nth(1).unwrap_or_default().to_owned();
    requests.lock().unwrap().push(head);
    let answer = {
        let mut answers = answers.lock().unwrap();
        let matching: Vec<usize> = (0..answers.len()).filter(|index| answers[*index].0 == path).collect();
        match matching[..] {
            [] => (path, 404, String::new(), Vec::new()),
            [only] => answers[only].clone(),
            [first, ..] => answers.remove(first),
        }
    };
    let (_, status, media_type, body) = answer;
    if status == 0 {
        std::thread::sleep(std::time::Duration::from_secs(5));
        return;
    }
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // The client may have hung up by now, which is its right.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}
