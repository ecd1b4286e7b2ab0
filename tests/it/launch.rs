//! What `verify --runs-on` says against what a real driver did.
//!
//! Each file in `data/launch` holds one image of the kernel `x[threadIdx.x] += 1`, as nvcc 13.0.88 (one: 13.5.37) made it.
//! The outcomes were read off an H200 (9.0) with driver 580.159.04 for CUDA 13.0; docs/measurements.md has the table.

use crate::support::{Sandbox, project};

/// Image, and whether it ran.
const LAUNCHED: [(&str, bool); 10] = [
    ("sm_90", true),
    ("sm_80", false),
    ("sm_86", false),
    ("compute_80", true),
    ("compute_90", true),
    ("sm_90a", true),
    ("compute_90a", true),
    ("sm_100", false),
    ("compute_100", false),
    ("ptx90_cuda135", false),
];

#[test]
fn the_rules_say_what_the_driver_did() {
    let sandbox = Sandbox::new();
    for driver in ["13.0", "580.159.04"] {
        for (name, ran) in LAUNCHED {
            let file = project("tests/it/data/launch").join(format!("{name}.fatbin"));
            let said = sandbox.run(&["verify", file.as_str(), "--runs-on", "H200", "--driver", driver, "--json"]);
            assert_eq!(said.code, Some(if ran { 0 } else { 14 }), "{name}: {}\n{}", said.stdout, said.stderr);
            let natively = said.stdout.contains(r#""runs": "natively""#);
            assert_eq!(natively, ran && name.starts_with("sm_"), "{name}: {}", said.stdout);
        }
    }
}
