//! How many compile jobs fit: cores against memory, with the arithmetic in words.

use crate::recipe::size::ByteSize;

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
