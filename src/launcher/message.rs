//! What a stand-in and the coordinator say to each other: one JSON object a line, over a Unix socket.
//!
//! ```text
//! stand-in     coordinator
//! call      →               what is to run; the answer comes once there is room
//!           ←  run
//! started   →               the compiler's process
//! ended     →               how it ended; after a kill for memory:
//!           ←  run          once more, alone
//!           ←  end          no more
//! ```
//!
//! A compile call of a build that starts one after another may get another answer first:
//!
//! ```text
//!           ←  ahead        tell the caller that all went well, and run it apart
//! apart     →               a copy of the stand-in holds the connection now; or
//! here      →               that could not be started
//!           ←  failed       what was compiled ahead has failed, so this call fails too
//! ```
//!
//! A closed socket gives the slot back, however the stand-in came to its end.

use std::io::{self, BufRead, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// From a stand-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ask {
    /// A compiler is to run.
    Call {
        /// The stand-in's process.
        pid: i32,
        /// File name of the tool.
        tool: String,
        /// Working folder.
        cwd: String,
        /// Whether a tool started it that holds a jobserver's token for it.
        covered: bool,
        /// Arguments, lossily as UTF-8.
        arguments: Vec<String>,
    },
    /// A ninja begins, and this many calls will come at once.
    Crowd {
        /// Number of calls.
        calls: usize,
    },
    /// The call runs apart.
    Apart {
        /// The process that holds the connection now.
        pid: i32,
    },
    /// The call cannot run apart.
    Here,
    /// The compiler runs.
    Started {
        /// Its process.
        pid: i32,
    },
    /// The compiler has ended.
    Ended {
        /// Exit code, or the signal's number with its sign changed.
        status: i32,
        /// Milliseconds in user mode.
        user: u64,
        /// Milliseconds in the system.
        system: u64,
        /// Whether it, or a part of it, was killed as the system does when memory is short.
        starved: bool,
    },
}

/// From the coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// There is room.
    Run {
        /// Whether this is the second attempt, alone and with one thread.
        alone: bool,
    },
    /// That was it.
    End,
    /// The caller may be told that all went well, and the compiler is to run apart.
    Ahead,
    /// A source that was compiled ahead has failed.
    Failed {
        /// That source.
        source: String,
    },
}

/// Writes one message.
pub(super) fn send(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Reads one message; `None` where the other side is gone or speaks another language.
pub(super) fn receive<T: DeserializeOwned>(stream: &mut impl BufRead) -> Option<T> {
    let mut line = Vec::new();
    // Command lines are long, but not without end.
    let read = io::Read::take(&mut *stream, 16 << 20).read_until(b'\n', &mut line).ok()?;
    if read == 0 { None } else { serde_json::from_slice(&line).ok() }
}
