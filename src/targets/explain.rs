//! What a set of archs means for GPUs people know: which run it natively, by JIT, or not.

use serde::Serialize;

use crate::compat::rules::{self, Code, Runs};
use crate::compat::{self, Gpu};
use crate::domain::arch::ArchSet;
use crate::domain::version::CudaVersion;

/// How one GPU fares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Verdict {
    /// Product.
    pub gpu: String,
    /// Its compute capability.
    pub capability: String,
    /// `natively`, `by-jit` or `no`.
    pub runs: String,
    /// The member that it runs, such as `sm_86`.
    pub by: Option<String>,
    /// Why not, or what it costs.
    pub why: Option<String>,
}

/// Judges `gpus`, or the well-known ones where there are none.
pub fn explain(set: &ArchSet, toolkit: Option<CudaVersion>, driver: Option<CudaVersion>, gpus: &[Gpu]) -> Vec<Verdict> {
    let known = if gpus.is_empty() { compat::examples() } else { gpus.to_vec() };
    known
        .into_iter()
        .map(|gpu| {
            let (runs, image) = rules::best(set, toolkit, gpu.capability, driver);
            let by = image.map(|image| match image.code {
                Code::Sass => image.arch.sm(),
                Code::Ptx => image.arch.compute(),
            });
            let (runs, why) = match runs {
                Runs::Natively => ("natively", None),
                Runs::ByJit { why } => ("by-jit", Some(why)),
                Runs::No { why } => ("no", Some(why)),
            };
            let capability = gpu.capability.to_string();
            Verdict { gpu: gpu.name.to_owned(), capability, runs: runs.to_owned(), by, why }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_gpus_are_judged_in_order_of_capability() {
        let verdicts = explain(&"8.0;8.6+PTX".parse().unwrap(), None, None, &[]);
        let of = |name: &str| verdicts.iter().find(|verdict| verdict.gpu == name).unwrap().clone();
        assert_eq!((of("T4").runs.as_str(), of("T4").by), ("no", None));
        assert_eq!((of("A100").runs.as_str(), of("A100").by.as_deref()), ("natively", Some("sm_80")));
        assert_eq!((of("H100").runs.as_str(), of("H100").by.as_deref()), ("by-jit", Some("compute_86")));
        assert_eq!(of("Jetson AGX Orin").runs, "by-jit", "Tegra runs no desktop machine code");
    }
}
