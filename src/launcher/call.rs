//! What a compiler call does, read from its arguments: whether it compiles, what, and how wide.
//!
//! Pure, and only to learn: the arguments reach the compiler as they came. A call that is not understood passes without
//! a slot, so an error here costs order, never correctness.

/// What a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Compiles nothing: a question, a preprocessor run.
    Pass,
    /// Compiles a source.
    Compile,
    /// Links objects.
    Link,
}

/// A compiler call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    /// What it does.
    pub(super) kind: Kind,
    /// The source, or the output of a link, as written.
    pub(super) subject: String,
    /// What it writes, as written.
    pub(super) output: Option<String>,
    /// Threads it may use.
    pub(super) threads: u32,
    /// The arguments with response files opened.
    pub(super) words: Vec<String>,
}

/// Options of gcc, clang and nvcc that take the next argument, whatever it looks like.
const TAKES_VALUE: [&str; 58] = [
    "-o",
    "-x",
    "-I",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-include",
    "-imacros",
    "-isysroot",
    "--sysroot",
    "-D",
    "-U",
    "-L",
    "-l",
    "-MF",
    "-MT",
    "-MQ",
    "-T",
    "-u",
    "-z",
    "-B",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xclang",
    "--param",
    "-target",
    "-arch",
    "-code",
    "-gencode",
    "--generate-code",
    "--gpu-architecture",
    "--gpu-code",
    "-ccbin",
    "--compiler-bindir",
    "-Xcompiler",
    "--compiler-options",
    "-Xptxas",
    "--ptxas-options",
    "-Xcudafe",
    "-Xnvlink",
    "-Xarchive",
    "-Xfatbin",
    "-t",
    "--threads",
    "--split-compile",
    "-split-compile",
    "-std",
    "--output-file",
    "--include-path",
    "--define-macro",
    "--pre-include",
    "--dependency-output",
    "-maxrregcount",
    "--maxrregcount",
    "-odir",
    "--output-directory",
    "-cudart",
];

/// Options by which a call answers a question or stops after the preprocessor.
const QUESTIONS: [&str; 17] = [
    "-E",
    "--preprocess",
    "-M",
    "-MM",
    "--generate-dependencies",
    "--version",
    "-V",
    "-dumpversion",
    "-dumpmachine",
    "-dumpfullversion",
    "-dumpspecs",
    "-###",
    "--dryrun",
    "-dryrun",
    "--help",
    "-h",
    "--target-help",
];
const QUESTION_PREFIXES: [&str; 5] = ["-print-", "--print-", "--list-gpu", "-list-gpu", "--help="];

const SOURCES: [&str; 11] = ["cu", "cpp", "cc", "cxx", "c", "cp", "C", "CPP", "c++", "ptx", "cuf"];
const LINKED: [&str; 6] = ["o", "a", "so", "lo", "obj", "lib"];

/// Reads the arguments of a compiler, without the program. `open` gives the text of a response file.
pub(super) fn read(arguments: &[String], open: impl Fn(&str) -> Option<String>) -> Call {
    let words = opened(arguments, &open);
    let mut call = Call { kind: Kind::Pass, subject: String::new(), output: None, threads: 1, words: Vec::new() };
    let (mut source, mut output, mut links, mut question) = (None, None, false, false);
    let mut rest = words.iter().map(String::as_str);
    while let Some(word) = rest.next() {
        let (name, attached) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let value = if attached.is_none() && TAKES_VALUE.contains(&word) { rest.next() } else { attached };
        match name {
            "-o" | "--output-file" => output = value,
            "-t" | "--threads" | "--split-compile" | "-split-compile" => {
                call.threads = call.threads.max(value.and_then(|n| n.parse().ok()).unwrap_or(1));
            }
            _ if QUESTIONS.contains(&word) || QUESTION_PREFIXES.iter().any(|prefix| word.starts_with(prefix)) => {
                question = true;
            }
            _ if word.starts_with('-') => {}
            _ if ends_with(word, &SOURCES) => source = source.or(Some(word)),
            _ => links |= ends_with(word, &LINKED) || word.contains(".so."),
        }
    }
    (call.kind, call.subject) = match (question, source) {
        (false, Some(source)) => (Kind::Compile, source.to_owned()),
        (false, None) if links => (Kind::Link, output.unwrap_or("a.out").to_owned()),
        _ => (Kind::Pass, String::new()),
    };
    call.output = output.map(str::to_owned);
    call.words = words;
    call
}

