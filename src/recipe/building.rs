//! `[build]` and `[tried]` as written → as judged: which build system, what it is told, who reads the archs.

use std::collections::BTreeMap;

use clap::ValueEnum as _;
use toml::Spanned;

use super::raw::{RawBazel, RawBuild, RawCmake, RawHeavy, RawTried};
use super::resolve::Judge;
use super::size::ByteSize;
use super::{ArchNames, Backend, Bazel, Build, Cmake, Heavy, HowFar, Tried, Words};
use crate::domain::arch::dialect::Consumer;

/// What a typical torch source file needs at its peak (nvcc with torch headers: 1.3 to 3 GiB).
pub(super) const DEFAULT_MEMORY: ByteSize = ByteSize(2 << 30);

pub(super) fn build(judge: &mut Judge<'_>, raw: &RawBuild) -> Build {
    let backend = backend(judge, raw.backend.as_ref());
    let archs = ArchNames {
        consumers: match &raw.archs_for {
            Some(names) => names.iter().filter_map(|name| consumer(judge, name)).collect(),
            None if raw.arch_env.is_empty() && raw.arch_define.is_empty() => backend.default_consumers().to_vec(),
            // The project has names of its own; others would only be left unused.
            None => Vec::new(),
        },
        env: words(judge, &raw.arch_env),
        define: words(judge, &raw.arch_define),
    };
    Build {
        backend,
        folder: folder(judge, raw.folder.as_ref()),
        archs,
        cmake: cmake(judge, &raw.cmake),
        bazel: bazel(judge, &raw.bazel, raw.backend.as_ref().filter(|_| backend == Backend::Bazel)),
        env: raw.env.iter().map(|(name, value)| (judge.variable(name), judge.value(value))).collect(),
        clear_env: raw.clear_env.iter().map(|name| judge.variable(name)).collect(),
        pass_env: raw.pass_env.iter().map(|name| judge.variable(name)).collect(),
        jobs_env: raw.jobs_env.iter().map(|name| judge.variable(name)).collect(),
        memory_per_job: memory(judge, raw.memory_per_job.as_ref()),
        heavy: raw.heavy.iter().map(|one| heavy(judge, one)).collect(),
        compile_ahead: raw.compile_ahead,
    }
}

fn heavy(judge: &mut Judge<'_>, raw: &RawHeavy) -> Heavy {
    Heavy { file: judge.glob(&raw.file), memory: memory(judge, Some(&raw.memory)) }
}

pub(super) fn tried(judge: &mut Judge<'_>, raw: &RawTried) -> Option<Tried> {
    let how = HowFar::ALL.into_iter().find(|how| how.name() == raw.how.get_ref());
    if how.is_none() {
        let message = format!("`{}` does not say how far the recipe was tried", raw.how.get_ref());
        let known = HowFar::ALL.map(|how| format!("`{}`", how.name())).join(", ");
        judge.refuse(&raw.how, "here", message, &format!("write one of {known}"));
    }
    Some(Tried {
        how: how?,
        on: raw.on.clone(),
        torch: raw.torch.clone(),
        cuda: raw.cuda.clone(),
        note: raw.note.clone(),
    })
}

fn backend(judge: &mut Judge<'_>, raw: Option<&Spanned<String>>) -> Backend {
    let Some(raw) = raw else { return Backend::SetupPy };
    Backend::named(raw.get_ref()).unwrap_or_else(|| {
        let message = format!("`{}` is no backend of this cuwright", raw.get_ref());
        let known = Backend::ALL.map(Backend::name).join(", ");
        judge.refuse(raw, "unknown backend", message, &format!("backends here: {known}"));
        Backend::SetupPy
    })
}

fn consumer(judge: &mut Judge<'_>, name: &Spanned<String>) -> Option<Consumer> {
    let found = Consumer::from_str(name.get_ref(), false).ok();
    if found.is_none() {
        let names = Consumer::value_variants().iter().filter_map(Consumer::to_possible_value);
        let known: Vec<String> = names.map(|value| value.get_name().to_owned()).collect();
        let message = format!("`{}` is nobody whose arch variables are known", name.get_ref());
        let help = format!("known are {}; a variable of the project's own goes into `arch-env`", known.join(", "));
        judge.refuse(name, "unknown reader", message, &help);
    }
    found
}

fn words(judge: &mut Judge<'_>, raw: &BTreeMap<Spanned<String>, Spanned<String>>) -> BTreeMap<String, Words> {
    let mut all = BTreeMap::new();
    for (name, spelling) in raw {
        let variable = judge.variable(name);
        if let Some((_, words)) = Words::ALL.into_iter().find(|(known, _)| known == spelling.get_ref()) {
            all.insert(variable, words);
        } else {
            let message = format!("`{}` is no spelling of archs", spelling.get_ref());
            let known = Words::ALL.map(|(name, _)| name).join(", ");
            judge.refuse(spelling, "here", message, &format!("spellings: {known}"));
        }
    }
    all
}

fn folder(judge: &mut Judge<'_>, raw: Option<&Spanned<String>>) -> String {
    let Some(raw) = raw else { return String::new() };
    let path = camino::Utf8Path::new(raw.get_ref());
    let below = path.components().all(|part| matches!(part, camino::Utf8Component::Normal(_)));
    if !below || raw.get_ref().is_empty() {
        let message = format!("`{}` is no folder below the source tree", raw.get_ref());
        judge.refuse(raw, "here", message, "write a path like `python` or `bindings/torch`");
    }
    raw.get_ref().clone()
}

