//! The compiler stand-in as a program: with real compilers, without and with a coordinator.
//!
//! The coordinator of these tests is the library's, in this process; the stand-ins are the real binary.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cuwright::launcher::{Coordinator, Costs, Finished, Limits, Placement, Tools, Unit, UnitSpec};
use cuwright::sys::Env;

use crate::support::Sandbox;
use crate::support::real::{Signal, send};

/// A launcher for the system's gcc, whose `nvcc` is a shell script.
pub struct Rig {
    sandbox: Sandbox,
    placement: Placement,
    coordinator: Option<Coordinator>,
    unit: Option<Unit>,
}

impl Rig {
    /// `nvcc` is the text of a shell script that stands for the toolkit's.
    pub fn new(cores: u32, nvcc: &str) -> Self {
        Self::of(cores, nvcc, false)
    }

    /// One whose compilers may run ahead of who starts them.
    pub fn ahead(cores: u32, nvcc: &str) -> Self {
        Self::of(cores, nvcc, true)
    }

    fn of(cores: u32, nvcc: &str, ahead: bool) -> Self {
        let sandbox = Sandbox::new();
        let home = sandbox.root().join("cuda");
        fs_err::create_dir_all(home.join("bin")).unwrap();
        script(&home.join("bin/nvcc"), nvcc);
        let folder = sandbox.root().join("b u i l d/launch");
        let path = "/usr/local/bin:/usr/bin:/bin";
        let nvcc = home.join("bin/nvcc");
        let tools = Tools { nvcc: &nvcc, cc: "/usr/bin/gcc".into(), cxx: "/usr/bin/g++".into() };
        let placement = Placement::make(&folder, env!("CARGO_BIN_EXE_cuwright").into(), tools, path).unwrap();
        placement.archivers(env!("CARGO_BIN_EXE_cuwright").into(), path).unwrap();
        let coordinator = Coordinator::start(Limits { cores, memory: None }, &Env::default()).unwrap();
        let source = sandbox.work().canonicalize_utf8().unwrap();
        let costs = Costs::load(&sandbox.root().join("cache"), "rig", "13.0.88");
        let unit = coordinator
            .unit(UnitSpec { root: folder, source, costs, memory: 1 << 20, heavy: Vec::new(), ahead })
            .unwrap();
        Self { sandbox, placement, coordinator: Some(coordinator), unit: Some(unit) }
    }

    pub fn stand_in(&self, name: &str) -> Utf8PathBuf {
        self.placement.root().join(name)
    }

    pub fn work(&self) -> Utf8PathBuf {
        self.sandbox.work()
    }

    pub fn command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(self.stand_in(name));
        command.args(args).current_dir(self.sandbox.work()).env_clear().env("LC_ALL", "C");
        command.envs(self.placement.variables().into_iter().chain(self.placement.compilers()));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, name: &str, args: &[&str]) -> Output {
        self.command(name, args).output().unwrap()
    }

    pub fn finish(mut self) -> Finished {
        self.unit.take().unwrap().finish()
    }
}

