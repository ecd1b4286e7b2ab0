//! Bars at the bottom of a terminal: one for each unit at work, and a count of units where there are several.
//!
//! Invariant: shows only what events say, and leaves nothing behind: what stays on the screen is printed as text above.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::style::{bytes, clock, visible};
use crate::report::{Event, Status};

/// Names of units are cut to this many characters.
const NAME: usize = 32;
/// While files are counted.
const COUNTED: &str = "{prefix} [{bar:20.green}] {pos}/{len} {wide_msg}";
/// While nothing can be counted.
const SPINNING: &str = "{prefix} {spinner:.green} {wide_msg}";
/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(150);

/// The bars.
pub(super) struct Bars {
    multi: MultiProgress,
    state: Mutex<State>,
    /// Writes text above them.
    out: Box<dyn Fn(&str) + Send + Sync>,
    /// Whether spinners turn by themselves.
    turning: bool,
}

#[derive(Default)]
struct State {
    bars: BTreeMap<String, ProgressBar>,
    units: Option<ProgressBar>,
    failed: usize,
}

impl std::fmt::Debug for Bars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bars").finish_non_exhaustive()
    }
}

impl Bars {
    /// Bars on `target`, with text above them through `out`.
    pub(super) fn new(target: ProgressDrawTarget, turning: bool, out: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let multi = MultiProgress::with_draw_target(target);
        Self { multi, state: Mutex::default(), out: Box::new(out), turning }
    }

    /// Writes text above the bars.
    pub(super) fn print(&self, text: &str) {
        if !text.is_empty() {
            self.multi.suspend(|| (self.out)(text));
        }
    }

    /// Does something for which the bars must be out of the way.
    pub(super) fn aside(&self, then: impl FnOnce()) {
        self.multi.suspend(then);
    }

    /// Takes all bars away.
    pub(super) fn clear(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for bar in std::mem::take(&mut state.bars).into_values().chain(state.units.take()) {
            bar.finish_and_clear();
        }
    }

    /// Follows an event.
    pub(super) fn follow(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Units { units } => {
                let many = units.iter().filter(|unit| unit.pruned.is_none()).count();
                if many > 1 {
                    let bar = self.multi.add(ProgressBar::new(many as u64));
                    bar.set_style(style("{prefix} {pos} of {len} units done{msg}"));
                    bar.set_prefix(format!("{:>12}", ""));
                    state.units = Some(bar);
                }
            }
            Event::Stage { unit, stage, text, .. } => {
                let bar = self.bar(&mut state, unit);
                bar.unset_length();
                bar.set_style(style(SPINNING));
                let line = text.lines().next().unwrap_or_default();
                bar.set_message(format!("{} {}", stage.verb().to_lowercase(), visible(line)));
            }
            Event::Progress { unit, done, total, file, file_seconds, seconds, memory } => {
                let bar = self.bar(&mut state, unit);
                if *total > 0 {
                    bar.set_style(style(COUNTED));
                    bar.set_length(u64::from(*total));
                    bar.set_position(u64::from(*done));
                }
                bar.set_message(doing(file, *file_seconds, *seconds, *memory));
            }
            Event::Unit(ended) => {
                if let Some(bar) = state.bars.remove(&ended.unit) {
                    bar.finish_and_clear();
                }
                state.failed += usize::from(ended.status == Status::Failed);
                if let Some(units) = state.units.as_ref().filter(|_| ended.status != Status::Pruned) {
                    units.inc(1);
                    if state.failed > 0 {
                        units.set_message(format!(", {} failed", state.failed));
                    }
                }
            }
            Event::Finish { .. } => {
                drop(state);
                self.clear();
            }
            _ => {}
        }
    }

    /// The bar of a unit, new ones above the count.
    fn bar(&self, state: &mut State, unit: &str) -> ProgressBar {
        let make = || {
            let bar = match &state.units {
                Some(units) => self.multi.insert_before(units, ProgressBar::new_spinner()),
                None => self.multi.add(ProgressBar::new_spinner()),
            };
            bar.set_style(style(SPINNING));
            let long = unit.chars().count();
            // The end of a long name tells it from its like.
            let name = if long > NAME {
                format!("…{}", unit.chars().skip(long + 1 - NAME).collect::<String>())
            } else {
                unit.to_owned()
            };
            bar.set_prefix(format!("{name:>12}"));
            if self.turning {
                bar.enable_steady_tick(TURN);
            }
            bar
        };
        if let Some(bar) = state.bars.get(unit) {
            return bar.clone();
        }
        let bar = make();
        state.bars.insert(unit.to_owned(), bar.clone());
        bar
    }
}

