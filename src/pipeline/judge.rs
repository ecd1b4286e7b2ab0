//! Judges finished files, built by us or not: joins `verify`'s parts with a recipe, this machine's GPUs and a Python.
//!
//! Invariant: every file of every input is judged, whatever another one lacks; only a question that makes no sense
//! stops early. Nothing is provisioned and no toolkit is needed.

use camino::{Utf8Path, Utf8PathBuf};

use super::{aim, gpu_check, load};
use crate::domain::arch::ArchSet;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::domain::toolchain::{Python, Torch};
use crate::probe::{facts::Facts, gpu, packages, python, torch};
use crate::recipe;
use crate::report::GpuCheck;
use crate::sys::Env;
use crate::sys::env_vars::LD_LIBRARY_PATH;
use crate::targets::{self, Listed};
use crate::verify::abi::{self, Abi};
use crate::verify::coverage::{self, Lack};
use crate::verify::fate::{self, Driver, Gpu};
use crate::verify::found::{self, Depth, Found};
use crate::verify::import::{self, Checker};
use crate::verify::input::{self, Opened};
use crate::verify::outcome::{Check, File, Finding, Input, Outcome, SCHEMA, Topic, passes};
use crate::verify::site::{self, ExtensionFile};
use crate::verify::wheel::{self, Beside};

/// What is asked of finished files, flags as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// Wheels, libraries, folders, globs.
    pub files: Vec<Utf8PathBuf>,
    /// `--package`.
    pub package: Option<String>,
    /// `--expect`.
    pub expect: Option<String>,
    /// `--profile`.
    pub profile: Option<String>,
    /// `--strict`.
    pub strict: bool,
    /// `--runs-on` values.
    pub runs_on: Vec<String>,
    /// `--driver`.
    pub driver: Option<String>,
    /// `--recipe`.
    pub recipe: Option<String>,
    /// `--python`.
    pub python: Option<String>,
    /// `--torch-dir`.
    pub torch_dir: Option<Utf8PathBuf>,
}

/// Facts and findings about how a file links.
type Interface = (Option<Abi>, Vec<Finding>);

/// The question, understood.
struct Judge<'a> {
    question: &'a Question,
    env: &'a Env,
    verify: recipe::Verify,
    expected: Option<ArchSet>,
    gpus: Vec<Gpu>,
    driver: Option<Driver>,
    python: Option<Python>,
    torch: Option<Torch>,
}

/// Judges.
///
/// # Errors
/// A question that makes no sense: an unknown GPU, a list that does not read, no such recipe or Python.
pub fn judge(question: &Question, env: &Env, cache_root: Option<&Utf8Path>) -> Result<Outcome, Problems> {
    let judge = understand(question, env, cache_root)?;
    let mut inputs = Vec::new();
    let unread = |file: String, problem: Problem| {
        let findings = vec![Finding::error(Topic::File, problem)];
        Input { file, ok: false, files: Vec::new(), import: None, gpu_check: None, findings }
    };
    for path in &question.files {
        let opened = input::open(&env.absolute(path), path.as_str()).into_iter();
        inputs.extend(opened.map(|opened| match opened {
            Ok(opened) => judge.input(&opened),
            Err(input::Unopened { name, problem }) => unread(name, problem),
        }));
    }
    if let (Some(name), Some(python)) = (&question.package, &judge.python) {
        inputs
            .push(package(name, python).map_or_else(|problem| unread(name.clone(), problem), |all| judge.input(&all)));
    }
    let expected = judge.expected.as_ref().map(ToString::to_string);
    let driver = judge.driver.as_ref().map(|driver| driver.name.clone());
    Ok(Outcome { schema: SCHEMA, ok: true, expected, driver, inputs }.settled())
}