fn ends_with(word: &str, endings: &[&str]) -> bool {
    word.rsplit_once('.').is_some_and(|(stem, ending)| !stem.is_empty() && endings.contains(&ending))
}

/// `@file` of gcc and clang, `--options-file` of nvcc; what cannot be opened stays as it is.
fn opened(arguments: &[String], open: &impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut words = Vec::with_capacity(arguments.len());
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let files = match word.as_str() {
            "--options-file" | "-optf" => rest.next().map(String::as_str),
            word => word
                .strip_prefix("--options-file=")
                .or_else(|| word.strip_prefix("-optf="))
                .or_else(|| word.strip_prefix('@')),
        };
        let text: Option<Vec<String>> = files.map(|files| files.split(',').filter_map(open).collect());
        match text {
            Some(texts) if !texts.is_empty() => {
                words.extend(texts.iter().flat_map(|text| shlex::split(text).unwrap_or_default()));
            }
            _ => words.push(word.clone()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> (Kind, String, u32) {
        let words = shlex::split(line).unwrap();
        let file = |name: &str| (name == "args.txt").then(|| "-c 'a b.cu' -t 4".to_owned());
        let call = read(&words, file);
        (call.kind, call.subject, call.threads)
    }

    #[test]
    fn compiling_linking_and_asking_are_told_apart() {
        for (line, kind, subject) in [
            (
                "-MD -MF a.o.d -I x.cpp -c /b/nms.cu -o a.o -gencode arch=compute_90,code=sm_90",
                Kind::Compile,
                "/b/nms.cu",
            ),
            ("-DX=a.cpp -include pre.cpp -c a.cc", Kind::Compile, "a.cc"),
            ("a.cpp -o tool", Kind::Compile, "a.cpp"),
            ("-dlink a.o b.o -o c.o", Kind::Link, "c.o"),
            ("-shared a.o -Wl,-O1 -o /x/_C.so -lc10", Kind::Link, "/x/_C.so"),
            ("-shared libz.so.1 -o y", Kind::Link, "y"),
            ("-E a.cu", Kind::Pass, ""),
            ("--version", Kind::Pass, ""),
            ("-v", Kind::Pass, ""),
            ("-dumpfullversion -dumpversion", Kind::Pass, ""),
            ("-print-file-name=libc.so", Kind::Pass, ""),
            ("--dryrun -c a.cu", Kind::Pass, ""),
            ("-x c++ -", Kind::Pass, ""),
            ("", Kind::Pass, ""),
        ] {
            let (found, name, _) = of(line);
            assert_eq!((found, name.as_str()), (kind, subject), "{line}");
        }
    }

    #[test]
    fn threads_are_read_in_every_form_and_from_response_files() {
        for (line, threads) in
            [("-c a.cu", 1), ("-c a.cu --threads 4", 4), ("-c a.cu -t=2", 2), ("-c a.cu --threads=x", 1)]
        {
            assert_eq!(of(line).2, threads, "{line}");
        }
        assert_eq!(of("--options-file args.txt -o x.o"), (Kind::Compile, "a b.cu".to_owned(), 4));
        assert_eq!(of("@args.txt"), (Kind::Compile, "a b.cu".to_owned(), 4));
        assert_eq!(of("@missing -c a.c").0, Kind::Compile);
    }
}
