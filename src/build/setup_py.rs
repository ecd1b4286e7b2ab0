//! What `setup.py` and other Python build backends leave: one wheel. And what a build without ninja costs.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::ninja;

/// The one wheel in `dist`.
///
/// # Errors
/// No wheel or several: what is wrong, and what was found.
pub fn wheel(dist: &Utf8Path, builder: &str) -> Result<Utf8PathBuf, (String, String)> {
    let entries = dist.read_dir_utf8().map(|entries| entries.filter_map(Result::ok).collect::<Vec<_>>());
    let mut wheels: Vec<Utf8PathBuf> = entries
        .unwrap_or_default()
        .into_iter()
        .map(camino::Utf8DirEntry::into_path)
        .filter(|path| path.extension() == Some("whl") && path.is_file())
        .collect();
    wheels.sort();
    if let [wheel] = wheels.as_slice() {
        return Ok(wheel.clone());
    }
    if wheels.is_empty() {
        let why = format!("there is no `*.whl` in {dist}, where it was told to put one");
        return Err((format!("{builder} ended well but left no wheel"), why));
    }
    let names: Vec<&str> = wheels.iter().filter_map(|wheel| wheel.file_name()).collect();
    let message = format!("{builder} left {} wheels where one is expected", names.len());
    Err((message, names.join(", ")))
}

/// Programs that compile one source a call.
const COMPILERS: [&str; 8] = ["nvcc", "gcc", "g++", "cc", "c++", "clang", "clang++", "x86_64-linux-gnu-gcc"];

/// Follows a build that may bypass ninja, and measures what that costs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Serial {
    /// Whether ninja was seen.
    ninja: bool,
    running: Option<Duration>,
    took: Vec<Duration>,
}

/// A build that compiled one source after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Sources compiled.
    pub sources: usize,
    /// Time they took one after another.
    pub took: Duration,
    /// Time that the same would have taken at least with all jobs: work over jobs, or the longest source.
    pub possible: Duration,
}

impl Serial {
    /// Looks at the next line, which came `at` after the start.
    pub fn see(&mut self, line: &str, at: Duration) {
        if ninja::step(line).is_some() {
            self.ninja = true;
            return;
        }
        let Some(program) = line.split_whitespace().next().and_then(|word| word.rsplit('/').next()) else { return };
        if !COMPILERS.contains(&program) {
            return;
        }
        self.finish(at);
        if line.contains(" -c ") && ninja::source(line).is_some() {
            self.running = Some(at);
        }
    }

    /// What was lost with `jobs` jobs, `at` the end; nothing where ninja ran or there was nothing to share out.
    pub fn loss(mut self, at: Duration, jobs: u32) -> Option<Loss> {
        self.finish(at);
        if self.ninja || jobs < 2 || self.took.len() < 2 {
            return None;
        }
        let took: Duration = self.took.iter().sum();
        let longest = self.took.iter().max().copied().unwrap_or_default();
        Some(Loss { sources: self.took.len(), took, possible: longest.max(took / jobs) })
    }

    fn finish(&mut self, at: Duration) {
        self.took.extend(self.running.take().map(|since| at.saturating_sub(since)));
    }
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;

    #[test]
    fn one_wheel_is_the_wheel_and_anything_else_is_told() {
        let temporary = tempfile::tempdir().unwrap();
        let dist = Utf8Path::from_path(temporary.path()).unwrap().join("dist");
        let message = || wheel(&dist, "setup.py").map(|w| w.file_name().unwrap().to_owned()).map_err(|(what, _)| what);
        assert_eq!(message(), Err("setup.py ended well but left no wheel".to_owned()));
        fs::create_dir_all(dist.join("folder.whl")).unwrap();
        fs::write(dist.join("a.whl"), "").unwrap();
        assert_eq!(message(), Ok("a.whl".to_owned()));
        fs::write(dist.join("b.whl"), "").unwrap();
        assert_eq!(message(), Err("setup.py left 2 wheels where one is expected".to_owned()));
    }

    fn loss(log: &[(u64, &str)], end: u64, jobs: u32) -> Option<Loss> {
        let mut serial = Serial::default();
        for (at, line) in log {
            serial.see(line, Duration::from_secs(*at));
        }
        serial.loss(Duration::from_secs(end), jobs)
    }

    #[test]
    fn the_loss_is_what_more_jobs_would_have_saved() {
        let log = [
            (0, "running build_ext"),
            (1, "/c/bin/nvcc -I/x -c a.cu -o a.o -arch=sm_90"),
            (31, "g++ -fPIC -c b.cpp -o b.o"),
            (41, "g++ -shared a.o b.o -o c.so"),
        ];
        let seconds = Duration::from_secs;
        assert_eq!(loss(&log, 45, 4), Some(Loss { sources: 2, took: seconds(40), possible: seconds(30) }));
        assert_eq!(loss(&log, 45, 1), None);
        assert_eq!(loss(&[&[(0, "[1/9] nvcc -c x.cu -o x.o")], &log[..]].concat(), 45, 4), None);
    }
}