fn understand<'a>(question: &'a Question, env: &'a Env, cache_root: Option<&Utf8Path>) -> Result<Judge<'a>, Problems> {
    let recipe = question.recipe.as_deref().map(|name| load::load(Some(name), env)).transpose()?;
    let expected = match (&question.expect, &recipe) {
        (Some(list), _) => Some(targets::literal("--expect", list)?),
        (None, Some(loaded)) if question.runs_on.is_empty() || question.profile.is_some() => {
            of_recipe(loaded, question.profile.as_deref())?
        }
        _ => None,
    };
    let mut driver = question.driver.as_deref().map(fate::driver).transpose()?;
    let mut problems = Vec::new();
    let mut here = Vec::new();
    let native = || {
        let detection = gpu::detect(env);
        here.extend(detection.problem());
        if let (None, Some(cuda)) = (&driver, detection.cuda_driver) {
            driver = Some(Driver { cuda, name: format!("this machine's driver, which is for CUDA {cuda}") });
        }
        let named = |(device, capability): (&gpu::Device, _)| Gpu {
            name: device.name.clone().unwrap_or_else(|| format!("GPU {}", device.index)),
            capability,
        };
        detection.usable().map(named).collect()
    };
    let gpus = fate::gpus(&question.runs_on, native).unwrap_or_else(|found| {
        problems.extend(found);
        Vec::new()
    });
    if !question.runs_on.is_empty() && gpus.is_empty() && problems.is_empty() && here.is_empty() {
        let empty = Problem::new("cuwright::target::empty_list", Exit::Usage, "`--runs-on` names no GPU");
        problems
            .push(empty.why("its value is empty").help("name GPUs: `--runs-on \"RTX 3090, H100\"`, or leave it out"));
    }
    problems.extend(here);
    Problems::check(problems)?;
    let python = match (&question.python, &question.package) {
        (None, None) => None,
        (wanted, _) => Some(interpreter(wanted.as_deref(), env, cache_root)?),
    };
    let torch = match (&question.torch_dir, &python) {
        (Some(folder), _) => Some(named_torch(&env.absolute(folder), folder)?),
        (None, Some(python)) => torch::find(&python.site_dirs),
        (None, None) => None,
    };
    let verify = recipe.map(|loaded| loaded.recipe.verify).unwrap_or_default();
    Ok(Judge { question, env, verify, expected, gpus, driver, python, torch })
}

/// The torch in a folder: its package, the folder that holds the package, or its `lib`.
fn named_torch(path: &Utf8Path, shown: &Utf8Path) -> Result<Torch, Problem> {
    let candidates = [Some(path.to_owned()), Some(path.join("torch")), path.parent().map(Utf8Path::to_owned)];
    candidates.iter().flatten().find_map(|folder| torch::describe(folder)).ok_or_else(|| {
        Problem::new("cuwright::usage::no_torch", Exit::Usage, format!("there is no torch in {shown}"))
            .why("a torch has a version.py and a folder `lib`")
            .help("name the folder of the package: `python -c \"import torch; print(torch.__path__[0])\"`")
    })
}

/// The archs that a recipe or its profile names; none where it names none.
fn of_recipe(loaded: &load::Loaded, profile: Option<&str>) -> Result<Option<ArchSet>, Problems> {
    let profile = profile.map(|name| aim::profile(loaded, name)).transpose()?;
    let archs = &loaded.recipe.targets.arch;
    if archs.is_empty() && profile.is_none() {
        return Ok(None);
    }
    let listed = Listed { name: &loaded.origin, arch: archs, gpus: &[] };
    let profile = profile.map(|profile| Listed { name: &loaded.origin, arch: &profile.arch, gpus: &profile.gpus });
    let request = targets::Request { recipe: Some(listed), profile, ..targets::Request::default() };
    let nothing = || targets::Detected {
        notes: vec![format!("{} names this machine's GPUs, which are no expectation: pass `--expect`", loaded.origin)],
        ..targets::Detected::default()
    };
    Ok(Some(targets::select(&request, targets::Facts::default(), nothing)?.set))
}

/// The Python that is asked for, else the first that works.
pub fn interpreter(wanted: Option<&str>, env: &Env, cache_root: Option<&Utf8Path>) -> Result<Python, Problem> {
    let facts = Facts::new(cache_root);
    let mut refusal = None;
    for candidate in python::candidates(wanted, env)? {
        match python::describe(&candidate, env, &facts) {
            Ok(python) => return Ok(python),
            Err(problem) => drop(refusal.get_or_insert(problem)),
        }
    }
    Err(refusal.unwrap_or_else(|| {
        Problem::new("cuwright::probe::python_missing", Exit::Toolchain, "no Python was found")
            .help("name one with `--python`")
    }))
}

