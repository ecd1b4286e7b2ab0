//! How many compile jobs fit: cores against memory, with the arithmetic in words.

use crate::recipe::Recipe;
use crate::recipe::size::ByteSize;
use crate::sys::Env;

/// What this machine offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Cores this process may use.
    pub cores: u32,
    /// Memory that can be had without swapping, in bytes, control-group limits included; `None` where unknown.
    pub memory: Option<u64>,
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

/// Jobs for a recipe whose jobs need `each` bytes; `asked` is the user's own number, which wins.
pub fn jobs(machine: Machine, each: ByteSize, asked: Option<u32>) -> Jobs {
    let fits = machine.memory.map(|memory| u32::try_from(memory / each.0).unwrap_or(u32::MAX));
    let count = asked.unwrap_or_else(|| machine.cores.min(fits.unwrap_or(u32::MAX)));
    let count = count.max(1);
    let plural = |number: u32, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
    let memory = machine.memory.map_or_else(
        || "memory unknown".to_owned(),
        |memory| format!("memory for {}: {} available, {each} a job", fits.unwrap_or(0), ByteSize(memory)),
    );
    let cores = plural(machine.cores, "core");
    let asked = if asked.is_some() { " as asked" } else { "" };
    let why = format!("{}{asked} ({cores}, {memory})", plural(count, "job"));
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
        let each = ByteSize(3 << 30);
        assert_eq!(jobs(machine, each, None).count, 8);
        assert!(jobs(machine, each, None).warning.is_none());
        let asked = jobs(machine, each, Some(32));
        assert_eq!((asked.count, asked.warning.is_some()), (32, true));
        let tiny = jobs(Machine { cores: 2, memory: Some(1 << 30) }, each, None);
        assert_eq!((tiny.count, tiny.warning.is_some()), (1, true));
        assert_eq!(jobs(Machine { cores: 2, memory: None }, each, None).count, 2);
    }
}
