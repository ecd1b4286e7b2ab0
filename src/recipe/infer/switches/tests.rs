//! Switches in setup.py files of the shapes that real projects have.

use super::*;

fn found(text: &str) -> Vec<(String, String, Option<String>)> {
    let switches = in_python(&[("setup.py".to_owned(), text.to_owned())]);
    let value = |on: On| match on {
        On::Value(value, _) => Some(value),
        On::ByDefault => Some("default".to_owned()),
        On::Unknown => None,
    };
    switches.into_iter().map(|switch| (switch.name, switch.place, value(switch.on))).collect()
}

/// Each in the shape of some project that is really built so.
#[test]
fn every_spelling_of_a_read_gives_the_value_that_it_is_compared_with() {
    for (text, name, value) in [
        ("if os.getenv('FORCE_CUDA', '0') == '1':\n    x()", "FORCE_CUDA", Some("1")),
        ("F = os.getenv(\"MY_FORCE_BUILD\", \"FALSE\") == \"TRUE\"", "MY_FORCE_BUILD", Some("TRUE")),
        ("a = (cuda() and HOME) or os.getenv(\n    \"FORCE_CUDA\", \"0\"\n) == \"1\"", "FORCE_CUDA", Some("1")),
        ("B = int(os.environ.get('BUILD_CUDA_EXT', '1')) == 1", "BUILD_CUDA_EXT", Some("default")),
        ("B = int(environ.get('BUILD_CUDA_EXT', 0)) == 1", "BUILD_CUDA_EXT", Some("1")),
        ("if os.getenv('X_WITH_OPS', '1') == '0': pass", "X_WITH_OPS", Some("default")),
        ("if os.getenv('X_WITH_OPS', '0') == '0': pass", "X_WITH_OPS", Some("1")),
        ("if 'FORCE_CUDA' in os.environ:", "FORCE_CUDA", Some("1")),
        ("if os.environ['FORCE_CUDA'] == 'yes':", "FORCE_CUDA", Some("yes")),
        ("if \"ON\" == getenv('USE_CUDA'):", "USE_CUDA", Some("ON")),
        ("if os.getenv('USE_CUDA', '').upper() in ['ON', '1', 'YES']:", "USE_CUDA", Some("1")),
        ("T = {'true', 'on'}\nif os.getenv('USE_CUDA', '').lower() in T:", "USE_CUDA", Some("true")),
        ("w = os.environ.get('WITH_CUDA')\nif w == 'TRUE': pass", "WITH_CUDA", Some("TRUE")),
        ("w = os.environ.get('WITH_CUDA')\nif w:\n  pass", "WITH_CUDA", Some("1")),
        ("env = os.environ\nif env.get('FORCE_CUDA', '0') != '0':", "FORCE_CUDA", Some("1")),
        ("if os.getenv('FORCE_CUDA_EXTENSION'):", "FORCE_CUDA_EXTENSION", Some("1")),
        ("b = bool(int(os.getenv('FORCE_CUDA', '0')))", "FORCE_CUDA", Some("1")),
        ("b = strtobool(os.getenv('FORCE_CUDA', 'no'))", "FORCE_CUDA", Some("1")),
        ("mode = pick(os.getenv('FORCE_CUDA'), 7)", "FORCE_CUDA", None),
    ] {
        let wanted = vec![(name.to_owned(), value.map(str::to_owned))];
        let got: Vec<_> = found(text).into_iter().map(|(name, _, value)| (name, value)).collect();
        assert_eq!(got, wanted, "{text}");
    }
}

#[test]
fn what_is_no_read_or_another_kind_of_switch_is_not_found() {
    for text in [
        "nvcc = ['-DWITH_CUDA', '-DFORCE_CUDA=1']\nmacros = [('WITH_CUDA', None)]",
        "# os.getenv('FORCE_CUDA', '0') == '1'\n'''os.getenv('FORCE_CUDA')'''",
        "os.environ['FORCE_CUDA'] = '1'",
        "a = os.getenv('X_SKIP_CUDA_BUILD', 'FALSE') == 'TRUE'",
        "a = os.getenv('X_FORCE_CXX11_ABI', 'FALSE') == 'TRUE'",
        "a = os.getenv('FORCE_ONLY_CPU', '0') == '1'; b = os.getenv('BUILD_NO_CUDA')",
        "a = os.getenv('X_KEEP_CUDA_BUILD', 'FALSE') == 'TRUE'; b = os.getenv('BUILD_DOCS')",
        "a = os.getenv('CUDA_HOME'); b = os.getenv('USE_CUDA_PATH')",
    ] {
        assert_eq!(found(text), Vec::new(), "{text}");
    }
}

#[test]
fn a_function_of_the_projects_own_is_followed_to_its_calls_also_from_another_file() {
    let helper = "def has(flag, env_var):\n    return flag in argv or os.environ.get(env_var, \"0\") == \"1\"\n";
    let setup =
        "from tools import has\n\nif has('--cuda_ext', 'MY_CUDA_EXT'):\n    pass\nhas('--x', env_var='BUILD_OPS')\n";
    let files = [("tools.py".to_owned(), helper.to_owned()), ("setup.py".to_owned(), setup.to_owned())];
    let all = in_python(&files);
    let places: Vec<_> = all.iter().map(|switch| (switch.name.as_str(), switch.place.as_str())).collect();
    assert_eq!(places, [("BUILD_OPS", "setup.py:5"), ("MY_CUDA_EXT", "setup.py:3")]);
    assert!(all.iter().all(|switch| matches!(&switch.on, On::Value(value, _) if value == "1")), "{all:?}");
}

#[test]
fn cmake_options_and_variables_are_read_too() {
    let text = "option(WITH_CUDA \"CUDA\" OFF)\noption(BUILD_CUDA_EXT \"\" ON)\noption(BUILD_TESTING \"\" OFF)\n\
                if(\"$ENV{FORCE_CUDA}\" STREQUAL \"yes\")\nendif()\n";
    let (options, variables) = in_cmake("CMakeLists.txt", text);
    let names: Vec<_> = options.iter().map(|switch| (switch.name.as_str(), switch.on == On::ByDefault)).collect();
    assert_eq!(names, [("BUILD_CUDA_EXT", true), ("WITH_CUDA", false)]);
    assert_eq!(variables[0].place, "CMakeLists.txt:4");
    assert!(matches!(&variables[0].on, On::Value(value, _) if value == "yes"));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(\\PC|\n|['\"#(\\[]|os\\.getenv\\('FORCE_CUDA'|environ\\[|def f\\(a\\):){0,40}") {
        found(&text);
        in_cmake("x", &text);
    }
}