fn cmake(judge: &mut Judge<'_>, raw: &RawCmake) -> Cmake {
    let mut list = |words: &[Spanned<String>]| words.iter().map(|word| plain(judge, word)).collect::<Vec<_>>();
    let (targets, components) = (list(&raw.targets), list(&raw.components));
    Cmake {
        defines: raw.defines.iter().map(|(name, value)| (define(judge, name), judge.value(value))).collect(),
        preset: raw.preset.as_ref().map(|preset| plain(judge, preset)),
        targets,
        components,
    }
}

fn define(judge: &mut Judge<'_>, name: &Spanned<String>) -> String {
    let text = name.get_ref();
    if text.is_empty() || text.contains(|c: char| c == '=' || c.is_whitespace() || c.is_control()) {
        let message = format!("`{}` is no name of a CMake variable", text.escape_debug());
        judge.refuse(name, "no blanks, no `=`", message, "write only the name, such as `BUILD_TESTING`");
    }
    text.clone()
}

/// A word that cannot be taken for an option.
fn plain(judge: &mut Judge<'_>, word: &Spanned<String>) -> String {
    let text = word.get_ref();
    if text.is_empty() || text.starts_with('-') && !text.starts_with("-//") || text.contains(char::is_control) {
        let message = format!("`{}` is no name", text.escape_debug());
        judge.refuse(word, "here", message, "options of the build system are not written here");
    }
    text.clone()
}

fn bazel(judge: &mut Judge<'_>, raw: &RawBazel, chosen: Option<&Spanned<String>>) -> Bazel {
    if let Some(backend) = chosen.filter(|_| raw.targets.is_empty()) {
        let message = "the backend `bazel` needs targets".to_owned();
        judge.refuse(backend, "builds nothing", message, "add `bazel.targets = [\"//pkg:name\"]` to `[build]`");
    }
    let mut flags = |words: &[Spanned<String>]| words.iter().map(|word| flag(judge, word)).collect::<Vec<_>>();
    let (own, startup_flags) = (flags(&raw.flags), flags(&raw.startup_flags));
    let text = |value: &Option<Spanned<String>>| value.as_ref().map(|value| value.get_ref().clone());
    Bazel {
        targets: raw.targets.iter().map(|target| plain(judge, target)).collect(),
        flags: own,
        startup_flags,
        disk_cache: text(&raw.disk_cache),
        remote_cache: text(&raw.remote_cache),
    }
}

/// Flags of Bazel that cuwright decides.
const DECIDED: [&str; 6] = [
    "--jobs",
    "--local_ram_resources",
    "--local_cpu_resources",
    "--build_event_json_file",
    "--output_user_root",
    "--output_base",
];

fn flag(judge: &mut Judge<'_>, word: &Spanned<String>) -> String {
    let text = word.get_ref();
    let name = text.split('=').next().unwrap_or_default();
    if !text.starts_with("--") || text.contains(char::is_control) {
        let message = format!("`{}` is no flag", text.escape_debug());
        judge.refuse(word, "here", message, "write one flag an item, such as `--config=cuda`");
    } else if DECIDED.contains(&name) {
        let message = format!("cuwright decides `{name}`");
        judge.refuse(word, "here", message, "remove it; jobs are named with `-j`, memory with `memory-per-job`");
    }
    text.clone()
}

fn memory(judge: &mut Judge<'_>, raw: Option<&Spanned<String>>) -> ByteSize {
    let Some(raw) = raw else { return DEFAULT_MEMORY };
    raw.get_ref().parse().unwrap_or_else(|why: String| {
        judge.refuse(raw, "no size", why, "write a number and a unit, such as `3 GiB`");
        DEFAULT_MEMORY
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Document, parse};
    use super::super::resolve::resolve;
    use super::*;
    use crate::domain::problem::Problems;
    use crate::recipe::Recipe;

    fn read(lines: &str) -> Result<Recipe, Problems> {
        let text = format!("schema = 1\n[package]\nname = \"x\"\n[source]\npath = \".\"\n{lines}");
        let document = Document { origin: "r.toml", text: &text };
        resolve(document, parse(document).unwrap(), |_| Err(String::new()))
    }

    #[test]
    fn defaults_follow_the_backend() {
        for (backend, requires, consumers) in [
            ("setup.py", 3, vec![Consumer::Torch]),
            ("cmake", 2, vec![Consumer::Cmake]),
            ("pyproject", 5, vec![Consumer::Torch, Consumer::Cmake]),
        ] {
            let recipe = read(&format!("[build]\nbackend = \"{backend}\"\n")).unwrap();
            assert_eq!((recipe.toolchain.build_requires.len(), &recipe.build.archs.consumers), (requires, &consumers));
        }
        let own = read("[build]\nbackend = \"cmake\"\narch-define.MY_SM = \"joined\"\n").unwrap().build.archs;
        assert_eq!((own.consumers, own.define["MY_SM"]), (Vec::new(), Words::Joined));
    }

    #[test]
    fn every_wrong_value_is_refused_at_its_place() {
        let text = "[build]\nbackend = \"bazel\"\nfolder = \"../x\"\narchs-for = [\"nobody\"]\narch-env.A = \"hex\"\n\
            [build.cmake]\npreset = \"\"\ntargets = [\"--all\"]\ndefines = { \"A B\" = \"1\" }\n\
            [build.bazel]\nflags = [\"-c\", \"--jobs=4\"]\n\
            [tried]\nhow = \"a lot\"\non = \"x\"\ntorch = \"2\"\ncuda = \"13\"\n";
        let problems = read(text).unwrap_err();
        let places = problems.iter().map(|p| p.snippet().map(|s| s.text[s.range.clone()].to_owned()).unwrap());
        let wanted = ["bazel", "../x", "nobody", "hex", "", "--all", "A B", "-c", "--jobs=4", "a lot"]
            .map(|w| format!("\"{w}\""));
        assert_eq!(places.collect::<Vec<_>>(), wanted);
    }
}
