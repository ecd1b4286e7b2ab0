//! How many compile jobs fit: cores against memory, with the arithmetic in words.

use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::recipe::Recipe;
use crate::recipe::size::ByteSize;
use crate::sys::{Env, env_vars::MAX_JOBS};

/// What this machine offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Cores this process may use.
    pub cores: u32,
    /// Memory that can be had without swapping, in bytes, control-group limits included; `None` where unknown.
    pub memory: Option<u64>,
}

/// What the user says about the number of jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bound {
    /// `-j`: the number itself, whatever cores and memory say.
    pub asked: Option<u32>,
    /// `MAX_JOBS` of the environment, where `-j` says nothing: no more than that.
    pub most: Option<u32>,
}

impl Bound {
    /// What the flag and the environment say.
    ///
    /// # Errors
    /// A `MAX_JOBS` that is no number of jobs. Unlike other variables it may not be empty.
    pub fn read(asked: Option<u32>, env: &Env) -> Result<Self, Problem> {
        let Some(value) = env.variables().get(MAX_JOBS).filter(|_| asked.is_none()) else {
            return Ok(Self { asked, most: None });
        };
        match value.trim().parse::<u32>() {
            Ok(most) if most > 0 => Ok(Self { asked, most: Some(most) }),
            _ => {
                let message = format!("`{MAX_JOBS}={value}` of the environment is no number of jobs");
                Err(Problem::new("cuwright::usage::max_jobs", Exit::Usage, message)
                    .why("it is the most compile jobs at once, where `-j` names no number")
                    .help(format!("unset {MAX_JOBS}, or set it to a number from 1 on"))
                    .help("or name the number with `-j`, which wins"))
            }
        }
    }

    /// Cores that compilers may use, of those of the machine.
    pub fn cores(self, machine: u32) -> u32 {
        self.asked.unwrap_or_else(|| machine.min(self.most.unwrap_or(u32::MAX))).max(1)
    }

    /// Whose word `number` is.
    fn words(self, number: u32) -> String {
        match self {
            Self { asked: Some(_), .. } => " as asked".to_owned(),
            Self { most: Some(most), .. } if most == number => format!(" by {MAX_JOBS}"),
            _ => String::new(),
        }
    }
}

/// A number of jobs and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jobs {
    /// At least 1.
    pub count: u32,
    /// The arithmetic.
    pub why: String,
    /// What may go wrong, if memory is short even for one job.
    pub warning: Option<String>,
}

/// How nvcc is told to compile several archs at once, each in a process that needs memory of its own.
const THREADS: &str = "NVCC_THREADS";

/// What a compile job of a recipe needs: its own figure, for each of nvcc's threads.
pub fn memory(recipe: &Recipe, env: &Env) -> ByteSize {
    let passed = recipe.build.pass_env.iter().any(|name| name == THREADS).then(|| env.get(THREADS)).flatten();
    let threads = recipe.build.env.get(THREADS).map(String::as_str).or(passed);
    let threads =
        threads.and_then(|text| text.trim().parse::<u64>().ok()).filter(|threads| (1..=1024).contains(threads));
    ByteSize(recipe.build.memory_per_job.0.saturating_mul(threads.unwrap_or(1)))
}

/// How wide one compiler call is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Width {
    /// nvcc's `--threads`, with the variable that sets it; `None` where nothing does.
    pub threads: Option<(u32, String)>,
    /// Archs that nvcc compiles for; it has no use for more threads.
    pub archs: usize,
}

