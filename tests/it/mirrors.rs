//! Indexes, proxies and credentials of a company: what uv and pip are told holds. The real uv asks a small server here.

use camino::Utf8PathBuf;

use crate::support::kits::program;
use crate::support::server::Server;
use crate::support::{Said, Sandbox, real};

/// An installation that can only fail, and whom it asked.
fn asked(prepare: impl FnOnce(Sandbox, &Server) -> Sandbox) -> (Vec<String>, Said) {
    let server = Server::start(&[]);
    let sandbox = Sandbox::new();
    let own = sandbox.root().join("cache");
    real::copy(&real::cache().join("tools"), &own.join("tools"));
    let sandbox = sandbox.var("UV_HTTP_RETRIES", "0").var("UV_CACHE_DIR", own.join("uv").as_str());
    let sandbox = prepare(sandbox, &server);
    let said = sandbox.run(&["toolchain", "install"]).assert_code(12);
    assert_eq!(sandbox.run(&["toolchain", "list", "--json"]).assert_code(0).stdout, "[]\n");
    (server.requests(), said)
}

/// Whether somebody asked for torch below this path.
fn for_torch(requests: &[String], path: &str) -> bool {
    requests.iter().any(|request| request.starts_with(&format!("GET {path}/torch/")))
}

fn home(sandbox: &Sandbox, name: &str, text: &str) -> Utf8PathBuf {
    let path = sandbox.root().join("home").join(name);
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(&path, text).unwrap();
    path
}

#[test]
fn every_way_to_name_an_index_is_honoured() {
    // The tools of the tests must be there before they are copied.
    real::sandbox().run(&["toolchain", "install"]).assert_code(0);
    for variable in ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"] {
        let (requests, said) = asked(|sandbox, server| sandbox.var(variable, &server.url("/mirror/simple")));
        assert!(for_torch(&requests, "/mirror/simple"), "{variable}: {requests:#?}\n{}", said.stderr);
    }
    let (requests, _) = asked(|sandbox, server| {
        let text = format!("[global]\nindex-url = {}\n", server.url("/named/simple"));
        let file = home(&sandbox, "pip-of-the-company.conf", &text);
        sandbox.var("PIP_CONFIG_FILE", file.as_str())
    });
    assert!(for_torch(&requests, "/named/simple"), "{requests:#?}");
    let (requests, _) = asked(|sandbox, server| {
        let text = format!("[global]\nindex-url = {}\n", server.url("/users/simple"));
        home(&sandbox, ".config/pip/pip.conf", &text);
        sandbox
    });
    assert!(for_torch(&requests, "/users/simple"), "{requests:#?}");
    // A file of uv wins over pip's.
    let (requests, _) = asked(|sandbox, server| {
        let text = format!("[[index]]\nurl = \"{}\"\ndefault = true\n", server.url("/uv/simple"));
        home(&sandbox, ".config/uv/uv.toml", &text);
        sandbox.var("PIP_INDEX_URL", &server.url("/pip/simple"))
    });
    assert!(for_torch(&requests, "/uv/simple") && !for_torch(&requests, "/pip/simple"), "{requests:#?}");
    for variable in ["PIP_FIND_LINKS", "UV_FIND_LINKS"] {
        let (requests, _) = asked(|sandbox, server| {
            sandbox.var(variable, &server.url("/links/")).var("UV_DEFAULT_INDEX", &server.url("/main/simple"))
        });
        assert!(requests.iter().any(|request| request.starts_with("GET /links/")), "{variable}: {requests:#?}");
    }
}

#[test]
fn proxies_credentials_and_certificates_reach_the_tools() {
    real::sandbox().run(&["toolchain", "install"]).assert_code(0);
    let (requests, said) = asked(|sandbox, server| {
        sandbox.var("HTTP_PROXY", &server.url("")).var("UV_DEFAULT_INDEX", "http://index.invalid/simple")
    });
    let through = "GET http://index.invalid/simple/torch/";
    assert!(requests.iter().any(|request| request.starts_with(through)), "{requests:#?}\n{}", said.stderr);
    let (requests, said) = asked(|sandbox, server| {
        server.answer("/simple/torch/", 401, "text/plain", b"");
        let netrc = home(&sandbox, ".netrc", "machine 127.0.0.1\nlogin me\npassword s3cret\n");
        sandbox.var("NETRC", netrc.as_str()).var("UV_DEFAULT_INDEX", &server.url("/simple"))
    });
    let basic = "authorization: basic bwu6cznjcmv0";
    assert!(requests.iter().any(|request| request.to_lowercase().contains(basic)), "{requests:#?}\n{}", said.stderr);
    // A stand-in shows what uv is started with: certificates cannot be tried without a server that has some.
    let sandbox = Sandbox::new();
    let (bin, log) = (sandbox.root().join("bin"), sandbox.root().join("log"));
    let record = format!("case $1 in --version) echo uv 0.13.9;; *) env >> '{log}'; exit 1;; esac");
    program(&bin.join("uv"), &record);
    let path = format!("{bin}:/usr/local/bin:/usr/bin:/bin");
    let sandbox =
        sandbox.var("PATH", &path).var("HTTPS_PROXY", "http://proxy.invalid:3128").var("NO_PROXY", "a.invalid");
    for (variable, value) in [("SSL_CERT_FILE", "/certs/company.pem"), ("PIP_CERT", "/certs/pip.pem")] {
        let sandbox = sandbox.command(&["toolchain", "install"]).env(variable, value).output().unwrap();
        assert_eq!(sandbox.status.code(), Some(12));
        let seen = fs_err::read_to_string(&log).unwrap();
        for line in
            [format!("SSL_CERT_FILE={value}").as_str(), "HTTPS_PROXY=http://proxy.invalid:3128", "NO_PROXY=a.invalid"]
        {
            assert!(seen.lines().any(|known| known == line), "{line} is not in {seen}");
        }
        fs_err::remove_file(&log).unwrap();
    }
}
