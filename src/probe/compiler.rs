//! Finds the host C and C++ compilers and asks them for family and version.
//!
//! Order: `CXX`, else the partner of `CC`, else `g++`, `c++`, `clang++` on `PATH`. Whether nvcc accepts the compiler is
//! not decided here; preflight compares it with the toolkit's bounds.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::facts::{self, Facts};
use crate::domain::{
    command::CommandSpec,
    exit::Exit,
    problem::Problem,
    toolchain::{HostCompiler, HostFamily},
};
use crate::sys::{Env, env_vars as vars, process};

const PATIENCE: Duration = Duration::from_secs(30);
/// Programs that stand in front of a compiler; the compiler behind them is what counts.
const LAUNCHERS: [&str; 5] = ["ccache", "sccache", "distcc", "icecc", "buildcache"];
/// C++ names and the C names that go with them.
const PARTNERS: [(&str, &str); 3] = [("clang++", "clang"), ("g++", "gcc"), ("c++", "cc")];

/// The host compiler that builds in this environment use.
pub fn find(env: &Env, facts: &Facts) -> Result<HostCompiler, Problem> {
    if let Some(value) = env.get(vars::CXX) {
        let cxx = named(value, env).ok_or_else(|| missing_named(vars::CXX, value))?;
        let cc = env.get(vars::CC).map(|value| named(value, env).ok_or_else(|| missing_named(vars::CC, value)));
        return describe(&cxx, cc.transpose()?, vars::CXX, env, facts);
    }
    if let Some(value) = env.get(vars::CC) {
        let cc = named(value, env).ok_or_else(|| missing_named(vars::CC, value))?;
        let cxx = partner(&cc, |(cxx, cc)| (cc, cxx), env).ok_or_else(|| no_partner(&cc))?;
        return describe(&cxx, Some(cc), vars::CC, env, facts);
    }
    let names = ["g++", "c++", "clang++"];
    let found = names.iter().find_map(|name| env.find_program(name).map(|path| (path, *name)));
    let (cxx, name) = found.ok_or_else(missing)?;
    describe(&cxx, None, &format!("`{name}` on PATH"), env, facts)
}

fn describe(
    cxx: &Utf8Path,
    cc: Option<Utf8PathBuf>,
    origin: &str,
    env: &Env,
    facts: &Facts,
) -> Result<HostCompiler, Problem> {
    let about = |program: &Utf8Path| {
        // A cache's link named g++ answers for the next g++ on PATH, so that one's stamp counts too.
        let name = program.file_name().unwrap_or_default();
        let context: Vec<String> = env.find_programs(name).iter().filter_map(|path| facts::stamp(path)).collect();
        facts.remember("compiler", program, &context, || ask(program, env))
    };
    let (family, version) = about(cxx)?;
    // nvcc gets the C compiler as its host compiler, so a broken one would fail the build late.
    cc.as_deref().map(about).transpose()?;
    let cc = cc.or_else(|| partner(cxx, |pair| pair, env)).unwrap_or_else(|| cxx.to_owned());
    Ok(HostCompiler { cc, cxx: cxx.to_owned(), family, version, origin: origin.to_owned() })
}

fn ask(cxx: &Utf8Path, env: &Env) -> Result<(HostFamily, String), Problem> {
    let spec =
        CommandSpec::new(cxx.as_str(), "/").args(["-dM", "-E", "-x", "c++", "/dev/null"]).env(env.variables().clone());
    let said = process::capture(&spec, PATIENCE).map_err(|error| broken(cxx, &error.to_string()))?;
    if !said.status.success() {
        let words = said.tail(3);
        let silent = || format!("it ended with {} and said nothing", said.status);
        return Err(broken(cxx, &if words.is_empty() { silent() } else { words }));
    }
    family(&said.stdout).ok_or_else(|| broken(cxx, "it is neither gcc nor clang"))
}

/// Family and version from predefined macros, such as `#define __GNUC__ 12`. clang defines gcc's as well.
fn family(macros: &str) -> Option<(HostFamily, String)> {
    let value = |name: &str| {
        macros.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' '))
    };
    let version = |names: [&str; 3]| {
        let numbers: Option<Vec<&str>> = names.into_iter().map(value).collect();
        numbers.map(|numbers| numbers.join("."))
    };
    let clang = version(["__clang_major__", "__clang_minor__", "__clang_patchlevel__"]);
    let gcc = || version(["__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__"]).map(|found| (HostFamily::Gcc, found));
    clang.map(|found| (HostFamily::Clang, found)).or_else(gcc)
}

