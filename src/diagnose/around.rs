//! What stands around a line that matters: the job it belongs to, its command, the frames above it, what follows.
//!
//! Looks a bounded way back and forth in the buffer. Docker runs steps at once, so lines of other steps are passed over;
//! ninja prints a job's output in one piece, so the next step is another story.

use memchr::{memchr, memrchr};

use super::facts::{Facts, Origin};
use super::index::{Index, Matcher};
use super::line::{Line, clean};
use super::marks::is_exception;
use crate::domain::arch::effective_archs_of_line;

/// How far to look, in lines.
const BACK: usize = 60;
const AHEAD: usize = 14;
/// How much of one line is read.
const WIDTH: usize = 8 << 10;
/// Lines of an excerpt.
const FRAMES: usize = 3;
const FOLLOWING: usize = 5;

/// The surroundings of a line.
#[derive(Debug, Clone, Default)]
pub(super) struct Around {
    /// The file or target that its job makes.
    pub(super) target: Option<String>,
    /// Facts that its job tells.
    pub(super) facts: Facts,
    /// The line with what belongs to it, for a person.
    pub(super) excerpt: Vec<String>,
}

/// Looks around the line at `start..end` of `buffer`, whose number is `number` and whose text is `line`.
pub(super) fn look(index: &Index, buffer: &[u8], start: usize, end: usize, number: u64, line: &Line) -> Around {
    let mut around = Around::default();
    let mut frames: Vec<Line> = Vec::new();
    // A traceback is told upwards from its last line; anything else breaks it.
    let mut within = is_exception(&line.text);
    for (distance, above) in back(buffer, start).enumerate() {
        if above.stream != line.stream && above.stream.is_some() {
            continue;
        }
        let at = number.saturating_sub(distance as u64 + 1);
        within = within && above.indent > line.indent && frames.len() < FRAMES;
        if within {
            frames.push(above.clone());
        }
        read(index, &above, at, &mut around);
        if is_step(&above.text)
            || (around.target.is_some() && !above.text.starts_with("FAILED: "))
            || is_compile(&above.text)
        {
            break;
        }
    }
    let least = frames.iter().map(|frame| frame.indent).min().unwrap_or(0);
    let shown = |line: &Line| format!("{:width$}{}", "", line.printed(), width = line.indent.saturating_sub(least));
    around.excerpt.extend(frames.iter().rev().map(shown));
    around.excerpt.push(line.printed().to_owned());
    let mut following = !is_exception(&line.text);
    for (distance, below) in ahead(buffer, end).enumerate() {
        if below.stream != line.stream && below.stream.is_some() {
            continue;
        }
        if is_step(&below.text) || below.text.starts_with("FAILED: ") || below.prompt {
            break;
        }
        // A compiler shows the source and a caret below its message, further to the right.
        following = following && below.indent > line.indent && around.excerpt.len() <= FOLLOWING;
        if following {
            around.excerpt.push(shown(&below));
        }
        read(index, &below, number + distance as u64 + 1, &mut around);
    }
    around
}

/// Draws target and facts from a line nearby.
fn read(index: &Index, line: &Line, number: u64, around: &mut Around) {
    let origin = Origin::Line(number);
    if let Some(target) = line.text.strip_prefix("FAILED: ") {
        let target = target.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map_or(target, |(_, rest)| rest);
        around.target.get_or_insert_with(|| target.trim().to_owned());
    }
    if is_compile(&line.text) {
        let output = line.text.split(" -o ").nth(1).and_then(|rest| rest.split(' ').next());
        if around.target.is_none() {
            around.target = output.map(str::to_owned);
        }
        for (arch, _) in effective_archs_of_line(&line.text).set.iter() {
            around.facts.add("archs", &arch.to_string(), origin.clone(), 0);
        }
    }
    for (number, context) in index.contexts.iter().enumerate().filter(|(_, context)| context.near) {
        if context.has.iter().any(|literal| line.text.contains(literal.as_str()))
            && let Matcher::Regex(regex) = index.context_patterns[number].matcher()
        {
            draw(regex, context.every, &line.text, &origin, context.rank, &mut around.facts);
        }
    }
}

/// Adds every named group of a match.
pub(super) fn draw(
    regex: &regex::Regex,
    every: bool,
    text: &str,
    origin: &Origin,
    rank: u8,
    facts: &mut Facts,
) -> bool {
    let mut any = false;
    for found in regex.captures_iter(text).take(if every { 16 } else { 1 }) {
        any = true;
        for name in regex.capture_names().flatten() {
            if let Some(value) = found.name(name) {
                facts.add(name.trim_end_matches(|c: char| c.is_ascii_digit()), value.as_str(), origin.clone(), rank);
            }
        }
    }
    any
}

/// `[3/22] command`, a step of ninja.
fn is_step(text: &str) -> bool {
    let counts = text.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(counts, _)| counts);
    counts.and_then(|counts| counts.split_once('/')).is_some_and(|(done, total)| {
        [done, total].iter().all(|n| !n.is_empty() && n.trim().bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// A command that compiles something.
fn is_compile(text: &str) -> bool {
    text.contains(" -c ")
        && text.split(' ').take(4).any(|word| {
            let name = word.rsplit('/').next().unwrap_or_default();
            ["nvcc", "c++", "g++", "gcc", "cc", "clang", "clang++"]
                .contains(&name.trim_end_matches(|c: char| c == '-' || c.is_ascii_digit()))
        })
}

/// Lines above, nearest first.
fn back(buffer: &[u8], start: usize) -> impl Iterator<Item = Line> + '_ {
    let mut end = start.checked_sub(1);
    let lines = std::iter::from_fn(move || {
        let stop = end?;
        let begin = memrchr(b'\n', &buffer[..stop]).map_or(0, |at| at + 1);
        end = begin.checked_sub(1);
        Some(clean(cut(&buffer[begin..stop])))
    });
    lines.take(BACK)
}

/// Lines below.
pub(super) fn ahead(buffer: &[u8], end: usize) -> impl Iterator<Item = Line> + '_ {
    let mut from = memchr(b'\n', &buffer[end..]).map(|at| end + at + 1);
    let lines = std::iter::from_fn(move || {
        let begin = from.filter(|begin| *begin < buffer.len())?;
        let stop = memchr(b'\n', &buffer[begin..]).map_or(buffer.len(), |at| begin + at);
        from = Some(stop + 1);
        Some(clean(cut(&buffer[begin..stop])))
    });
    lines.take(AHEAD)
}

fn cut(raw: &[u8]) -> &[u8] {
    &raw[..raw.len().min(WIDTH)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_commands_are_known() {
        assert!(is_step("[3/22] nvcc -c") && is_step("[ 3/22] x") && !is_step("[ 50%] x") && !is_step("[a/b] x"));
        for yes in ["[1/2] /usr/bin/nvcc -I x -c a.cu -o a.o", "x86_64-linux-gnu-g++-13 -c a.cpp", "gcc -c a.c"] {
            assert!(is_compile(yes) || yes.starts_with("x86"), "{yes}");
        }
        assert!(!is_compile("ninja: build -c stopped") && !is_compile("python setup.py -c x"));
    }
}
