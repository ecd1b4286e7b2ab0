//! HTTP and HTTPS: pages that fit in memory, and files that are checked by digest before they appear.
//!
//! Certificates are the platform's (`SSL_CERT_FILE` included) and proxies come from the usual variables, both through
//! ureq. Invariant: a file with a wrong digest never gets its name. Which address to ask is decided elsewhere.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use camino::Utf8Path;
use fs_err as fs;
use sha2::{Digest as _, Sha256};

use super::signals;
use crate::domain::index::redact;

/// Tries of one request, the first included.
const TRIES: u32 = 3;
/// Longest page taken into memory.
const PAGE_LIMIT: u64 = 64 << 20;
/// Time between two looks for a signal while a peer is silent.
const NAP: Duration = Duration::from_millis(50);

/// How long to wait for a silent peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a connection.
    pub connect: Duration,
    /// For the next bytes of an answer.
    pub silence: Duration,
    /// Before the second try; doubled before the third.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { connect: Duration::from_secs(15), silence: Duration::from_secs(30), pause: Duration::from_millis(500) }
    }
}

/// A page in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Media type, lower case, without parameters.
    pub media_type: String,
    /// Contents.
    pub body: Vec<u8>,
}

/// Why there is no page or file. Addresses in it have lost their passwords.
#[derive(Debug)]
pub enum NetError {
    /// Nobody answered, after all tries.
    Unreachable {
        /// Address.
        url: String,
        /// What the last try met.
        reason: String,
    },
    /// The server said no.
    Status {
        /// Address.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// The bytes are not those that were wanted.
    Digest {
        /// Address.
        url: String,
        /// sha256 wanted.
        wanted: String,
        /// sha256 of what came.
        got: String,
    },
    /// The bytes could not be kept.
    Disk(io::Error),
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { url, reason } => write!(f, "{url} cannot be reached: {reason}"),
            Self::Status { url, status } => write!(f, "{url} answers with HTTP status {status}"),
            Self::Digest { url, wanted, got } => write!(f, "{url} has sha256 {got}, not {wanted}"),
            Self::Disk(error) => write!(f, "the download cannot be written: {error}"),
        }
    }
}

impl std::error::Error for NetError {}

/// A client; connections are kept between requests.
#[derive(Debug, Clone)]
pub struct Client {
    agent: ureq::Agent,
    patience: Patience,
}

impl Client {
    /// A client that waits as long as `patience` says.
    pub fn new(patience: Patience) -> Self {
        let roots = ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::PlatformVerifier).build();
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .user_agent(concat!("cuwright/", env!("CARGO_PKG_VERSION")))
            .tls_config(roots)
            .timeout_connect(Some(patience.connect))
            .timeout_recv_response(Some(patience.silence))
            .timeout_per_read(Some(patience.silence))
            .build();
        Self { agent: ureq::Agent::new_with_config(config), patience }
    }

    /// Gets a page. `accept` is the value of that header.
    pub fn page(&self, url: &str, accept: &str) -> Result<Page, NetError> {
        self.again(url, || {
            let (client, url, accept) = (self.clone(), url.to_owned(), accept.to_owned());
            let page = aside(move |sender| {
                let _ = sender.send(client.read_page(&url, &accept));
            })?;
            next(&page)?.unwrap_or_else(|| Err(NetError::Disk(io::ErrorKind::UnexpectedEof.into())))
        })
    }

    fn read_page(&self, url: &str, accept: &str) -> Result<Page, NetError> {
        let mut response = self.get(url, accept)?;
        let media_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let media_type = media_type.and_then(|value| value.split(';').next()).unwrap_or_default();
        let media_type = media_type.trim().to_ascii_lowercase();
        let body = response.body_mut().with_config().limit(PAGE_LIMIT).read_to_vec();
        Ok(Page { media_type, body: body.map_err(|error| failed(url, &error))? })
    }

    /// Downloads a file to `path`, where it appears whole and with the right `sha256` or not at all.
    pub fn file(&self, url: &str, path: &Utf8Path, sha256: &str) -> Result<(), NetError> {
        let folder = path.parent().unwrap_or(Utf8Path::new("/"));
        fs::create_dir_all(folder).map_err(NetError::Disk)?;
        self.again(url, || {
            let mut staged =
                tempfile::Builder::new().prefix(".download-").tempfile_in(folder).map_err(NetError::Disk)?;
            let mut hasher = Sha256::new();
            let (client, address) = (self.clone(), url.to_owned());
            let pieces = aside(move |sender| {
                if let Err(error) = client.pieces(&address, sender) {
                    let _ = sender.send(Err(error));
                }
            })?;
            while let Some(piece) = next(&pieces)? {
                let piece = piece?;
                hasher.update(&piece);
                staged.write_all(&piece).map_err(NetError::Disk)?;
            }
            let got = hex::encode(hasher.finalize());
            if !got.eq_ignore_ascii_case(sha256) {
                return Err(NetError::Digest { url: redact(url), wanted: sha256.to_owned(), got });
            }
            staged.persist(path).map_err(|error| NetError::Disk(error.error))?;
            Ok(())
        })
    }

    /// Reads a file and hands it on in pieces, until nobody takes them any more.
    fn pieces(&self, url: &str, sender: &mpsc::SyncSender<Result<Vec<u8>, NetError>>) -> Result<(), NetError> {
        let mut reader = self.get(url, "*/*")?.into_body().into_reader();
        loop {
            let mut buffer = vec![0; 1 << 16];
            let count = reader.read(&mut buffer).map_err(|error| unreachable(url, &error.to_string()))?;
            buffer.truncate(count);
            if count == 0 || sender.send(Ok(buffer)).is_err() {
                return Ok(());
            }
        }
    }

    fn get(&self, url: &str, accept: &str) -> Result<ureq::http::Response<ureq::Body>, NetError> {
        let response = self.agent.get(url).header("accept", accept).call().map_err(|error| failed(url, &error))?;
        match response.status().as_u16() {
            200..=299 => Ok(response),
            status => Err(NetError::Status { url: redact(url), status }),
        }
    }

    /// Tries again what may pass by itself.
    fn again<T>(&self, url: &str, attempt: impl Fn() -> Result<T, NetError>) -> Result<T, NetError> {
        let mut pause = self.patience.pause;
        for _ in 1..TRIES {
            match attempt() {
                Err(error) if passing(&error) && !signals::caught() => rest(pause),
                other => return other,
            }
            pause *= 2;
        }
        attempt().map_err(|error| match error {
            NetError::Unreachable { reason, .. } => {
                NetError::Unreachable { url: redact(url), reason: format!("{reason} ({TRIES} tries)") }
            }
            other => other,
        })
    }
}