/// The extension files of an installed package, by the list that its installer wrote.
///
/// # Errors
/// A package that is not there, or one without a list of its files.
pub fn package(name: &str, python: &Python) -> Result<Opened, Problem> {
    let wanted = crate::domain::requirement::normalise(name);
    let absent = |why: String| {
        Problem::new("cuwright::verify::no_package", Exit::Verify, format!("{name} is not installed as a package"))
            .why(why)
            .help("name the Python that has it with `--python`, or name its files or its folder")
    };
    let installed = packages::installed(&python.site_dirs);
    let package = installed.iter().find(|package| package.name == wanted);
    let package = package.ok_or_else(|| absent(format!("{} knows no such package", python.executable)))?;
    let record = package.metadata.join("RECORD");
    let list = fs_err::read_to_string(&record).map_err(|error| absent(format!("its list of files: {error}")))?;
    let root = package.metadata.parent().unwrap_or(Utf8Path::new("/")).to_owned();
    let mut files: Vec<ExtensionFile> = list
        .lines()
        .filter_map(|line| line.rsplitn(3, ',').last())
        .map(|name| name.trim_matches('"'))
        .filter(|name| !name.starts_with("..") && site::is_extension(Utf8Path::new(name)))
        .map(|name| ExtensionFile { name: name.to_owned(), path: root.join(name) })
        .collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Opened::folder(format!("{} {}", package.name, package.version), root, files))
}

