//! Reads a build's output as it comes: progress, and what nvcc was asked for.

use camino::Utf8Path;

use super::Context;
use crate::build::ninja;
use crate::build::run::{self, Happening};
use crate::domain::arch::{ArchSet, effective_archs_of_line};
use crate::launcher::Status;
use crate::report::{EffectiveSources, Event};

/// Follows one build.
pub(super) struct Watcher<'a> {
    context: &'a Context<'a>,
    unit: &'a str,
    folder: &'a Utf8Path,
    status: &'a dyn Fn() -> Option<Status>,
    seen: Seen,
    /// The log begins with the command.
    line: usize,
    done: u32,
    total: u32,
    seconds: u64,
    memory: u64,
}

/// What the output told.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Archs of all nvcc calls.
    pub(super) effective: ArchSet,
    /// nvcc calls whose archs differ from what most would expect, each set with its first line.
    pub(super) lines: Vec<(ArchSet, usize)>,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(
        context: &'a Context<'a>,
        unit: &'a str,
        folder: &'a Utf8Path,
        status: &'a dyn Fn() -> Option<Status>,
    ) -> Self {
        Self { context, unit, folder, status, seen: Seen::default(), line: 1, done: 0, total: 0, seconds: 0, memory: 0 }
    }

    pub(super) fn seen(self) -> Seen {
        self.seen
    }

    pub(super) fn see(&mut self, happening: &Happening<'_>) {
        match happening {
            Happening::Line(line) => {
                (self.context.tell)(Event::Output { unit: self.unit.to_owned(), line: (*line).to_owned() });
                self.line += 1;
                self.read(line);
            }
            Happening::Tick { seconds } => {
                self.seconds = *seconds;
                let (oldest, memory) = match (self.status)() {
                    Some(Status { working, .. }) => {
                        let memory = working.iter().map(|one| one.memory).sum();
                        (working.into_iter().next().map(|one| (file_name(&one.source), one.seconds)), memory)
                    }
                    None => run::look(self.folder),
                };
                self.memory = memory;
                // Where no compiler runs, setup.py itself links, copies or packs.
                let (file, age) = oldest.unwrap_or_else(|| ("setup.py".to_owned(), self.seconds));
                self.progress(file, age);
            }
        }
    }

    fn read(&mut self, line: &str) {
        if ninja::runs_nvcc(line) {
            let archs = effective_archs_of_line(line).set;
            if !self.seen.lines.iter().any(|(known, _)| *known == archs) {
                self.seen.effective = std::mem::take(&mut self.seen.effective).union(&archs);
                self.seen.lines.push((archs, self.line));
            }
        }
        if let Some(step) = ninja::step(line) {
            (self.done, self.total) = (step.done, step.total);
            if let Some(source) = ninja::source(step.command) {
                self.progress(source, 0);
            }
        }
    }

    fn progress(&self, file: String, file_seconds: u64) {
        (self.context.tell)(Event::Progress {
            unit: self.unit.to_owned(),
            done: self.done,
            total: self.total,
            file,
            file_seconds,
            seconds: self.seconds,
            memory: self.memory,
        });
    }
}

fn file_name(source: &str) -> String {
    source.rsplit('/').next().unwrap_or(source).to_owned()
}

/// Says where compilers were asked for other archs than we asked the build for, which means that the project has a list
/// of its own. Silent where they agree, and where no call was seen.
pub(super) fn other_archs(wanted: &ArchSet, sources: &[EffectiveSources], seen: &Seen) -> Option<String> {
    let line = |archs: &ArchSet| seen.lines.iter().find(|(known, _)| known == archs).map(|(_, line)| *line);
    let other = sources.iter().find_map(|group| {
        let archs: ArchSet = group.archs.parse().unwrap_or_default();
        (archs != *wanted).then(|| (archs, Some(named(&group.sources))))
    });
    // Without the launcher, the log has to do.
    let logged = || seen.lines.iter().find(|(archs, _)| archs != wanted).map(|(archs, _)| (archs.clone(), None));
    let (archs, who) = if sources.is_empty() { logged() } else { other }?;
    let at = line(&archs).map(|line| format!(" (line {line} of the log)")).unwrap_or_default();
    let who = who.map_or_else(|| "some sources were".to_owned(), |(names, verb)| format!("{names} {verb}"));
    let what = if archs.is_empty() { "for nvcc's default arch".to_owned() } else { format!("for {archs}") };
    Some(format!("{who} compiled {what} instead of {wanted}: the project has an arch list of its own{at}"))
}

fn named(sources: &[String]) -> (String, &'static str) {
    match sources {
        [] => ("no source".to_owned(), "was"),
        [one] => (one.clone(), "was"),
        [first, rest @ ..] => (format!("{first} and {} more", rest.len()), "were"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(archs: &str, sources: &[&str]) -> EffectiveSources {
        EffectiveSources { archs: archs.into(), sources: sources.iter().map(|&s| s.to_owned()).collect() }
    }

    #[test]
    fn a_list_of_the_projects_own_is_named_with_its_line() {
        let wanted: ArchSet = "9.0".parse().unwrap();
        let old: ArchSet = "7.0;8.0".parse().unwrap();
        let seen = Seen { lines: vec![(wanted.clone(), 3), (old, 7)], ..Seen::default() };
        assert_eq!(other_archs(&wanted, &[group("9.0", &["a.cu"])], &seen), None);
        let said =
            other_archs(&wanted, &[group("7.0;8.0", &["a.cu", "b.cu"]), group("9.0", &["c.cu"])], &seen).unwrap();
        let text = "a.cu and 1 more were compiled for 7.0;8.0 instead of 9.0: the project has an arch list of its own \
                    (line 7 of the log)";
        assert_eq!(said, text);
        let said = other_archs(&wanted, &[], &seen).unwrap();
        assert!(said.starts_with("some sources were compiled for 7.0;8.0") && said.ends_with("(line 7 of the log)"));
        let said = other_archs(&wanted, &[group("", &["a.cu"])], &seen).unwrap();
        assert!(said.starts_with("a.cu was compiled for nvcc's default arch instead"), "{said}");
    }
}
