//! Reads a log in pieces, in bounded memory, and keeps what the rules may want: hits with their surroundings, facts,
//! lines that look like errors.
//!
//! Big pieces are searched for the rules' literals at once; only a line that holds one is ever cleaned and matched.
//! A literal that has been seen often enough to say nothing new is no longer looked for.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use aho_corasick::{AhoCorasick, Input};
use memchr::{memchr, memchr_iter, memrchr};

use super::around::{self, Around, ahead, draw};
use super::attempts::Command;
use super::facts::{Facts, Origin};
use super::index::{Index, Matcher, Watch, index, search};
use super::line::{Line, clean};
use super::marks;

/// Searched at once.
const PIECE: usize = 1 << 20;
/// Kept on both sides of what is searched, for surroundings.
const MARGIN: usize = 48 << 10;
/// A longer line is cut.
const LONGEST: usize = 64 << 10;
/// Read around a literal in a long line.
const WIDTH: usize = 8 << 10;
/// Hits of one pattern that are kept with their surroundings.
const KEPT: usize = 64;
/// Hits of one pattern that are counted.
const COUNTED: usize = 5000;
/// Lines that look like errors that are kept.
const ERRORS: usize = 24;
/// Lines kept of the end.
const TAIL: usize = 12;
/// Characters of a line that are kept.
const SHOWN: usize = 2000;
/// Bytes of the beginning that tell whether it is text.
const BEGINNING: u64 = 64 << 10;
/// One byte in this many that no tool prints makes it something else; packed and compiled files have far more.
const ODD: u64 = 30;

/// A line that a pattern matched.
#[derive(Debug, Clone)]
pub(super) struct Hit {
    pub(super) line: u64,
    pub(super) text: String,
    pub(super) facts: Facts,
    pub(super) around: Around,
}

/// What a pattern matched.
#[derive(Debug, Clone, Default)]
pub(super) struct Hits {
    pub(super) kept: Vec<Hit>,
    seen: usize,
}

/// A line that looks like an error.
#[derive(Debug, Clone)]
pub(super) struct ErrorLine {
    pub(super) line: u64,
    pub(super) text: String,
    pub(super) excerpt: Vec<String>,
}

/// Everything that was kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// By number of the pattern.
    pub(super) hits: Vec<Hits>,
    pub(super) facts: Facts,
    pub(super) errors: Vec<ErrorLine>,
    /// Builds and installations that somebody started, in the order of the log.
    pub(super) commands: Vec<Command>,
    pub(super) last_error: u64,
    pub(super) success: Option<(u64, String)>,
    pub(super) tail: Vec<String>,
    pub(super) lines: u64,
    pub(super) bytes: u64,
    /// Bytes of the beginning that no tool prints.
    odd: u64,
}

impl Found {
    /// Whether it begins like text. UTF-16 does not, as every other byte of it is zero.
    pub(super) fn is_text(&self) -> bool {
        self.odd * ODD <= self.bytes.min(BEGINNING)
    }
}

/// Control characters but those of terminals: line ends, tabs, form feeds, bells, backspaces and escapes.
fn is_odd(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, 0x07..=0x0d | 0x1b) || byte == 0x7f
}

/// Follows a log piece by piece.
#[derive(Debug)]
pub struct Scanner {
    index: &'static Index,
    search: Cow<'static, Option<AhoCorasick>>,
    /// Needle of each pattern of `search`, by its number in the index.
    active: Vec<usize>,
    buffer: Vec<u8>,
    /// Start of the first line not looked at.
    from: usize,
    /// Number of the line that holds the byte at `counted`.
    number: u64,
    counted: usize,
    /// The open line is too long; its rest is dropped.
    skipping: bool,
    context_seen: Vec<usize>,
    same: HashSet<u64>,
    found: Found,
}

impl Default for Scanner {
    fn default() -> Self {
        let index = index();
        Self {
            index,
            search: Cow::Borrowed(&index.search),
            active: (0..index.needles.len()).collect(),
            buffer: Vec::with_capacity(PIECE + 2 * MARGIN),
            from: 0,
            number: 1,
            counted: 0,
            skipping: false,
            context_seen: vec![0; index.contexts.len()],
            same: HashSet::new(),
            found: Found { hits: vec![Hits::default(); index.finds.len()], ..Found::default() },
        }
    }
}

