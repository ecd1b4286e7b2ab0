//! Finds the host C and C++ compilers and asks them for family and version.
//!
//! The one to use is `--cc`, else `CXX`, else the partner of `CC`, else `g++`, `c++`, `clang++` on `PATH`; every other
//! one is listed as well. Whether nvcc accepts a compiler is not decided here.

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
/// Origin of a compiler that the command line names.
const FLAG: &str = "--cc";

/// A compiler, and whether the user named it rather than left it to `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The compiler.
    pub host: HostCompiler,
    /// Whether the user named it.
    pub named: bool,
}

/// The host compiler that builds in this environment use. `wanted` is the value of `--cc`.
pub fn find(wanted: Option<&str>, env: &Env, facts: &Facts) -> Result<Found, Problem> {
    let by_name = |name: &str, value: &str| Named::read(value, env).ok_or_else(|| missing_named(name, value));
    let named = |cxx: &Utf8Path, cc: Option<Utf8PathBuf>, flags: Vec<String>, origin: &str| {
        let host = describe(cxx, cc, origin, env, facts)?;
        Ok(Found { host: HostCompiler { flags, ..host }, named: true })
    };
    if let Some(value) = wanted {
        let Named { program, flags } = by_name(FLAG, value)?;
        if program.file_name().is_some_and(|name| name.contains("++")) {
            return named(&program, None, flags, FLAG);
        }
        let cxx = partner(&program, |(cxx, cc)| (cc, cxx), env).ok_or_else(|| no_partner(&program, FLAG))?;
        return named(&cxx, Some(program), flags, FLAG);
    }
    if let Some(value) = env.get(vars::CXX) {
        let cxx = by_name(vars::CXX, value)?;
        let cc = env.get(vars::CC).map(|value| by_name(vars::CC, value)).transpose()?;
        return named(&cxx.program, cc.map(|cc| cc.program), cxx.flags, vars::CXX);
    }
    if let Some(value) = env.get(vars::CC) {
        let Named { program, flags } = by_name(vars::CC, value)?;
        let cxx = partner(&program, |(cxx, cc)| (cc, cxx), env).ok_or_else(|| no_partner(&program, "CC"))?;
        return named(&cxx, Some(program), flags, vars::CC);
    }
    let usual = ["g++", "c++", "clang++"];
    let found = usual.iter().find_map(|name| env.find_program(name).map(|path| (path, *name)));
    let (cxx, name) = found.ok_or_else(missing)?;
    Ok(Found { host: describe(&cxx, None, &format!("`{name}` on PATH"), env, facts)?, named: false })
}

/// Every gcc and clang of this machine that has a C++ half and answers, the newest first; `/opt/rh` is where Red Hat
/// puts newer ones.
pub fn all(env: &Env, facts: &Facts) -> Vec<HostCompiler> {
    let path = env.get(vars::PATH).unwrap_or_default().split(':').filter(|folder| folder.starts_with('/'));
    let on_path = path.map(|folder| (Utf8PathBuf::from(folder), "PATH"));
    let entries = env.system("/opt/rh").read_dir_utf8().into_iter().flatten().flatten();
    let toolsets = entries.map(|entry| (entry.path().join("root/usr/bin"), "toolset of the distribution"));
    let mut found: Vec<HostCompiler> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (folder, origin) in on_path.chain(toolsets) {
        let entries = folder.read_dir_utf8().into_iter().flatten().flatten();
        let mut programs: Vec<Utf8PathBuf> = entries.map(|entry| entry.path().to_owned()).collect();
        programs.retain(|program| program.file_name().is_some_and(is_cxx));
        programs.sort();
        for program in programs {
            // `g++` is a link to `g++-12`: one compiler, called by its plain name.
            let new = program.canonicalize_utf8().is_ok_and(|real| seen.insert(real));
            let described = new.then(|| describe(&program, None, origin, env, facts).ok()).flatten();
            found.extend(described.filter(|host| host.cc != host.cxx));
        }
    }
    let number =
        |host: &HostCompiler| host.version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>();
    found.sort_by_key(|host| (host.family == HostFamily::Clang, std::cmp::Reverse(number(host))));
    found
}

