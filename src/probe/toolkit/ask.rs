//! What an nvcc says about itself: its version and the archs it targets.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8Path;

use crate::domain::command::CommandSpec;
use crate::domain::version::CudaVersion;
use crate::sys::{Env, env_vars as vars, process};

const PATIENCE: Duration = Duration::from_secs(30);

/// What nvcc says about itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Answer {
    pub(super) version: CudaVersion,
    pub(super) gpu_codes: Vec<String>,
    pub(super) gpu_archs: Vec<String>,
}

/// The caller's environment without the flags that nvcc would add to every call.
pub(super) fn variables(env: &Env) -> BTreeMap<String, String> {
    let mut variables = env.tool_variables();
    variables.retain(|name, _| name != vars::NVCC_PREPEND_FLAGS && name != vars::NVCC_APPEND_FLAGS);
    variables
}

pub(super) fn ask(nvcc: &Utf8Path, env: &Env) -> Result<Answer, String> {
    let variables = variables(env);
    let run = |argument: &str| {
        let spec = CommandSpec::new(nvcc.as_str(), "/").args([argument]).env(variables.clone());
        let said = process::capture(&spec, PATIENCE).map_err(|error| format!("holds an nvcc that {error}"))?;
        if said.status.success() {
            return Ok(said.stdout);
        }
        Err(format!("holds an nvcc that fails at {argument}: {}", said.tail(1)))
    };
    let version = parse_version(&run("--version")?).ok_or_else(|| "holds an nvcc that tells no version".to_owned())?;
    let list = |argument: &str, prefix: &str| parse_list(&run(argument).unwrap_or_default(), prefix);
    let mut answer =
        Answer { version, gpu_codes: list("--list-gpu-code", "sm_"), gpu_archs: list("--list-gpu-arch", "compute_") };
    if answer.gpu_codes.is_empty() {
        // nvcc before 11.1 has no such options, and names its archs among the allowed values in its help.
        let help = run("--help").unwrap_or_default();
        (answer.gpu_codes, answer.gpu_archs) = (parse_help(&help, "sm_"), parse_help(&help, "compute_"));
    }
    Ok(answer)
}

/// `Cuda compilation tools, release 13.0, V13.0.88`.
pub fn parse_version(text: &str) -> Option<CudaVersion> {
    let (_, rest) = text.split_once("release ")?;
    let full = rest.split_once(", V").map(|(_, full)| full.split_whitespace().next().unwrap_or_default());
    let release = rest.split([',', '\n']).next().unwrap_or_default();
    full.and_then(|full| full.parse().ok()).or_else(|| release.parse().ok())
}

fn parse_list(text: &str, prefix: &str) -> Vec<String> {
    text.split_whitespace().filter(|word| word.starts_with(prefix)).map(str::to_owned).collect()
}

/// The quoted names after "Allowed values for this option:", such as `'compute_30','sm_30'`.
fn parse_help(text: &str, prefix: &str) -> Vec<String> {
    let quoted = text.split('\'').skip(1).step_by(2);
    let legal = |name: &&str| {
        name.strip_prefix(prefix).is_some_and(|number| number.len() >= 2 && number.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut found: Vec<String> = quoted.filter(legal).map(str::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_lists_are_read_in_every_form() {
        let said = "Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0.r13.0/compiler.36424714_0\n";
        assert_eq!(parse_version(said).unwrap().to_string(), "13.0.88");
        assert_eq!(parse_version("release 9.2, Vx").unwrap().to_string(), "9.2");
        assert_eq!(parse_version("nothing"), None);
        let help = "Allowed values for this option:  'compute_30','compute_75',\n 'lto_30','sm_30','sm_75'.\n";
        assert_eq!(parse_help(help, "sm_"), ["sm_30", "sm_75"]);
        assert_eq!(parse_help(help, "compute_"), ["compute_30", "compute_75"]);
        assert!(parse_help("such as 'sm_NN'", "sm_").is_empty());
    }
}
