//! `nvidia-smi`, read line by line and field by field.
//!
//! It prints failures on standard output too, so a line counts only if every field of it is what it must be.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Answer, Confidence, Device, Fault, Method, Roots, by_name};
use crate::domain::command::CommandSpec;
use crate::domain::version::CudaVersion;
use crate::sys::Env;
use crate::sys::process::{self, Captured};

/// Without persistence mode the driver initialises every GPU first, which takes seconds on large machines.
const LIMIT: Duration = Duration::from_secs(30);

pub(super) fn ask(env: &Env, roots: &Roots) -> Answer {
    let elsewhere = || roots.smi.iter().find(|path| path.is_file()).cloned();
    let Some(program) = env.find_program("nvidia-smi").or_else(elsewhere) else {
        return Answer::said("not on PATH");
    };
    let run = |args: &[&str]| {
        let spec = CommandSpec::new(program.as_str(), "/").args(args.iter().copied()).env(env.tool_variables());
        process::capture(&spec, LIMIT)
    };
    let query = |fields: &str| run(&[&format!("--query-gpu={fields}"), "--format=csv,noheader"]);
    let mut said = match query("index,uuid,name,compute_cap") {
        Ok(said) => said,
        Err(error) => return Answer::said(error.to_string()),
    };
    let mut answer = Answer::default();
    if is_unknown_field(&said) {
        answer
            .notes
            .push("this driver is too old to tell compute capabilities: they come from the product name".to_owned());
        said = match query("index,uuid,name") {
            Ok(said) => said,
            Err(error) => return Answer::said(error.to_string()),
        };
    }
    let text = format!("{}\n{}", said.stdout, said.stderr);
    answer.fault = Fault::of_text(&text);
    for line in said.stdout.lines().filter(|line| !line.trim().is_empty()) {
        match device(line) {
            Some(device) => answer.devices.push(device),
            None => answer.notes.push(format!("nvidia-smi said: {}", line.trim())),
        }
    }
    if answer.devices.is_empty() {
        if answer.fault.is_none() && !said.status.success() {
            answer.fault = Some(Fault::Other(format!("nvidia-smi: {}", said.tail(3))));
        }
        answer.outcome = format!("no GPU ({})", said.status);
        return answer;
    }
    answer.fault = None;
    answer.outcome = format!("{} GPUs", answer.devices.len());
    if let Ok(listed) = run(&["-L"]) {
        let mut instances = instances(&listed.stdout);
        for device in &mut answer.devices {
            device.mig = device.uuid.as_ref().and_then(|uuid| instances.remove(uuid)).unwrap_or_default();
        }
    }
    if let Ok(summary) = run(&[]) {
        answer.driver = after(&summary.stdout, &["Driver Version:", "KMD Version:"]).and_then(|v| v.parse().ok());
        let cuda = after(&summary.stdout, &["CUDA Version:", "CUDA UMD Version:"]);
        answer.cuda = cuda.and_then(|version| version.parse::<CudaVersion>().ok());
    }
    answer
}

fn is_unknown_field(said: &Captured) -> bool {
    format!("{}{}", said.stdout, said.stderr).contains("is not a valid field to query")
}

/// `0, GPU-…, NVIDIA GeForce RTX 3090, 8.6`, or without the capability.
fn device(line: &str) -> Option<Device> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [index, uuid, name, ..] = *fields else { return None };
    let index = index.parse().ok()?;
    let is_uuid = uuid.starts_with("GPU-") && uuid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !is_uuid || name.is_empty() || fields.len() > 4 {
        return None;
    }
    let mut device = Device {
        index,
        name: Some(name.to_owned()),
        uuid: Some(uuid.to_owned()),
        capability: None,
        source: Method::NvidiaSmi,
        confidence: Confidence::High,
        mig: Vec::new(),
        visible: true,
    };
    match fields.get(3) {
        None | Some(&("[N/A]" | "N/A" | "[Not Supported]" | "[Unknown Error]")) => by_name(&mut device),
        Some(capability) => device.capability = Some(capability.parse().ok()?),
    }
    Some(device)
}

/// MIG ids by the id of their GPU, from `nvidia-smi -L`.
fn instances(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut gpu = None;
    for line in text.lines() {
        let uuid = line.rsplit_once("(UUID: ").and_then(|(_, rest)| rest.strip_suffix(')'));
        match uuid {
            Some(uuid) if uuid.starts_with("GPU-") => gpu = Some(uuid.to_owned()),
            Some(uuid) if uuid.starts_with("MIG-") => {
                if let Some(gpu) = &gpu {
                    found.entry(gpu.clone()).or_default().push(uuid.to_owned());
                }
            }
            _ => {}
        }
    }
    found
}

/// The word behind the first of `labels` that occurs.
fn after<'t>(text: &'t str, labels: &[&str]) -> Option<&'t str> {
    labels.iter().find_map(|label| text.split_once(label)?.1.split_whitespace().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_only_if_every_field_does() {
        let good = device("1, GPU-0a0a0a0a-0000-0000-0000-000000000002, NVIDIA GeForce GTX 1070 Ti, 6.1").unwrap();
        assert_eq!((good.index, good.capability.unwrap().to_string().as_str()), (1, "6.1"));
        let old = device("0, GPU-1, Tesla K80").unwrap();
        assert_eq!((old.source, old.capability.unwrap().to_string().as_str()), (Method::Name, "3.7"));
        assert_eq!(device("0, GPU-1, Mystery Card, [N/A]").unwrap().capability, None);
        for wrong in [
            "Failed to initialize NVML: Driver/library version mismatch",
            "NVML library version: 535.183",
            "",
            "0, 8.6",
            "0, GPU-1, X, 86",
            "0, GPU-1, X, Failed",
            "x, GPU-1, X, 8.6",
            "0, 00000000:01:00.0, X, 8.6",
            "0, GPU-1, X, 8.6, more",
        ] {
            assert_eq!(device(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn both_spellings_of_the_summary_read() {
        let old = "| NVIDIA-SMI 535.161.08   Driver Version: 535.161.08   CUDA Version: 12.2     |";
        let new = "| NVIDIA-SMI 610.43.02   KMD Version: 610.43.02   CUDA UMD Version: 13.3     |";
        let cuda = ["CUDA Version:", "CUDA UMD Version:"];
        assert_eq!((after(old, &cuda), after(new, &cuda)), (Some("12.2"), Some("13.3")));
        assert_eq!(after(new, &["Driver Version:", "KMD Version:"]), Some("610.43.02"));
    }
}