fn script(path: &Utf8Path, text: &str) {
    fs_err::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs_err::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn without_a_coordinator_a_stand_in_is_the_compiler() {
    let rig = Rig::new(1, "echo $0 \"$@\"; exit 3");
    let alone = |name: &str, args: &[&str]| {
        Command::new(rig.stand_in(name)).args(args).current_dir(rig.sandbox.work()).output().unwrap()
    };
    let real = Command::new("/usr/bin/gcc").args(["-v"]).output().unwrap();
    let said = alone("cc/gcc", &["-v"]);
    assert_eq!((text(&said.stderr), said.status), (text(&real.stderr), real.status));
    let said = alone("bin/nvcc", &["-c", "a b.cu", "", "--x='y'"]);
    let nvcc = rig.sandbox.root().join("cuda/bin/nvcc");
    assert_eq!((text(&said.stdout), said.status.code()), (format!("{nvcc} -c a b.cu  --x='y'\n"), Some(3)));
    let said = alone("bin/cuwright-launch", &["/bin/echo", "-c", "x.c"]);
    assert_eq!(text(&said.stdout), "-c x.c\n");
    assert_eq!(rig.finish().timeline.calls.len(), 0);
}

#[test]
fn streams_codes_signals_and_files_are_the_compilers_own() {
    let rig = Rig::new(2, "echo out; echo err >&2; for last; do :; done; kill -$last $$; exit $last");
    rig.sandbox.file("a.c", "int f(int x) { return x; }\n").file("bad.c", "int f( {\n").file("args", "-c a.c -MD");
    let said = rig.run("cc/gcc", &["@args", "-o", "a.o", "-MF", "a.d"]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    assert!(fs_err::read_to_string(rig.sandbox.work().join("a.d")).unwrap().contains("a.c"));
    let (ours, real) = (
        rig.run("cc/gcc", &["-c", "bad.c"]),
        Command::new("gcc").args(["-c", "bad.c"]).env("LC_ALL", "C").current_dir(rig.sandbox.work()).output().unwrap(),
    );
    assert_eq!((text(&ours.stderr), ours.status.code()), (text(&real.stderr), real.status.code()));
    let said = rig.run("bin/nvcc", &["-c", "a.cu", "0"]);
    assert_eq!((text(&said.stdout), text(&said.stderr), said.status.code()), ("out\n".into(), "err\n".into(), Some(0)));
    assert_eq!(rig.run("bin/nvcc", &["-c", "a.cu", "15"]).status.signal(), Some(15));
    assert_eq!(rig.run("bin/nvcc", &["-c", "a.cu", "99"]).status.code(), Some(99));
    let calls = rig.finish().timeline.calls;
    let told: Vec<_> = calls.iter().map(|call| (call.source.as_str(), call.status)).collect();
    assert_eq!(told, [("a.c", 0), ("bad.c", 1), ("a.cu", 0), ("a.cu", -15), ("a.cu", 99)]);
}

#[test]
fn a_nested_compiler_rides_on_its_parents_room() {
    // Only one core: a second question would wait for ever.
    let rig = Rig::new(1, "exec \"$CC\" -c x.c -o x.o");
    rig.sandbox.file("x.c", "int x;\n");
    let said = rig.run("bin/nvcc", &["-c", "x.cu", "-gencode=arch=compute_90,code=sm_90"]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let calls = rig.finish().timeline.calls;
    assert_eq!(
        calls.iter().map(|call| (call.source.as_str(), call.archs.as_str())).collect::<Vec<_>>(),
        [("x.cu", "9.0")]
    );
}

#[test]
fn no_more_run_at_once_than_there_is_room_for() {
    let rig = Rig::new(2, "sleep 0.3");
    let children: Vec<_> =
        (0..6).map(|n| rig.command("bin/nvcc", &["-c", &format!("{n}.cu")]).spawn().unwrap()).collect();
    assert!(children.into_iter().all(|child| child.wait_with_output().unwrap().status.success()));
    let calls = rig.finish().timeline.calls;
    let at_once = |time: u64| calls.iter().filter(|call| call.began <= time && time < call.ended).count();
    let most = calls.iter().map(|call| at_once(call.began)).max();
    assert_eq!((calls.len(), most), (6, Some(2)), "{calls:#?}");
}

#[test]
fn a_killed_compiler_runs_again_alone_and_a_second_death_is_final() {
    let rig = Rig::new(
        4,
        "echo \"nvcc error   : 'cicc' died due to signal 9 (Kill signal)\" >&2; [ -e again ] && echo fine >&2 && exit 0; touch again; exit 9",
    );
    let mut other = rig.command("cc/gcc", &["-c", "-x", "c", "slow.c"]);
    rig.sandbox.file("slow.c", "int x;\n");
    let other = other.spawn().unwrap();
    let said = rig.run("bin/nvcc", &["-c", "a.cu", "--threads", "2"]);
    assert!(other.wait_with_output().unwrap().status.success());
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    assert_eq!(text(&said.stderr).matches("died due to").count(), 1, "what the first attempt said is void");
    let calls = rig.finish().timeline.calls;
    assert_eq!(calls.iter().filter(|call| call.attempts == 2 && !call.starved).count(), 1);

    let rig = Rig::new(4, "kill -9 $$");
    let said = rig.run("bin/nvcc", &["-c", "a.cu"]);
    assert_eq!(said.status.signal(), Some(9));
    let calls = rig.finish().timeline.calls;
    assert_eq!((calls[0].attempts, calls[0].starved), (2, true));
}

#[test]
fn a_stand_in_that_dies_gives_its_room_back_and_takes_its_compiler_along() {
    let rig = Rig::new(1, "echo $$ > pid; exec sleep 60");
    let mut first = rig.command("bin/nvcc", &["-c", "a.cu"]).spawn().unwrap();
    let pid = rig.sandbox.work().join("pid");
    wait(|| pid.metadata().is_ok_and(|meta| meta.len() > 1));
    std::thread::sleep(Duration::from_millis(100));
    first.kill().unwrap();
    first.wait().unwrap();
    rig.sandbox.file("b.c", "int b;\n");
    assert!(rig.run("cc/gcc", &["-c", "b.c"]).status.success());
    let pid = fs_err::read_to_string(pid).unwrap();
    wait(|| !Utf8Path::new("/proc").join(pid.trim()).exists());
}

#[test]
fn compilers_end_with_their_build() {
    let mut rig = Rig::new(1, "exec sleep 60");
    let running = rig.command("bin/nvcc", &["-c", "a.cu"]).spawn().unwrap();
    wait(|| !rig.unit.as_ref().unwrap().status().working.is_empty());
    let waiting = rig.command("bin/nvcc", &["-c", "b.cu"]).spawn().unwrap();
    wait(|| rig.unit.as_ref().unwrap().status().waiting == 1);
    drop(rig.unit.take());
    rig.coordinator.take();
    for child in [running, waiting] {
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(127));
    }
    // The socket is there and nobody listens: this build was killed.
    assert_eq!(rig.run("bin/nvcc", &["-c", "c.cu"]).status.code(), Some(127));
    assert!(rig.run("cc/gcc", &["--version"]).status.success());
}

#[test]
fn signals_reach_the_compiler() {
    let rig = Rig::new(1, "trap 'echo caught; exit 5' TERM; echo ready > ready; while :; do sleep 0.05; done");
    let child = rig.command("bin/nvcc", &["-c", "a.cu"]).spawn().unwrap();
    wait(|| rig.sandbox.work().join("ready").exists());
    send(child.id(), Signal::TERM).unwrap();
    let said = child.wait_with_output().unwrap();
    assert_eq!((said.status.code(), text(&said.stdout)), (Some(5), "caught\n".to_owned()));
}

#[test]
fn tokens_in_other_hands_count_until_their_holder_is_gone() {
    let rig = Rig::new(3, "sleep 0.3");
    let flags = rig.unit.as_ref().unwrap().make_flags(&rig.placement).unwrap();
    let pipe = flags.rsplit_once("fifo:").unwrap().1;
    let script = format!("exec 3<>'{pipe}'; dd bs=1 count=2 <&3 2>/dev/null; exec sleep 60");
    let mut holder = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut tokens = [0; 2];
    std::io::Read::read_exact(&mut holder.stdout.take().unwrap(), &mut tokens).unwrap();
    let start = |n: u32| rig.command("bin/nvcc", &["-c", &format!("{n}.cu")]).spawn().unwrap();
    let two = [start(1), start(2)].map(|child| child.wait_with_output().unwrap());
    assert!(two.iter().all(|said| said.status.success()));
    holder.kill().unwrap();
    holder.wait().unwrap();
    // Nobody gives them back; after some seconds in which calls come and go they are made anew.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(7) {
        assert!(start(3).wait_with_output().unwrap().status.success());
    }
    // On a busy machine two may miss each other, but not again and again.
    for _ in 0..12 {
        let three = [start(4), start(5), start(6)].map(|child| child.wait_with_output().unwrap());
        assert!(three.iter().all(|said| said.status.success()));
    }
    let calls = rig.finish().timeline.calls;
    let together = |names: [&str; 2]| {
        let [a, b] = names.map(|name| calls.iter().filter(|call| call.source == name).collect::<Vec<_>>());
        a.iter().any(|a| b.iter().any(|b| a.began < b.ended && b.began < a.ended))
    };
    assert!(!together(["1.cu", "2.cu"]) && together(["4.cu", "5.cu"]), "{calls:#?}");
}

fn wait(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "waited too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}
