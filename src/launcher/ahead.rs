//! Compilers that run ahead of a build which starts them one after another, as setup.py does without ninja.
//!
//! A compile call is answered at once as if it had gone well; its compiler runs apart, below a copy of the stand-in that
//! takes over the connection. A link, and an archiver, waits until all that is ahead of its build has ended. Once one of
//! them has failed, so does that link, or the next compile call where that comes first. The build has then been told: one
//! that can do without the extension goes on with the next.
//!
//! Invariant: only objects in setuptools' own build folder are promised, of sources that the build did not write itself.
//! Nobody looks at them before they are linked, while a test whether a flag is known is answered when it is done.

use camino::{Utf8Path, Utf8PathBuf};

use super::call::{Call, Kind};
use super::coordinator::{Active, Hold, State};
use super::message::{Answer, send};
use super::schedule::{Id, Need};
use crate::sys::processes;

/// Where a call that runs ahead stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ahead {
    /// It does not.
    No,
    /// Its stand-in was told to run it apart, and has not said yet that it does.
    Told(Need),
    /// Its compiler waits or runs.
    Apart,
    /// Its compiler has ended.
    Over,
}

/// Whether a call of a Python may be answered before it is done. `source` is the build's tree.
pub(super) fn may(call: &Call, cwd: &Utf8Path, source: &Utf8Path) -> bool {
    let Some(object) = call.output.as_deref().filter(|_| call.kind == Kind::Compile) else { return false };
    let compiles_only = call.words.iter().any(|word| word == "-c" || word == "--compile");
    let object = cwd.join(object);
    let own = |folder: &Utf8Path| folder.file_name().is_some_and(|name| name.starts_with("temp."));
    let dots = |path: &Utf8PathBuf| path.components().any(|part| part.as_str() == "..");
    compiles_only
        && cwd.join(&call.subject).starts_with(source)
        && object.starts_with(source)
        && !dots(&object)
        && object.strip_prefix(source).is_ok_and(|below| below.ancestors().skip(1).any(own))
}

/// Whether a Python started this process itself.
pub(super) fn below_python(stand_in: Option<i32>) -> bool {
    let parent = stand_in.and_then(processes::parent);
    parent.and_then(processes::name).is_some_and(|name| name.starts_with("python"))
}

impl State {
    /// The call runs apart, in this process.
    pub(super) fn apart(&mut self, id: Id, pid: i32) {
        let Some(active) = self.active.get_mut(&id) else { return };
        let Ahead::Told(need) = active.ahead else { return };
        (active.ahead, active.stand_in) = (Ahead::Apart, Some(pid));
        self.schedule.ask(id, need, false);
        let failed = self.units.get(&active.unit).and_then(|unit| unit.failed.clone());
        if let Some(source) = failed {
            self.dismiss(id, &source);
        }
    }

    /// The call cannot run apart, and its stand-in waits for it after all.
    pub(super) fn not_apart(&mut self, id: Id) {
        let Some(active) = self.active.get_mut(&id) else { return };
        let Ahead::Told(need) = active.ahead else { return };
        active.ahead = Ahead::No;
        self.schedule.ask(id, need, false);
    }

    /// A call of a build that ran ahead has failed: what waits of the same is not begun.
    pub(super) fn failed_ahead(&mut self, number: usize, source: &str) {
        if let Some(unit) = self.units.get_mut(&number) {
            unit.failed.get_or_insert_with(|| source.to_owned());
        }
        let waits =
            |(_, active): &(&Id, &Active)| active.unit == number && active.ahead == Ahead::Apart && !active.running;
        let waiting: Vec<Id> = self.active.iter().filter(waits).map(|(id, _)| *id).collect();
        for id in waiting {
            self.dismiss(id, source);
        }
    }

    /// Lets those calls of a build that wait for it go on, or fail, once nothing of it is ahead any more.
    pub(super) fn caught_up(&mut self, number: usize) {
        if self.is_ahead(number) {
            return;
        }
        let behind = self.active.iter_mut().filter(|(_, active)| active.unit == number && active.hold == Hold::Behind);
        let behind: Vec<Id> = behind.map(|(id, active)| (active.hold = Hold::No, *id).1).collect();
        if behind.is_empty() {
            return;
        }
        let failed = self.units.get_mut(&number).and_then(|unit| unit.failed.take());
        for id in behind {
            match &failed {
                Some(source) => self.dismiss(id, source),
                None => self.schedule.release(id),
            }
        }
    }

    /// Whether compilers of a build run ahead of it.
    pub(super) fn is_ahead(&self, number: usize) -> bool {
        self.active.values().any(|active| active.unit == number && active.ahead != Ahead::No)
    }

    fn dismiss(&mut self, id: Id, source: &str) {
        self.schedule.leave(id);
        if let Some(active) = self.active.get_mut(&id) {
            if active.ahead == Ahead::Apart {
                active.ahead = Ahead::Over;
            }
            let _ = send(&mut active.stream, &Answer::Failed { source: source.to_owned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launcher::call;

    #[test]
    fn only_objects_of_setuptools_own_folder_are_promised() {
        let promised = |line: &str| {
            let words = shlex::split(line).unwrap();
            may(&call::read(&words, |_| None), "/b/src".into(), "/b/src".into())
        };
        assert!(promised(
            "-c csrc/a.cu -o build/temp.linux-x86_64-cpython-311/csrc/a.o -gencode arch=compute_90,code=sm_90"
        ));
        assert!(promised("-c /b/src/a.cpp -o /b/src/build/temp.linux-x86_64-cpython-311/a.o"));
        for line in [
            "-c /tmp/flag.cpp -o /tmp/build/temp.x/flag.o",
            "-c /tmp/flag.cpp -o build/temp.x/flag.o",
            "-c a.cpp -o a.o",
            "-c a.cpp",
            "-c a.cpp -o build/lib.linux-x86_64/a.o",
            "-c a.cpp -o build/temp.x/../../../elsewhere/a.o",
            "a.cpp -o build/temp.x/test",
            "-E a.cpp -o build/temp.x/a.i",
            "-shared build/temp.x/a.o -o build/lib.x/a.so",
        ] {
            assert!(!promised(line), "{line}");
        }
    }
}
