//! The first line of a failed build's output that names an error, so that the last one is not taken for it.
//!
//! Deliberately general: it knows how compilers and Python mark errors, not what the errors mean.

use std::collections::VecDeque;

use super::ninja;

/// Marks of a compiler, linker, Python or driver error. The order does not matter: the first line wins.
const MARKS: [&str; 9] = [
    " error:",
    ": error ",
    "error #",
    "fatal   :",
    "fatal error",
    "undefined reference to",
    "Error: ",
    "cannot find -l",
    "Killed",
];

/// Lines that only report that something else went wrong.
const ECHOES: [&str; 4] = ["CalledProcessError", "Error compiling objects", "subprocess", "command failed"];

/// Lines kept after the first error: nvcc and gcc show the source line and a caret under it.
const CONTEXT: usize = 6;
/// Lines of a Python traceback kept before its last one: file, source, caret.
const FRAME: usize = 3;
/// Lines kept from the end, for output that names no error at all.
const TAIL: usize = 12;
/// Compiler command lines of some projects are tens of kilobytes, and nobody needs their end.
const WIDTH: usize = 2000;

/// Follows a build's output line by line, in bounded memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finder {
    first: Vec<String>,
    /// Nothing more belongs to the first error.
    closed: bool,
    tail: VecDeque<String>,
}

impl Finder {
    /// Looks at the next line.
    pub fn see(&mut self, line: &str) {
        let cut = || line.chars().take(WIDTH).collect::<String>();
        if self.first.is_empty() && names_error(line) {
            // Python tells the place before the error, compilers tell it in the same line.
            if is_exception(line) {
                let frames = self.tail.iter().rev().take(FRAME).take_while(|line| line.starts_with("  "));
                let frames: Vec<String> = frames.map(|line| line[2..].to_owned()).collect();
                self.first.extend(frames.into_iter().rev());
                self.closed = true;
            }
            self.first.push(cut());
        } else if !self.first.is_empty() && !self.closed {
            // The next step of ninja is another story.
            self.closed = ninja::step(line).is_some() || line.starts_with("ninja: ") || self.first.len() >= CONTEXT;
            if !self.closed && !line.trim().is_empty() {
                self.first.push(cut());
            }
        }
        if self.tail.len() == TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back(cut());
    }

    /// The first error with what belongs to it, or else the end of the output; nothing where nothing was said.
    pub fn text(&self) -> Option<String> {
        let lines: Vec<&str> = if self.first.is_empty() {
            self.tail.iter().map(String::as_str).collect()
        } else {
            self.first.iter().map(String::as_str).collect()
        };
        Some(lines.join("\n")).filter(|text| !text.trim().is_empty())
    }
}

fn names_error(line: &str) -> bool {
    let marked = MARKS.iter().any(|mark| line.contains(mark)) || line.starts_with("error:");
    marked && !ECHOES.iter().any(|echo| line.contains(echo))
}

/// `ModuleNotFoundError: …`, at the end of a traceback.
fn is_exception(line: &str) -> bool {
    let name = line.split(": ").next().unwrap_or_default();
    name.ends_with("Error") && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(log: &str) -> String {
        let mut finder = Finder::default();
        log.lines().for_each(|line| finder.see(line));
        finder.text().unwrap_or_default()
    }

    #[test]
    fn an_exception_comes_with_its_place_and_nothing_of_what_follows() {
        let log = "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    import x\n\
                   ModuleNotFoundError: No module named 'x'\nmore";
        let shown = "File \"a.py\", line 1, in <module>\n  import x\nModuleNotFoundError: No module named 'x'";
        assert_eq!(text(log), shown);
        let log = "a.cu(1): error: no\n\n  int x\n[2/2] g++ -c b.cpp\nninja: build stopped";
        assert_eq!(text(log), "a.cu(1): error: no\n  int x");
        assert_eq!(text(""), "");
    }

    #[test]
    fn the_compiler_line_wins_over_the_traceback() {
        let log = "ninja: entering\na.cu(3): warning #177-D: unused\na.cu(9): error: identifier \"x\" is undefined\n\
                   subprocess.CalledProcessError: Command '['ninja', '-v']' returned 1\n\
                   RuntimeError: Error compiling objects for extension";
        assert!(text(log).starts_with("a.cu(9): error: identifier"));
        for line in
            ["nvcc fatal   : Unsupported gpu architecture 'compute_86'", "ModuleNotFoundError: No module named 'x'"]
        {
            assert!(text(&format!("fine\n{line}\nmore")).starts_with(line), "{line}");
        }
    }

    #[test]
    fn without_an_error_the_end_is_shown_in_bounded_memory() {
        let mut finder = Finder::default();
        (0..100_000).for_each(|n| finder.see(&format!("line {n}")));
        let text = finder.text().unwrap();
        assert_eq!(text.lines().count(), TAIL);
        assert!(text.ends_with("line 99999"));
        assert_eq!(super::tests::text(&format!("error: {}", "x".repeat(1 << 20))).len(), WIDTH);
    }
}
