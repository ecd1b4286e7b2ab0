//! Compilers that run ahead of a Python which starts one after another, as setup.py does without ninja.
//!
//! Python and gcc are real; nvcc is a script that takes its time.

use std::io::Write as _;
use std::process::Output;
use std::time::{Duration, Instant};

use crate::launcher::Rig;

/// Takes half a second, and fails where the source says so.
const NVCC: &str = r#"for word; do [ "$last" = -o ] && out=$word; [ "$last" = -c ] && in=$word; last=$word; done
sleep 0.5
if grep -q wrong "$in"; then echo "$in(1): error: it is wrong" >&2; exit 2; fi
echo compiled > "$out""#;

/// A Python that runs each line of `steps` as a command, after the other, and stops at the first that fails
/// and has no `!` before it.
fn python(rig: &Rig, steps: &str) -> (Output, Duration) {
    let script = r"
import shlex, subprocess, sys, time
start = time.time()
for line in sys.argv[1].splitlines():
    code = subprocess.call(shlex.split(line.lstrip('!')))
    print(f'{time.time() - start:.1f} {code}: {line}', flush=True)
    if code and not line.startswith('!'):
        sys.exit(code)
";
    let object = rig.work().join("build/temp.linux-x86_64-cpython-312");
    fs_err::create_dir_all(object).unwrap();
    let starter = rig.command("bin/cuwright-start", &["/usr/bin/python3", "-c", script, steps]);
    let (mut starter, start) = (starter, Instant::now());
    (starter.output().unwrap(), start.elapsed())
}

fn sources(rig: &Rig, names: &[&str]) -> String {
    let compile = |name: &&str| {
        let text: &[u8] = if name.starts_with("bad") { b"wrong" } else { b"right" };
        let mut file = std::fs::File::create(rig.work().join(name)).unwrap();
        file.write_all(text).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        format!("nvcc -c {name} -o build/temp.linux-x86_64-cpython-312/{name}.o\n")
    };
    names.iter().map(compile).collect()
}

#[test]
fn a_python_goes_on_at_once_and_a_link_waits_for_all_of_it() {
    let rig = Rig::ahead(4, NVCC);
    let objects = "build/temp.linux-x86_64-cpython-312";
    let archive = format!("ar rcs lib.a {objects}/a.cu.o {objects}/b.cu.o {objects}/c.cu.o {objects}/d.cu.o");
    let steps = sources(&rig, &["a.cu", "b.cu", "c.cu", "d.cu"]) + &archive;
    let (said, took) = python(&rig, &steps);
    assert!(said.status.success(), "{said:?}");
    assert!(took < Duration::from_millis(1900), "four of half a second each took {took:?}");
    let members = std::process::Command::new("/usr/bin/ar").args(["t", rig.work().join("lib.a").as_str()]).output();
    assert_eq!(String::from_utf8_lossy(&members.unwrap().stdout).lines().count(), 4);
    let timeline = rig.finish().timeline;
    let compiled = timeline.calls.iter().filter(|call| call.device && call.status == 0);
    assert_eq!(compiled.count(), 4, "all are in the timeline");
}

#[test]
fn the_limit_holds_for_what_runs_ahead() {
    let rig = Rig::ahead(1, NVCC);
    let steps = sources(&rig, &["a.cu", "b.cu", "c.cu"]) + "ar rcs lib.a build/temp.linux-x86_64-cpython-312/a.cu.o";
    let (said, took) = python(&rig, &steps);
    assert!(said.status.success(), "{said:?}");
    assert!(took >= Duration::from_millis(1500), "three on one core took {took:?}");
}

#[test]
fn a_failure_is_told_by_the_link_or_by_the_call_before_it() {
    for later in ["ar rcs lib.a build/temp.linux-x86_64-cpython-312/bad.cu.o", "sleep 1.5\nnvcc -c a.cu -o a.o"] {
        let rig = Rig::ahead(4, NVCC);
        let (said, _) = python(&rig, &(sources(&rig, &["a.cu", "bad.cu"]) + later));
        let errors = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(1), "{said:?}");
        assert!(errors.contains("bad.cu(1): error: it is wrong"), "the compiler's own words: {errors}");
        assert!(errors.contains("because bad.cu failed to compile"), "{errors}");
        assert!(!rig.work().join("lib.a").exists() && !rig.work().join("a.o").exists());
    }
}

#[test]
fn a_build_that_lives_with_the_failure_of_an_extension_makes_the_others() {
    let rig = Rig::ahead(4, NVCC);
    let object = |name: &str| format!("build/temp.linux-x86_64-cpython-312/{name}.o");
    let lived_with = format!("!ar rcs bad.a {} {}\n", object("bad.cu"), object("a.cu"));
    let steps = sources(&rig, &["bad.cu", "a.cu"]) + &lived_with + &sources(&rig, &["b.cu"]);
    let (said, _) = python(&rig, &format!("{steps}ar rcs good.a {}", object("b.cu")));
    assert!(said.status.success(), "{said:?}");
    assert!(String::from_utf8_lossy(&said.stderr).contains("because bad.cu failed to compile"), "{said:?}");
    assert!(!rig.work().join("bad.a").exists() && rig.work().join("good.a").exists());
}

#[test]
fn one_that_is_killed_fails_the_link_and_leaves_nothing() {
    let rig = Rig::ahead(4, &NVCC.replace("sleep 0.5", "sleep 30.5173"));
    // The brackets keep the Python, whose own arguments hold this line, out of it.
    let kill = "sleep 0.5\npkill -9 -f cuwright-apar[t].*killed.cu";
    let link = "ar rcs lib.a build/temp.linux-x86_64-cpython-312/killed.cu.o";
    let (said, took) = python(&rig, &format!("{}{kill}\n{link}", sources(&rig, &["killed.cu"])));
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert!(String::from_utf8_lossy(&said.stderr).contains("because killed.cu failed"), "{said:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    drop(rig.finish());
    let left = || std::process::Command::new("pgrep").args(["-f", "sleep 30.517[3]"]).output().unwrap().stdout;
    let patience = Instant::now();
    while !left().is_empty() {
        assert!(patience.elapsed() < Duration::from_secs(5), "its compiler was left behind");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_test_of_a_flag_is_answered_when_it_is_done() {
    let elsewhere = tempfile::tempdir().unwrap();
    for own in [false, true] {
        let rig = Rig::ahead(4, NVCC);
        let object = "build/temp.linux-x86_64-cpython-312";
        let folder = if own { rig.work().join(object) } else { elsewhere.path().to_path_buf().try_into().unwrap() };
        fs_err::create_dir_all(&folder).unwrap();
        // The times of files may lag behind the clock a little.
        std::thread::sleep(Duration::from_millis(50));
        let source = folder.join("flag.cu");
        fs_err::write(&source, "wrong").unwrap();
        let (said, took) = python(&rig, &format!("nvcc -c {source} -o {object}/flag.o"));
        assert_eq!(said.status.code(), Some(2), "{said:?}");
        assert!(took >= Duration::from_millis(500));
    }
}