/// `g++`, `g++-13`, `clang++`, `clang++-18`.
fn is_cxx(name: &str) -> bool {
    let rest = name.strip_prefix("clang++").or_else(|| name.strip_prefix("g++"));
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.strip_prefix('-').is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// A compiler in a variable's value, which may name a launcher first and flags after it.
struct Named {
    program: Utf8PathBuf,
    flags: Vec<String>,
}

impl Named {
    fn read(value: &str, env: &Env) -> Option<Self> {
        let words = shlex::split(value)?;
        let plain = |word: &String| !Utf8Path::new(word).file_name().is_some_and(|name| LAUNCHERS.contains(&name));
        let mut words = words.into_iter().skip_while(|word| !plain(word));
        Some(Self { program: env.find_program(&words.next()?)?, flags: words.collect() })
    }
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
    let flags = Vec::new();
    Ok(HostCompiler { cc, cxx: cxx.to_owned(), family, version, flags, origin: origin.to_owned() })
}

fn ask(cxx: &Utf8Path, env: &Env) -> Result<(HostFamily, String), Problem> {
    let spec =
        CommandSpec::new(cxx.as_str(), "/").args(["-dM", "-E", "-x", "c++", "/dev/null"]).env(env.tool_variables());
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
    let problem = Problem::new("cuwright::probe::compiler_missing", Exit::Toolchain, message);
    if variable == FLAG {
        return problem
            .why(format!("{variable} {value}"))
            .help("name a compiler on PATH or a path, such as `gcc-13`; `cuwright doctor` lists those that are here");
    }
    problem
        .why(format!("{variable}={value}"))
        .help(format!("correct {variable}, or unset it to use the compiler on PATH"))
}

fn no_partner(cc: &Utf8Path, origin: &str) -> Problem {
    let problem = Problem::new(
        "cuwright::probe::compiler_missing",
        Exit::Toolchain,
        format!("{cc} has no C++ compiler beside it"),
    );
    if origin == FLAG {
        return problem.why("named by --cc").help("install the C++ compiler of the same version");
    }
    problem.why("CC is set and CXX is not").help("set CXX to the C++ compiler of the same version")
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
        let found = find(None, &env, &Facts::new(None)).unwrap();
        let host = found.host;
        assert!(host.major() > 3 && host.cc.exists() && host.cc != host.cxx && !found.named, "{host:?}");
        let launched = find(None, &env.clone().with(vars::CXX, "ccache g++ -m64"), &Facts::new(None)).unwrap().host;
        assert_eq!((launched.origin.as_str(), launched.cxx.file_name()), ("CXX", Some("g++")));
        assert_eq!(launched.flags, ["-m64"]);
        let by_c = find(None, &env.clone().with(vars::CC, "gcc"), &Facts::new(None)).unwrap().host;
        assert_eq!(by_c.cxx.file_name(), Some("g++"));
        let asked = |value: &str| find(Some(value), &env, &Facts::new(None)).map(|found| found.host.cxx);
        assert_eq!(asked("gcc").unwrap(), asked("/usr/bin/g++").unwrap());
        assert_eq!(asked("gcc-99").unwrap_err().code(), "cuwright::probe::compiler_missing");
        let listed = all(&env, &Facts::new(None));
        assert!(listed.iter().any(|one| one.version == host.version), "{listed:?}");
        let code = |env: &Env| find(None, env, &Facts::new(None)).map_err(|problem| problem.code());
        assert_eq!(code(&Env::of("/", [("PATH", "/none")])), Err("cuwright::probe::compiler_missing"));
        assert_eq!(code(&env.clone().with(vars::CXX, "g++-99")), Err("cuwright::probe::compiler_missing"));
        assert_eq!(code(&env.clone().with(vars::CXX, "/bin/false")), Err("cuwright::probe::compiler_broken"));
        let with_cc = |cc: &str| code(&env.clone().with(vars::CXX, "g++").with(vars::CC, cc));
        assert_eq!(with_cc("/bin/false"), Err("cuwright::probe::compiler_broken"));
        assert_eq!(with_cc("gcc-99"), Err("cuwright::probe::compiler_missing"));
    }
}