impl Scanner {
    /// Takes the next bytes of the log, any number of them.
    pub fn feed(&mut self, bytes: &[u8]) {
        let beginning = usize::try_from(BEGINNING.saturating_sub(self.found.bytes)).unwrap_or(usize::MAX);
        self.found.odd += bytes.iter().take(beginning).filter(|byte| is_odd(**byte)).count() as u64;
        self.found.bytes += bytes.len() as u64;
        for mut piece in bytes.chunks(PIECE / 4) {
            if self.skipping {
                let Some(end) = memchr(b'\n', piece) else { continue };
                piece = &piece[end..];
                self.skipping = false;
            }
            self.buffer.extend_from_slice(piece);
            let open = memrchr(b'\n', &self.buffer[self.from..]).map_or(self.from, |at| self.from + at + 1);
            if self.buffer.len() - open > LONGEST {
                self.buffer.truncate(open + LONGEST);
                self.skipping = true;
            }
            if self.buffer.len() - self.from > PIECE {
                self.advance(false);
            }
        }
    }

    /// The log has ended.
    pub(super) fn end(mut self) -> (&'static Index, Found) {
        self.advance(true);
        let open = self.buffer.last().is_some_and(|byte| *byte != b'\n');
        self.count_to(self.buffer.len());
        self.found.lines = self.number - u64::from(!open);
        let ends = |line: &Line| line.text.chars().take(SHOWN).collect::<String>();
        let lines = self
            .buffer
            .rsplit(|byte| *byte == b'\n')
            .take(200)
            .map(|raw| clean(cut(raw, 0)))
            .filter(|line| !line.prompt);
        let mut tail: Vec<String> =
            lines.filter(|line| !line.text.is_empty()).take(TAIL).map(|line| ends(&line)).collect();
        tail.reverse();
        self.found.tail = tail;
        (self.index, self.found)
    }

    fn count_to(&mut self, offset: usize) {
        self.number += memchr_iter(b'\n', &self.buffer[self.counted..offset]).count() as u64;
        self.counted = offset;
    }

    fn advance(&mut self, ended: bool) {
        let limit = if ended {
            self.buffer.len()
        } else {
            let until = self.buffer.len().saturating_sub(MARGIN).max(self.from);
            match memrchr(b'\n', &self.buffer[self.from..until]) {
                Some(at) => self.from + at + 1,
                None => return,
            }
        };
        let mut at = self.from;
        while at < limit {
            let Some(search) = self.search.as_ref() else { break };
            let Some(found) = search.find(Input::new(&self.buffer).range(at..limit)) else { break };
            at = self.see(found.start(), found.end()).max(found.end());
        }
        self.count_to(limit);
        self.from = limit;
        // What was looked at is kept as far as surroundings of later lines may need it.
        let drop = if ended { 0 } else { self.from.saturating_sub(MARGIN) };
        self.buffer.drain(..drop);
        self.from -= drop;
        self.counted -= drop;
    }

    /// Looks at the line that holds the literal at `hit..past`, and gives its end.
    fn see(&mut self, hit: usize, past: usize) -> usize {
        let start = memrchr(b'\n', &self.buffer[self.from..hit]).map_or(self.from, |at| self.from + at + 1);
        let end = memchr(b'\n', &self.buffer[hit..]).map_or(self.buffer.len(), |at| hit + at);
        self.count_to(start);
        // Whether a long line came in one piece or in many must not matter.
        let whole = start + LONGEST;
        if past > whole {
            return end;
        }
        // A bare carriage return begins the line anew, as progress bars do.
        let left = memrchr(b'\r', &self.buffer[start..hit]).map_or(start, |at| start + at + 1);
        let right = memchr(b'\r', &self.buffer[hit..end.min(whole)]).map_or(end.min(whole), |at| hit + at);
        let left = left.max(if right - left > WIDTH { hit.saturating_sub(WIDTH / 4) } else { left });
        let raw = cut(&self.buffer[left..right], 0);
        let mut needles: Vec<usize> = Vec::new();
        let mut watchers: Vec<Watch> = Vec::new();
        if let Some(search) = self.search.as_ref() {
            for found in search.find_overlapping_iter(raw) {
                let needle = self.active[found.pattern().as_usize()];
                if !needles.contains(&needle) {
                    needles.push(needle);
                    let new = self.index.watchers[needle].iter().filter(|who| !watchers.contains(who));
                    let new: Vec<Watch> = new.copied().collect();
                    watchers.extend(new);
                }
            }
        }
        let line = clean(raw);
        let mut surroundings: Option<Around> = None;
        for who in watchers {
            match who {
                Watch::Find(number) => self.find(number, &line, start, end, &mut surroundings),
                Watch::Context(number) => self.context(number, &line, end),
                Watch::Error => self.error(&line, start, end, &mut surroundings),
                Watch::Command => self.command(&line),
                Watch::Success if !line.prompt => self.found.success = Some((self.number, shown(&line.text))),
                Watch::Success => {}
            }
        }
        self.forget(&needles);
        right
    }