impl Width {
    /// Reads the variables by which flags reach nvcc.
    pub fn read<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>, archs: usize) -> Self {
        let mut threads = None;
        for (name, flags) in variables {
            let mut words = flags.split_whitespace();
            while let Some(word) = words.next() {
                let value = match word.split_once('=') {
                    Some(("--threads" | "-t", value)) => Some(value),
                    None if matches!(word, "--threads" | "-t") => words.next(),
                    _ => None,
                };
                if let Some(number) = value.and_then(|value| value.parse().ok()).filter(|number| *number > 1) {
                    threads = Some((number, name.to_owned()));
                }
            }
        }
        Self { threads, archs }
    }

    /// Cores that one call keeps busy.
    fn cores(&self) -> u32 {
        let threads = self.threads.as_ref().map_or(1, |(threads, _)| *threads);
        threads.min(u32::try_from(self.archs.max(1)).unwrap_or(u32::MAX))
    }

    fn why(&self) -> String {
        let Some((threads, variable)) = &self.threads else { return String::new() };
        let archs = plural(u32::try_from(self.archs).unwrap_or(u32::MAX), "arch");
        format!(", {} each: --threads {threads} of {variable} for {archs}", plural(self.cores(), "core"))
    }
}

fn plural(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Jobs for a recipe whose jobs need `each` bytes, within what the user says. With the launcher, memory is looked at
/// call by call, and the number only bounds the cores.
pub fn jobs(machine: Machine, each: ByteSize, width: &Width, bound: Bound, launcher: bool) -> Jobs {
    let fits = machine.memory.map(|memory| u32::try_from(memory / each.0).unwrap_or(u32::MAX));
    let wide = machine.cores / width.cores();
    let most = bound.most.unwrap_or(u32::MAX);
    let count = bound.asked.unwrap_or_else(|| wide.min(fits.unwrap_or(u32::MAX)).min(most)).max(1);
    let cores = plural(machine.cores, "core");
    if launcher {
        let used = bound.cores(machine.cores);
        let memory = machine.memory.map_or_else(
            || "memory unknown".to_owned(),
            |memory| format!("{} of memory, {each} for a source not built before", ByteSize(memory)),
        );
        let said = bound.words(used);
        let of = if said.is_empty() { String::new() } else { format!(" of {}", machine.cores) };
        let why =
            format!("compilers on {}{said}{of}{}, let in by memory ({memory})", plural(used, "core"), width.why());
        let warning = (fits == Some(0)).then(|| {
            format!("a compiler is said to need {each}, and there is less ({memory}): they run one at a time")
        });
        return Jobs { count, why, warning };
    }
    let memory = machine.memory.map_or_else(
        || "memory unknown".to_owned(),
        |memory| format!("memory for {}: {} available, {each} a job", fits.unwrap_or(0), ByteSize(memory)),
    );
    let why = format!("{}{} ({cores}{}, {memory})", plural(count, "job"), bound.words(count), width.why());
    let warning = fits.filter(|fits| count > (*fits).max(1) || *fits == 0).map(|fits| {
        format!(
            "{count} jobs of {each} want more memory than there is ({memory}); compilers may be killed, {} fit",
            fits.max(1)
        )
    });
    Jobs { count, why, warning }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: ByteSize = ByteSize(3 << 30);

    const OPEN: Bound = Bound { asked: None, most: None };

    fn plain(machine: Machine, asked: Option<u32>) -> Jobs {
        jobs(machine, EACH, &Width::default(), Bound { asked, ..OPEN }, false)
    }

    #[test]
    fn max_jobs_of_the_environment_is_a_limit_that_j_lifts() {
        let read = |asked, value| Bound::read(asked, &Env::of("/", [(MAX_JOBS, value)]));
        assert_eq!(read(None, " 3 "), Ok(Bound { asked: None, most: Some(3) }));
        assert_eq!(Bound::read(None, &Env::of("/", [])), Ok(OPEN));
        for wrong in ["0", "x", "", "-1", "1.5", "99999999999"] {
            let problem = read(None, wrong).unwrap_err();
            assert_eq!((problem.code(), problem.exit()), ("cuwright::usage::max_jobs", Exit::Usage));
            assert!(problem.message().contains(&format!("`MAX_JOBS={wrong}`")));
            assert_eq!(read(Some(2), wrong), Ok(Bound { asked: Some(2), most: None }), "`-j` wins over {wrong:?}");
        }
        let machine = Machine { cores: 16, memory: Some(24 << 30) };
        let most = |most| Bound { asked: None, most: Some(most) };
        let said = |bound, launcher| jobs(machine, EACH, &Width::default(), bound, launcher);
        assert_eq!([3, 8, 64].map(|number| said(most(number), false).count), [3, 8, 8], "memory is for 8");
        assert!(said(most(3), false).why.starts_with("3 jobs by MAX_JOBS (16 cores"));
        assert!(!said(most(64), false).why.contains("MAX_JOBS"));
        assert!(said(most(3), true).why.starts_with("compilers on 3 cores by MAX_JOBS of 16, let in by"));
        assert!(said(most(64), true).why.starts_with("compilers on 16 cores, let in by"));
        assert_eq!([most(3).cores(16), most(64).cores(16), OPEN.cores(16)], [3, 16, 16]);
    }

    #[test]
    fn threads_of_nvcc_multiply_the_memory() {
        let mut recipe = crate::recipe::sample();
        let each = recipe.build.memory_per_job;
        let env = Env::of("/", [("NVCC_THREADS", "4")]);
        assert_eq!(memory(&recipe, &env), each);
        recipe.build.pass_env.push("NVCC_THREADS".into());
        assert_eq!(memory(&recipe, &env), ByteSize(each.0 * 4));
        recipe.build.env.insert("NVCC_THREADS".into(), "2".into());
        assert_eq!(memory(&recipe, &env), ByteSize(each.0 * 2));
    }

    #[test]
    fn memory_bounds_the_jobs_unless_asked_otherwise() {
        let machine = Machine { cores: 96, memory: Some(24 << 30) };
        assert_eq!(plain(machine, None).count, 8);
        assert!(plain(machine, None).warning.is_none());
        let asked = plain(machine, Some(32));
        assert_eq!((asked.count, asked.warning.is_some()), (32, true));
        let tiny = plain(Machine { cores: 2, memory: Some(1 << 30) }, None);
        assert_eq!((tiny.count, tiny.warning.is_some()), (1, true));
        assert_eq!(plain(Machine { cores: 2, memory: None }, None).count, 2);
    }

    #[test]
    fn threads_and_archs_and_jobs_are_one_budget() {
        let machine = Machine { cores: 16, memory: Some(96 << 30) };
        let of = |flags: &str, archs: usize| Width::read([("NVCC_APPEND_FLAGS", flags)], archs);
        for (flags, archs, count) in [("", 3, 16), ("--threads 4", 3, 5), ("-t=4", 9, 4), ("-O2 --threads x", 3, 16)] {
            assert_eq!(jobs(machine, EACH, &of(flags, archs), OPEN, false).count, count, "{flags}");
        }
        let why = jobs(machine, EACH, &of("--threads 4", 3), OPEN, false).why;
        let words = "5 jobs (16 cores, 3 cores each: --threads 4 of NVCC_APPEND_FLAGS for 3 archs, memory for 32: 96 GiB \
                     available, 3 GiB a job)";
        assert_eq!(why, words);
    }

    #[test]
    fn the_launcher_bounds_cores_and_looks_at_memory_call_by_call() {
        let machine = Machine { cores: 16, memory: Some(24 << 30) };
        let said = jobs(machine, EACH, &Width::default(), Bound { asked: Some(8), ..OPEN }, true);
        let words = "compilers on 8 cores as asked of 16, let in by memory (24 GiB of memory, 3 GiB for a source not built before)";
        assert_eq!((said.why.as_str(), said.warning), (words, None));
        let short = Machine { cores: 16, memory: Some(1 << 30) };
        assert!(jobs(short, EACH, &Width::default(), OPEN, true).warning.is_some());
    }
}