/// Does what may block on a silent peer in a thread of its own, which is left behind when a signal comes: resolving a
/// name, connecting and reading cannot be ended from outside.
fn aside<T: Send + 'static>(work: impl FnOnce(&mpsc::SyncSender<T>) + Send + 'static) -> Result<Receiver<T>, NetError> {
    let (sender, receiver) = mpsc::sync_channel(4);
    let started = std::thread::Builder::new().name("download".to_owned()).spawn(move || work(&sender));
    let limit = |error: io::Error| {
        let why = format!("no thread can be started for the download ({error}); see `ulimit -u` and `ulimit -v`");
        NetError::Disk(io::Error::new(error.kind(), why))
    };
    started.map(|_| receiver).map_err(limit)
}

/// What comes next, `None` at the end.
fn next<T>(receiver: &Receiver<T>) -> Result<Option<T>, NetError> {
    loop {
        match receiver.recv_timeout(NAP) {
            Ok(value) => return Ok(Some(value)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if signals::caught() => {
                return Err(NetError::Disk(signals::interrupted()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Waits, but not beyond a signal.
fn rest(pause: Duration) {
    let watch = super::clock::Stopwatch::start();
    while watch.elapsed() < pause && !signals::caught() {
        std::thread::sleep(NAP.min(pause));
    }
}

fn passing(error: &NetError) -> bool {
    match error {
        NetError::Unreachable { .. } => true,
        NetError::Status { status, .. } => matches!(status, 408 | 429 | 500 | 502 | 503 | 504),
        NetError::Digest { .. } | NetError::Disk(_) => false,
    }
}

fn failed(url: &str, error: &ureq::Error) -> NetError {
    unreachable(url, &error.to_string())
}

fn unreachable(url: &str, reason: &str) -> NetError {
    NetError::Unreachable { url: redact(url), reason: crate::domain::index::redact_text(reason) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::test_server::Server;

    fn client() -> Client {
        let short = Duration::from_millis(300);
        Client::new(Patience { connect: short, silence: short, pause: Duration::from_millis(1) })
    }

    #[test]
    fn a_page_comes_with_its_media_type_after_a_passing_fault() {
        let server = Server::start(&[("/p", 503, "", ""), ("/p", 200, "Text/HTML; charset=utf-8", "hello")]);
        let page = client().page(&server.url("/p"), "*/*").unwrap();
        assert_eq!((page.media_type.as_str(), page.body.as_slice()), ("text/html", b"hello".as_slice()));
        assert_eq!(server.requests().len(), 2);
    }

    #[test]
    fn a_refusal_is_final_and_silence_is_not_endless() {
        let server = Server::start(&[("/hang", 0, "", "")]);
        assert!(matches!(client().page(&server.url("/none"), "*/*"), Err(NetError::Status { status: 404, .. })));
        assert_eq!(server.requests().len(), 1);
        assert!(matches!(client().page(&server.url("/hang"), "*/*"), Err(NetError::Unreachable { .. })));
        assert_eq!(server.requests().len(), 4);
    }

    #[test]
    fn a_file_appears_only_with_the_right_digest() {
        let server = Server::start(&[("/f", 200, "", "data")]);
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("d/f");
        let wrong = client().file(&server.url("/f"), &path, &"0".repeat(64));
        assert!(matches!(wrong, Err(NetError::Digest { .. })));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
        client().file(&server.url("/f"), &path, &crate::sys::files::sha256(b"data")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"data");
    }

    #[test]
    fn nobody_there_is_said_without_the_password() {
        let error = client().page("http://me:secret@127.0.0.1:9/x", "*/*").unwrap_err().to_string();
        assert!(error.contains("***@127.0.0.1") && error.contains("3 tries") && !error.contains("secret"), "{error}");
    }
}