impl Judge<'_> {
    fn input(&self, opened: &Opened) -> Input {
        let depth = if self.gpus.is_empty() { Depth::Headers } else { Depth::Makers };
        let (mut found, mut findings) = (Vec::new(), Vec::new());
        for file in &opened.files {
            match found::read(file, &opened.label(file), depth) {
                Ok(read) => found.push(Found { in_wheel: opened.is_artifact(), ..read }),
                Err(problem) => findings.push(Finding::error(Topic::File, problem)),
            }
        }
        if findings.is_empty() {
            let absent = coverage::absent(&self.verify, &found).into_iter();
            findings.extend(absent.map(|problem| Finding::error(Topic::File, problem)));
        }
        if opened.is_wheel() {
            let facts = wheel::facts(&opened.name, &opened.root, &opened.files);
            findings.extend(wheel::judge(&facts, Beside::of(self.torch.as_ref())));
        }
        let interfaces = self.interfaces(opened);
        let globs = coverage::globs(&self.verify);
        let judged = found.iter().filter(|file| coverage::is_judged(&globs, file));
        let mut files: Vec<File> = judged.map(|file| self.file(file, &found)).collect();
        for (name, (abi, amiss)) in interfaces {
            match files.iter_mut().find(|file| file.file == name) {
                Some(file) => {
                    file.abi = abi;
                    file.findings.extend(amiss);
                }
                // A file that is not judged by its device code is still loaded.
                None => findings.extend(amiss),
            }
        }
        // Warnings do not keep a file from being imported.
        let sound = passes(&findings) && files.iter().all(|file| passes(&file.findings));
        let mut input = Input { file: opened.name.clone(), ok: false, files, import: None, gpu_check: None, findings };
        if sound && self.question.python.is_some() {
            self.import(opened, &found, &mut input);
        }
        input
    }

    fn file(&self, file: &Found, all: &[Found]) -> File {
        let mut findings: Vec<Finding> = coverage::oddities(file).map(|text| warning(Topic::File, text)).collect();
        let waivers = coverage::waivers(&self.verify, file);
        let damaged = coverage::damaged(file);
        let whole = damaged.is_none();
        findings.extend(damaged.map(|problem| Finding::error(Topic::File, problem)));
        if let Some(expected) = self.expected.as_ref().filter(|_| whole) {
            let lack = coverage::lack(&self.verify, expected, file, all);
            findings.extend(lack.map(|lack| of_lack(self.strictly(lack, file, &format!("wanted {expected}")))));
            if self.question.strict {
                let extra = coverage::extra(file, expected);
                findings.extend(extra.map(|problem| Finding::error(Topic::DeviceCode, problem)));
            }
        }
        let mut gpus = Vec::new();
        for gpu in self.gpus.iter().filter(|_| whole) {
            let mut fate = fate::fate(file, gpu, self.driver.as_ref());
            let arch = crate::domain::arch::Arch::plain(gpu.capability);
            fate.waived = waivers
                .iter()
                .find(|waiver| !fate.starts() && coverage::excuses(waiver, arch))
                .map(|waiver| waiver.reason.clone());
            gpus.push(fate);
        }
        let stuck = gpus.iter().filter(|fate| !fate.starts() && fate.waived.is_none());
        if file.archs.is_empty() && stuck.clone().next().is_some() {
            let names: Vec<&str> = stuck.map(|fate| fate.gpu.as_str()).collect();
            if self.expected.is_none() {
                let wanted = format!("wanted some for {}", names.join(", "));
                let lack = coverage::without_code(&self.verify, &wanted, file, all);
                findings.push(of_lack(self.strictly(lack, file, &wanted)));
            }
        } else {
            findings.extend(stuck.map(|fate| Finding::error(Topic::Gpu, fate::refusal(file, fate))));
        }
        let partial = gpus.iter().filter(|fate| fate.starts() && fate.without > 0);
        findings.extend(partial.map(|fate| {
            let problem = Problem::new(
                "cuwright::verify::partial_code",
                Exit::Verify,
                format!("{}: {} of {} fatbins hold nothing for {}", file.file, fate.without, fate.fatbins, fate.gpu),
            );
            let problem = problem
                .why("a kernel of such a fatbin fails when it is launched there")
                .help("right where a source serves one generation; else its arch flags differ from the others'");
            if self.question.strict {
                Finding::error(Topic::Gpu, problem)
            } else {
                Finding::warning(Topic::Gpu, problem)
            }
        }));
        File {
            file: file.file.clone(),
            ok: true,
            found: file.archs.to_string(),
            cubins: file.cubins,
            ptx: file.ptx,
            toolkit: file.toolkit.map(|toolkit| toolkit.to_string()),
            waived: waivers.first().map(|waiver| waiver.reason.clone()),
            gpus,
            abi: None,
            findings,
        }
    }

    /// With `--strict`, a file without device code fails even beside others that have some.
    fn strictly(&self, lack: Lack, file: &Found, wanted: &str) -> Lack {
        match lack {
            Lack::Warning(_) if self.question.strict && file.archs.is_empty() => {
                Lack::Problem(coverage::no_code(file, wanted))
            }
            lack => lack,
        }
    }

    /// The binary interface of every file, judged or not: they load one another.
    fn interfaces(&self, opened: &Opened) -> Vec<(String, Interface)> {
        let files: Vec<(String, Utf8PathBuf)> =
            opened.files.iter().map(|file| (opened.label(file), file.path.clone())).collect();
        let site_dirs = self.site_dirs();
        let searched = self.env.get(LD_LIBRARY_PATH).unwrap_or_default().split(':').filter(|path| !path.is_empty());
        let system: Vec<Utf8PathBuf> = searched.map(|path| self.env.absolute(Utf8Path::new(path))).collect();
        let against = abi::Against {
            wheel: Some(opened.name.as_str()).filter(|_| opened.is_wheel()),
            torch: self.torch.as_ref(),
            site_dirs: &site_dirs,
            system: &system,
        };
        let judged = abi::judge(&files, &against);
        files.into_iter().map(|(name, _)| name).zip(judged).collect()
    }

    fn site_dirs(&self) -> Vec<Utf8PathBuf> {
        let beside = self.torch.as_ref().and_then(|torch| torch.folder.parent()).map(Utf8Path::to_owned);
        let named = self.python.as_ref().filter(|_| self.question.torch_dir.is_none());
        named.map_or_else(|| beside.into_iter().collect(), |python| python.site_dirs.clone())
    }

    fn import(&self, opened: &Opened, found: &[Found], input: &mut Input) {
        let Some(python) = &self.python else { return };
        let site = import::site_of(opened);
        let modules = self.verify.import.clone().unwrap_or_else(|| import::modules_of(&site));
        let setting = gpu_check::Setting {
            verify: &self.verify,
            found,
            python: &python.executable,
            env: self.env.variables().clone(),
            within: None,
            site: &site,
            modules: &modules,
        };
        let import = || {
            Checker::start(&python.executable, self.env.variables().clone(), None, true)
                .and_then(|checker| import::run(checker, &site, &modules, self.verify.check.as_deref()))
        };
        let (said, on_gpu) = gpu_check::beside(setting, || gpu::detect(self.env), import);
        match said {
            Ok(output) => input.import = Some(Check { ok: true, output }),
            Err(problem) => {
                input.import = Some(Check { ok: false, output: Vec::new() });
                input.findings.push(Finding::error(Topic::Import, problem));
                return;
            }
        }
        let ran = on_gpu.unwrap_or_else(|problem| {
            let check = GpuCheck::not_run(problem.message());
            Some((check, Some(problem)))
        });
        if let Some((check, problem)) = ran {
            input.gpu_check = Some(check);
            input.findings.extend(problem.map(|problem| Finding::error(Topic::GpuCheck, problem)));
        }
    }
}

fn of_lack(lack: Lack) -> Finding {
    match lack {
        Lack::Problem(problem) => Finding::error(Topic::DeviceCode, problem),
        Lack::Warning(text) => warning(Topic::DeviceCode, text),
    }
}

fn warning(topic: Topic, text: String) -> Finding {
    Finding::warning(topic, Problem::new("cuwright::verify::odd_file", Exit::Verify, text))
}
