//! Reads ninja's status lines and compiler command lines out of a build's output.
//!
//! `NINJA_STATUS` is set by the plan to `[%f/%t] `, so a line starts with finished and known steps. Pure.

/// One finished step of a ninja build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step<'a> {
    /// Steps finished, this one included.
    pub done: u32,
    /// Steps known.
    pub total: u32,
    /// The command that was run, or ninja's description of it.
    pub command: &'a str,
}

/// Reads `[3/136] command`.
pub fn step(line: &str) -> Option<Step<'_>> {
    let (counts, command) = line.strip_prefix('[')?.split_once("] ")?;
    let (done, total) = counts.split_once('/')?;
    let (done, total) = (done.trim().parse().ok()?, total.trim().parse().ok()?);
    (done <= total).then_some(Step { done, total, command })
}

const SOURCES: [&str; 8] = [".cu", ".cpp", ".cc", ".cxx", ".c", ".cp", ".C", ".c++"];

/// File name of the source that a compiler command works on.
pub fn source(command: &str) -> Option<String> {
    let words = shlex::Shlex::new(command);
    let path = words.filter(|word| !word.starts_with('-')).find(|word| is_source(word))?;
    path.rsplit('/').next().map(str::to_owned)
}

/// File name of the source in an argument vector.
pub fn source_of(argv: &[String]) -> Option<&str> {
    argv.iter()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .find(|word| is_source(word))
        .and_then(|path| path.rsplit('/').next())
}

fn is_source(word: &str) -> bool {
    SOURCES.iter().any(|suffix| word.ends_with(suffix) && word.len() > suffix.len())
}

/// Whether a command line runs nvcc.
pub fn runs_nvcc(line: &str) -> bool {
    line.split([' ', '/', '\'', '"']).take(64).any(|word| word == "nvcc")
        && ["-gencode", "-arch", "--generate-code", "--gpu-architecture"].iter().any(|flag| line.contains(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_gives_counts_and_the_source() {
        let line = "[37/136] /c/bin/nvcc -MD -MF a.o.d -I/x -c '/a b/nms_cuda.cu' -o /b/nms_cuda.o -O3 \
                    -gencode=arch=compute_90,code=sm_90";
        let step = step(line).unwrap();
        assert_eq!((step.done, step.total), (37, 136));
        assert_eq!(source(step.command).as_deref(), Some("nms_cuda.cu"));
        assert!(runs_nvcc(line));
    }

    #[test]
    fn other_lines_are_no_steps() {
        for line in ["", "[1/2]", "[a/b] x", "[3/2] x", "running build_ext", "[INFO/1] x"] {
            assert_eq!(step(line), None, "{line}");
        }
        assert_eq!(source("g++ a.o b.o -o lib.so"), None);
        assert_eq!(source("unbalanced ' quote"), None);
        assert!(!runs_nvcc("ninja: build stopped: nvcc failed"));
    }
}
