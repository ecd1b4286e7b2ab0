//! Real programs, followed: the loader, the compiler, the linker and Python of this machine.

use super::*;
use crate::domain::reads::{Reads, Seen};
use crate::domain::toolchain;

/// A build of one shell script in a folder of its own.
struct Build {
    _temporary: tempfile::TempDir,
    root: Utf8PathBuf,
    path: String,
}

impl Build {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temporary.path()).unwrap().canonicalize_utf8().unwrap();
        for folder in ["first/bin", "second/bin", "first/include", "second/include", "second/lib", "build"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let path = format!("{root}/first/bin:{root}/second/bin:/usr/bin:/bin");
        Self { _temporary: temporary, root, path }
    }

    fn file(&self, name: &str, text: &str) -> &Self {
        use std::os::unix::fs::PermissionsExt as _;
        fs::write(self.root.join(name), text).unwrap();
        fs::set_permissions(self.root.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn run(&self, script: &str) -> Recorded {
        let (cache, build) = (self.root.join("cache"), self.root.join("build"));
        let _ = fs::remove_dir_all(build.join("reads"));
        let recorder = Recorder::start(&cache, &build, &[], &toolchain::sample().host, "/usr/bin:/bin").unwrap();
        let env = [("PATH", self.path.as_str()), ("ROOT", self.root.as_str())];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let spec = CommandSpec::new("/bin/sh", build.as_path()).args(["-ec", script]).env(env.into());
        let said = process::capture(&recorder.follow(spec), PATIENCE).unwrap();
        assert!(said.status.success(), "{script}: {}", said.stderr);
        recorder.collect(&cache, &self.path, &["/var/tmp"])
    }

    fn check(&self, reads: &Reads) -> Result<(), String> {
        let cache = self.root.join("cache");
        check(reads, "here", &self.path, Memo { cache_root: &cache, key: "k", reads: "r" })
    }

    /// What a change makes of the check: the first difference, with the folder's name left out.
    fn after(&self, reads: &Reads, change: impl FnOnce()) -> String {
        assert_eq!(self.check(reads), Ok(()), "before the change");
        change();
        self.check(reads).unwrap_err().replace(self.root.as_str(), "")
    }
}

const COMPILE: &str = "printf '#include <a.h>\\nint f(){return A;}' > x.c; \
                       gcc -shared -fPIC -I$ROOT/first/include -I$ROOT/second/include x.c -o x.so";

#[test]
fn a_header_that_changes_or_appears_in_an_earlier_folder_is_noticed() {
    let build = Build::new();
    build.file("second/include/a.h", "#define A 1\n").file("second/include/other.h", "");
    let reads = build.run(COMPILE).reads;
    let header = build.root.join("second/include/a.h");
    assert!(matches!(reads.paths[&header], Seen::Contents(_)));
    assert!(reads.paths.keys().any(|path| path.as_str().ends_with("/cc1")), "{reads:#?}");
    fs::write(build.root.join("second/include/other.h"), "not read").unwrap();
    let appeared = build.after(&reads, || {
        build.file("first/include/a.h", "#define A 2\n");
    });
    assert_eq!(appeared, "/first/include/a.h is there now, and was not when it was built");
    fs::remove_file(build.root.join("first/include/a.h")).unwrap();
    let changed = build.after(&reads, || {
        build.file("second/include/a.h", "#define A 3\n");
    });
    assert_eq!(changed, "/second/include/a.h has changed since it was built");
    let gone = {
        fs::remove_file(header).unwrap();
        build.check(&reads).unwrap_err()
    };
    assert!(gone.ends_with("/second/include/a.h is gone"), "{gone}");
}

#[test]
fn programs_count_by_their_name_on_the_path_by_their_text_and_by_what_they_read() {
    let build = Build::new();
    build.file("second/bin/describe", "#!/bin/sh\ncat $ROOT/second/lib/version\n").file("second/lib/version", "1");
    let recorded = build.run("describe > version; if command -v absent; then exit 1; fi");
    assert_eq!(recorded.unknown, [""; 0]);
    let reads = recorded.reads;
    assert_eq!(reads.programs["describe"].as_ref(), Some(&build.root.join("second/bin/describe")));
    assert_eq!(reads.programs["absent"], None);
    let version = build.after(&reads, || {
        build.file("second/lib/version", "2");
    });
    assert_eq!(version, "/second/lib/version has changed since it was built");
    build.file("second/lib/version", "1");
    let other = build.after(&reads, || {
        build.file("first/bin/describe", "#!/bin/sh\n");
    });
    assert!(other.starts_with("`describe` on PATH is /first/bin/describe"), "{other}");
    fs::remove_file(build.root.join("first/bin/describe")).unwrap();
    let there = build.after(&reads, || {
        build.file("second/bin/absent", "");
    });
    assert!(there.starts_with("`absent` on PATH is /second/bin/absent, was nothing"), "{there}");
}

#[test]
fn libraries_that_the_linker_takes_and_modules_and_folders_that_python_reads_are_noticed() {
    let build = Build::new();
    build.file("second/lib/one.c", "int g(){return 1;}").file("second/lib/two.c", "int g(){return 2;}");
    let library = |name: &str| {
        let out = build.root.join("second/lib/libg.so");
        let spec = CommandSpec::new("/usr/bin/gcc", build.root.join("second/lib"))
            .args(["-shared", "-fPIC", name, "-o", out.as_str()])
            .env([("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into());
        assert!(process::capture(&spec, PATIENCE).unwrap().status.success());
    };
    library("one.c");
    let link = "printf 'int g();int f(){return g();}' > x.c; \
                gcc -shared -fPIC x.c -L$ROOT/first/lib -L$ROOT/second/lib -lg -o x.so";
    let reads = build.run(link).reads;
    assert_eq!(build.after(&reads, || library("two.c")), "/second/lib/libg.so has changed since it was built");
    library("one.c");
    fs::create_dir_all(build.root.join("second/lib/mods")).unwrap();
    build.file("second/lib/mods/m.py", "VALUE = 1\n");
    let script =
        "PYTHONPATH=$ROOT/second/lib/mods /usr/bin/python3 -c 'import m, os; os.listdir(\"'$ROOT'/second/include\")'";
    // The second time Python reads what it has made of the module.
    build.run(script);
    let reads = build.run(script).reads;
    let module = build.after(&reads, || {
        build.file("second/lib/mods/m.py", "VALUE = 2\n");
    });
    assert_eq!(module, "/second/lib/mods/m.py has changed since it was built");
    build.file("second/lib/mods/m.py", "VALUE = 1\n");
    let listed = build.after(&reads, || {
        build.file("second/include/new.h", "");
    });
    assert_eq!(listed, "/second/include holds other files than when it was built");
}

#[test]
fn what_cannot_be_known_is_said() {
    let build = Build::new();
    let unknown = |script: &str| build.run(script).unknown.join("; ");
    assert_eq!(unknown("true"), "");
    assert_eq!(
        unknown("printf 'int x;' > x.c; gcc -march=native -c x.c"),
        "it asks for this machine's processor (-march=native)"
    );
    assert_eq!(unknown("cat /proc/cpuinfo > x"), "it asks for this machine's processor (/proc/cpuinfo)");
    let connect = "/usr/bin/python3 -c 'import socket\ntry: socket.create_connection((\"127.0.0.1\", 9), 1)\nexcept OSError: pass'";
    assert_eq!(unknown(connect), "it connects to 127.0.0.1:9");
    let fixed = "printf 'int main(){return 0;}' > x.c; gcc -static x.c -o x; ./x";
    assert!(unknown(fixed).contains("build/x, which is linked statically"), "{}", unknown(fixed));
    assert!(unknown("echo x >> $ROOT/second/lib/state; cat $ROOT/second/lib/state").contains("reads and writes"));
    // A program that starts another without our variables is followed all the same.
    build.file("second/lib/version", "1");
    let reads = build.run("env -i /bin/cat $ROOT/second/lib/version").reads;
    assert!(reads.paths.contains_key(&build.root.join("second/lib/version")));
}

#[test]
fn an_entry_of_another_machine_and_a_file_that_changes_meanwhile_are_not_used() {
    let build = Build::new();
    let reasons = vec!["it runs x".to_owned()];
    let local = Some(crate::domain::reads::Local { machine: "there".into(), reasons });
    let why = build.check(&Reads { local, ..Reads::default() }).unwrap_err();
    assert_eq!(why, "it is valid on another machine only: it runs x");
    build.file("second/lib/state", "1");
    let later = fs::File::open(build.root.join("second/lib/state")).unwrap();
    later.file().set_modified(clock::now() + Duration::from_mins(1)).unwrap();
    let unsteady = build.run("cat $ROOT/second/lib/state").unsteady;
    assert_eq!(unsteady, Some(build.root.join("second/lib/state")));
}
