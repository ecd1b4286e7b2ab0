//! What CMake says at the end of a configure about variables that nobody read.
//!
//! A variable of ours that carries archs and was not read means a build for other GPUs than asked for, so that is an
//! error, and it comes before anything is compiled.

use crate::domain::exit::Exit;
use crate::domain::problem::Problem;

const HEAD: &str = "Manually-specified variables were not used by the project";

/// Collects the names of unread variables, line by line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unread {
    names: Vec<String>,
    reading: bool,
}

impl Unread {
    /// Looks at the next line.
    pub fn see(&mut self, line: &str) {
        if line.contains(HEAD) {
            self.reading = true;
        } else if self.reading && !line.trim().is_empty() {
            // Names are indented deeper than the head; the next line of another kind ends the list.
            self.reading = line.starts_with("    ") && !line.trim().contains(' ');
            if self.reading {
                self.names.push(line.trim().to_owned());
            }
        }
    }

    /// Judges what was not read: `archs` are names that carry archs, `toolchain` those that no project reads all of.
    /// Gives back the recipe's own ones.
    ///
    /// # Errors
    /// A variable that carries archs.
    pub fn judge(&self, archs: &[(String, String)], toolchain: &[&str]) -> Result<Vec<&str>, Problem> {
        let carries = |name: &String| archs.iter().any(|(arch, _)| arch == name);
        let lost: Vec<&str> = self.names.iter().filter(|name| carries(name)).map(String::as_str).collect();
        if lost.is_empty() {
            let own = |name: &&str| !toolchain.contains(name);
            return Ok(self.names.iter().map(String::as_str).filter(own).collect());
        }
        let given: Vec<String> = archs.iter().map(|(name, value)| format!("-D{name}={value}")).collect();
        let mut problem = Problem::new(
            "cuwright::build::archs_not_read",
            Exit::Build,
            format!("the project does not read {}", lost.join(", ")),
        )
        .why(format!("CMake was given {}", given.join(" ")))
        .why("it ended its configure with \"Manually-specified variables were not used by the project\"");
        if lost.contains(&"CMAKE_CUDA_ARCHITECTURES") {
            problem = problem.why("so the project does not enable CMake's CUDA language");
        }
        Err(problem
            .help("say in `build.archs-for` whose variables the project reads, such as `caffe`, `opencv` or `torch`")
            .help("or name the project's own variable in `build.arch-define` or `build.arch-env`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread(log: &str) -> Unread {
        let mut unread = Unread::default();
        log.lines().for_each(|line| unread.see(line));
        unread
    }

    const LOG: &str = "-- Generating done (0.0s)\nCMake Warning (unused-cli):\n  Manually-specified variables were not \
                       used by the project:\n\n    CUDAToolkit_ROOT\n    CUDA_ARCH_BIN\n    FOO\n\n\n-- Build files have been \
                       written to: /b\n    not this\n";

    #[test]
    fn a_variable_that_carries_archs_is_an_error_and_others_are_not() {
        let archs = |name: &str| vec![(name.to_owned(), "9.0".to_owned())];
        let toolchain = ["CUDAToolkit_ROOT"];
        assert_eq!(unread(LOG).judge(&archs("OTHER"), &toolchain), Ok(vec!["CUDA_ARCH_BIN", "FOO"]));
        let problem = unread(LOG).judge(&archs("CUDA_ARCH_BIN"), &toolchain).unwrap_err();
        assert_eq!(problem.message(), "the project does not read CUDA_ARCH_BIN");
        assert_eq!(unread("").judge(&archs("CUDA_ARCH_BIN"), &toolchain), Ok(Vec::new()));
    }
}
