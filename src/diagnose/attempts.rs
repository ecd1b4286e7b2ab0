//! Attempts: a build that somebody started again. What stopped an earlier attempt is no cause once the same command ran
//! again and got to another end.

use std::ops::Range;

/// Literals, one of which a command holds that builds or installs something, or changes the folder.
pub(super) const COMMANDS: [&str; 11] = [
    // In another folder, the same words are other work.
    "$ cd ",
    "# cd ",
    "pip install",
    "pip3 install",
    "pip wheel",
    "uv sync",
    "setup.py ",
    "cmake --build",
    "make -j",
    "docker build",
    "-m build",
];

/// A command as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    line: u64,
    /// Its words without options and variables: the same words are the same work.
    words: Vec<String>,
}

impl Command {
    /// Reads a command, typed at `line`.
    pub(super) fn new(line: u64, text: &str) -> Self {
        let own = text.split('|').next().unwrap_or_default();
        let words = own.split_whitespace().filter(|word| !word.starts_with('-') && !word.contains('>'));
        let words = words.skip_while(|word| word.contains('=')).map(str::to_owned).collect();
        Self { line, words }
    }

    /// Whether it changes the folder.
    fn moves(&self) -> bool {
        self.words.first().is_some_and(|word| word == "cd")
    }
}

/// The lines of attempts that the same command came after. `last` is the last line with an error or a success: an attempt
/// of which the log shows no end replaces none.
pub(super) fn overcome(commands: &[Command], last: u64) -> Vec<Range<u64>> {
    let attempts = commands.iter().zip(commands.iter().skip(1)).enumerate();
    let again = attempts.filter(|(at, (command, _))| {
        let here = commands[at + 1..].iter().take_while(|later| !later.moves() || later.words == command.words);
        !command.words.is_empty() && here.into_iter().any(|later| later.words == command.words && later.line < last)
    });
    again.map(|(_, (command, next))| command.line..next.line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_work_again_is_an_attempt_and_other_work_is_not() {
        let commands = [
            Command::new(1, "pip install x"),
            Command::new(5, "pip install torch"),
            Command::new(9, "MAX_JOBS=2 pip install -v --no-build-isolation x 2>&1 | tee log"),
        ];
        assert_eq!(overcome(&commands, 12), vec![std::ops::Range { start: 1, end: 5 }]);
        assert!(overcome(&commands, 9).is_empty(), "the second attempt has no end yet");
        let moved = [Command::new(1, "pip install ."), Command::new(2, "cd b"), Command::new(3, "pip install .")];
        assert!(overcome(&moved, 9).is_empty(), "another folder is other work");
        assert!(overcome(&commands[..2], 12).is_empty() && overcome(&[], 3).is_empty());
    }
}