/// The compiler in a variable's value, which may name a launcher first and flags after it.
fn named(value: &str, env: &Env) -> Option<Utf8PathBuf> {
    let words = shlex::split(value)?;
    let plain = |word: &&String| !Utf8Path::new(word).file_name().is_some_and(|name| LAUNCHERS.contains(&name));
    env.find_program(words.iter().find(plain)?)
}

/// The other half of a compiler pair: `/usr/bin/g++-12` has `/usr/bin/gcc-12`.
fn partner(
    known: &Utf8Path,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
    env: &Env,
) -> Option<Utf8PathBuf> {
    let name = known.file_name()?;
    PARTNERS.iter().map(|pair| direction(*pair)).find_map(|(from, to)| {
        let (before, after) = name.rsplit_once(from)?;
        let sought = format!("{before}{to}{after}");
        let beside = known.with_file_name(&sought);
        if beside.exists() { Some(beside) } else { env.find_program(&sought) }
    })
}

fn missing() -> Problem {
    Problem::new("cuwright::probe::compiler_missing", Exit::Toolchain, "no C++ compiler was found")
        .why("looked for `g++`, `c++` and `clang++` on PATH; CXX and CC are not set")
        .help("Debian, Ubuntu: apt-get install build-essential")
        .help("Fedora, RHEL: dnf install gcc-c++ make")
}

fn missing_named(variable: &str, value: &str) -> Problem {
    let message = format!("the compiler that {variable} names was not found");
    Problem::new("cuwright::probe::compiler_missing", Exit::Toolchain, message)
        .why(format!("{variable}={value}"))
        .help(format!("correct {variable}, or unset it to use the compiler on PATH"))
}

fn no_partner(cc: &Utf8Path) -> Problem {
    Problem::new("cuwright::probe::compiler_missing", Exit::Toolchain, format!("{cc} has no C++ compiler beside it"))
        .why("CC is set and CXX is not")
        .help("set CXX to the C++ compiler of the same version")
}

fn broken(cxx: &Utf8Path, reason: &str) -> Problem {
    let problem = Problem::new("cuwright::probe::compiler_broken", Exit::Toolchain, format!("{cxx} cannot be used"));
    reason
        .lines()
        .fold(problem, |problem, line| problem.why(line.trim()))
        .help("set CC and CXX to a working gcc or clang")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_tell_clang_from_gcc() {
        let gcc = "#define __GNUC__ 12\n#define __GNUC_MINOR__ 2\n#define __GNUC_PATCHLEVEL__ 0\n";
        assert_eq!(family(gcc), Some((HostFamily::Gcc, "12.2.0".into())));
        let clang =
            format!("{gcc}#define __clang_major__ 18\n#define __clang_minor__ 1\n#define __clang_patchlevel__ 3\n");
        assert_eq!(family(&clang), Some((HostFamily::Clang, "18.1.3".into())));
        assert_eq!(family(""), None);
    }

    #[test]
    fn the_real_compiler_is_found_and_its_absence_explained() {
        let env = Env::of("/", [("PATH", "/usr/bin:/bin")]);
        let found = find(&env, &Facts::new(None)).unwrap();
        assert!(found.major() > 3 && found.cc.exists() && found.cc != found.cxx, "{found:?}");
        let launched = find(&env.clone().with(vars::CXX, "ccache g++ -m64"), &Facts::new(None)).unwrap();
        assert_eq!((launched.origin.as_str(), launched.cxx.file_name()), ("CXX", Some("g++")));
        let by_c = find(&env.clone().with(vars::CC, "gcc"), &Facts::new(None)).unwrap();
        assert_eq!(by_c.cxx.file_name(), Some("g++"));
        let code = |env: &Env| find(env, &Facts::new(None)).map_err(|problem| problem.code());
        assert_eq!(code(&Env::of("/", [("PATH", "/none")])), Err("cuwright::probe::compiler_missing"));
        assert_eq!(code(&env.clone().with(vars::CXX, "g++-99")), Err("cuwright::probe::compiler_missing"));
        assert_eq!(code(&env.clone().with(vars::CXX, "/bin/false")), Err("cuwright::probe::compiler_broken"));
        let with_cc = |cc: &str| code(&env.clone().with(vars::CXX, "g++").with(vars::CC, cc));
        assert_eq!(with_cc("/bin/false"), Err("cuwright::probe::compiler_broken"));
        assert_eq!(with_cc("gcc-99"), Err("cuwright::probe::compiler_missing"));
    }
}