    fn find(&mut self, number: usize, line: &Line, start: usize, end: usize, surroundings: &mut Option<Around>) {
        let hits = &mut self.found.hits[number];
        if line.prompt || hits.seen >= COUNTED {
            return;
        }
        hits.seen += 1;
        let find = self.index.find(number).1;
        let joined;
        let text = if find.lines > 1 {
            let rest = ahead(&self.buffer, end).take(find.lines - 1).map(|line| line.text);
            joined = std::iter::once(line.text.clone()).chain(rest).collect::<Vec<_>>().join(" ");
            joined.as_str()
        } else {
            line.text.as_str()
        };
        let mut facts = Facts::default();
        let origin = Origin::Line(self.number);
        let holds = match self.index.find_patterns[number].matcher() {
            Matcher::Literal => true,
            Matcher::Regex(regex) => draw(regex, false, text, &origin, 0, &mut facts),
            Matcher::Nothing => false,
        };
        if !holds || hits.kept.len() >= KEPT {
            return;
        }
        let around =
            surroundings.get_or_insert_with(|| around::look(self.index, &self.buffer, start, end, self.number, line));
        // Docker and pip say the same line twice; a job's target tells real ones apart.
        let mut hasher = DefaultHasher::new();
        (number, around.target.as_deref(), &line.text).hash(&mut hasher);
        if self.same.insert(hasher.finish()) {
            find.set.iter().for_each(|(name, value)| facts.add(name, value, origin.clone(), 0));
            hits.kept.push(Hit { line: self.number, text: shown(line.printed()), facts, around: around.clone() });
        }
    }

    fn context(&mut self, number: usize, line: &Line, end: usize) {
        self.context_seen[number] += 1;
        let context = &self.index.contexts[number];
        let Matcher::Regex(regex) = self.index.context_patterns[number].matcher() else { return };
        let (text, at) = if context.next {
            let Some(next) = ahead(&self.buffer, end).find(|line| !line.text.is_empty()) else { return };
            (next.text, self.number + 1)
        } else {
            (line.text.clone(), self.number)
        };
        draw(regex, context.every, &text, &Origin::Line(at), context.rank, &mut self.found.facts);
    }

    fn command(&mut self, line: &Line) {
        if line.prompt && self.found.commands.len() < KEPT {
            self.found.commands.push(Command::new(self.number, &line.text));
        }
    }

    fn error(&mut self, line: &Line, start: usize, end: usize, surroundings: &mut Option<Around>) {
        if !marks::is_error(line) {
            return;
        }
        self.found.last_error = self.number;
        if self.found.errors.len() < ERRORS && !self.found.errors.iter().any(|error| error.text == line.printed()) {
            let around = surroundings
                .get_or_insert_with(|| around::look(self.index, &self.buffer, start, end, self.number, line));
            let excerpt = around.excerpt.iter().map(|text| shown(text)).collect();
            self.found.errors.push(ErrorLine { line: self.number, text: shown(line.printed()), excerpt });
        }
    }

    /// Stops looking for literals that nobody learns from any more.
    fn forget(&mut self, needles: &[usize]) {
        let done = |who: &Watch| match who {
            Watch::Find(number) => self.found.hits[*number].seen >= COUNTED,
            Watch::Context(number) => self.context_seen[*number] >= COUNTED,
            Watch::Error => self.found.errors.len() >= ERRORS,
            Watch::Command => self.found.commands.len() >= KEPT,
            Watch::Success => false,
        };
        let over: Vec<usize> =
            needles.iter().copied().filter(|needle| self.index.watchers[*needle].iter().all(done)).collect();
        if !over.is_empty() {
            self.active.retain(|needle| !over.contains(needle));
            let left: Vec<&str> = self.active.iter().map(|needle| self.index.needles[*needle].as_str()).collect();
            self.search = Cow::Owned(search(&left));
        }
    }
}

fn cut(raw: &[u8], from: usize) -> &[u8] {
    &raw[from.min(raw.len())..raw.len().min(from + WIDTH)]
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}
