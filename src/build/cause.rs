//! The first line of a failed build's output that names an error, so that the last one is not taken for it.
//!
//! Deliberately general: it knows how compilers and Python mark errors, not what the errors mean.

/// Marks of a compiler, linker, Python or driver error. The order does not matter: the first line wins.
const MARKS: [&str; 9] = [
    " error:",
    ": error ",
    "error #",
    "fatal   :",
    "fatal error",
    "undefined reference to",
    "Error: ",
    "cannot find -l",
    "Killed",
];

/// Lines that only report that something else went wrong.
const ECHOES: [&str; 4] = ["CalledProcessError", "Error compiling objects", "subprocess", "command failed"];

/// Index of the first line that names an error.
pub fn first<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<usize> {
    let mut lines = lines.into_iter();
    lines.position(|line| {
        let marked = MARKS.iter().any(|mark| line.contains(mark))
            || line.starts_with("error:")
            || line.starts_with("collect2: error");
        marked && !ECHOES.iter().any(|echo| line.contains(echo))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_line_wins_over_the_traceback() {
        let log = "ninja: entering\na.cu(3): warning #177-D: unused\na.cu(9): error: identifier \"x\" is undefined\n\
                   subprocess.CalledProcessError: Command '['ninja', '-v']' returned 1\n\
                   RuntimeError: Error compiling objects for extension";
        assert_eq!(first(log.lines()), Some(2));
        assert_eq!(first("all fine\n0 errors".lines()), None);
        assert_eq!(first("nvcc fatal   : Unsupported gpu architecture 'compute_86'".lines()), Some(0));
        assert_eq!(first("ModuleNotFoundError: No module named 'x'".lines()), Some(0));
    }
}