/// What a unit is at: the current file and its age, memory, time in all.
pub(super) fn doing(file: &str, file_seconds: u64, seconds: u64, memory: u64) -> String {
    let memory = if memory > 0 { format!(", {}", bytes(memory)) } else { String::new() };
    format!("{} {}{memory}  (total {})", visible(file), clock(file_seconds), clock(seconds))
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    style.progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use indicatif::{InMemoryTerm, TermLike as _};

    use super::*;
    use crate::report::{Ended, Planned, Stage};

    fn stage(unit: &str, text: &str) -> Event {
        Event::Stage { unit: unit.into(), stage: Stage::Toolchain, text: text.into(), passing: true }
    }

    fn progress(unit: &str, done: u32) -> Event {
        let file = "nms_cuda.cu".into();
        Event::Progress { unit: unit.into(), done, total: 136, file, file_seconds: 42, seconds: 331, memory: 3 << 29 }
    }

    fn ended(unit: &str, status: Status) -> Event {
        let unit = unit.to_owned();
        Event::Unit(Ended { unit, status, seconds: 1, archs: None, wheel: None, wheel_bytes: None, exit: 0, why: None })
    }

    #[test]
    fn a_bar_for_each_unit_and_text_above_them() {
        let term = InMemoryTerm::new(12, 90);
        let writer = term.clone();
        let target = ProgressDrawTarget::term_like(Box::new(term.clone()));
        let bars = Bars::new(target, false, move |text| {
            for line in text.lines() {
                writer.write_line(line).unwrap();
            }
        });
        let unit = |unit: &str| Planned {
            unit: unit.into(),
            package: unit.into(),
            arch: None,
            torch: None,
            cuda: None,
            python: None,
            pruned: None,
        };
        let mut screens = Vec::new();
        let mut show = |events: &[Event]| {
            for event in events {
                bars.follow(event);
            }
            screens.push(term.contents());
        };
        show(&[
            Event::Units { units: vec![unit("mmcv"), unit("hello-ext/arch8.6_9.0+PTX-torch2.11.0")] },
            stage("mmcv", "downloading torch (506.0MiB)\nand more"),
            stage("hello-ext/arch8.6_9.0+PTX-torch2.11.0", "resolving 4 requirements"),
        ]);
        bars.print("   Toolchain mmcv: CUDA 13.0.88\n");
        show(&[progress("mmcv", 37)]);
        show(&[ended("hello-ext/arch8.6_9.0+PTX-torch2.11.0", Status::Failed)]);
        show(&[ended("mmcv", Status::Built), Event::Finish { exit: 13, milliseconds: 1 }]);
        insta::assert_snapshot!(screens.join("\n----\n"));
    }

    #[test]
    fn one_unit_has_no_count() {
        let term = InMemoryTerm::new(5, 60);
        let bars = Bars::new(ProgressDrawTarget::term_like(Box::new(term.clone())), false, |_| {});
        bars.follow(&progress("x", 0));
        assert!(term.contents().starts_with("           x [   "), "{}", term.contents());
        assert_eq!(term.contents().lines().count(), 1);
        bars.clear();
        assert_eq!(term.contents(), "");
    }
}
