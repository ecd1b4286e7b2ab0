//! What `detect --json` writes, and what `detect --merge` reads of it.

use serde::{Deserialize, Serialize};

use super::{Detection, Device};
use crate::domain::arch::ArchSet;
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::report::ErrorMessage;
use crate::targets::{Detected, of_detected};

/// Version of the form; readers refuse later ones.
const SCHEMA: u32 = 1;

/// A machine's GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// Version of this form.
    pub schema: u32,
    /// Archs of the GPUs that count.
    pub archs: String,
    /// What `--arch native` builds: the same, with PTX of the highest.
    pub native: String,
    /// All GPUs found.
    pub devices: Vec<DeviceReport>,
    /// Version of the driver.
    pub driver: Option<String>,
    /// The newest CUDA that the driver supports.
    pub cuda: Option<String>,
    /// Value of `CUDA_VISIBLE_DEVICES`, where set.
    pub visible_devices: Option<String>,
    /// What was tried, in order.
    pub steps: Vec<StepReport>,
    /// What one should know although it works.
    pub notes: Vec<String>,
    /// Why no GPU counts, if none does.
    pub error: Option<ErrorMessage>,
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct DeviceReport {
    /// Number in PCI bus order.
    pub index: u32,
    /// Product name.
    pub name: Option<String>,
    /// The driver's id of it.
    pub uuid: Option<String>,
    /// Compute capability, where known.
    pub capability: Option<String>,
    /// How the capability is known: `nvml`, `nvidia-smi`, `pci`, `device-tree`, `name`.
    pub source: String,
    /// How sure that is: `high`, `medium`, `low`.
    pub confidence: String,
    /// Ids of its MIG instances.
    pub mig: Vec<String>,
    /// Whether `CUDA_VISIBLE_DEVICES` lets programs use it.
    pub visible: bool,
}

/// One way that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct StepReport {
    /// The way.
    pub method: String,
    /// What came of it.
    pub outcome: String,
}

impl From<&Detection> for Report {
    fn from(found: &Detection) -> Self {
        Self {
            schema: SCHEMA,
            archs: found.archs().to_string(),
            native: of_detected(&Detected::from(found)).to_string(),
            devices: found.devices.iter().map(DeviceReport::from).collect(),
            driver: found.driver.as_ref().map(ToString::to_string),
            cuda: found.cuda_driver.map(|version| version.to_string()),
            visible_devices: found.visible_devices.clone(),
            steps: found
                .steps
                .iter()
                .map(|step| StepReport { method: step.method.name().to_owned(), outcome: step.outcome.clone() })
                .collect(),
            notes: found.notes.clone(),
            error: found.problem().as_ref().map(ErrorMessage::from),
        }
    }
}

impl From<&Device> for DeviceReport {
    fn from(device: &Device) -> Self {
        Self {
            index: device.index,
            name: device.name.clone(),
            uuid: device.uuid.clone(),
            capability: device.capability.map(|capability| capability.to_string()),
            source: device.source.name().to_owned(),
            confidence: device.confidence.name().to_owned(),
            mig: device.mig.clone(),
            visible: device.visible,
        }
    }
}

/// What a merge needs of a report. Other fields may come and go.
#[derive(Debug, Deserialize)]
struct Merged {
    schema: u32,
    archs: ArchSet,
}

/// The archs of a report's text, which stands in `file`.
pub fn archs_of(file: &str, text: &str) -> Result<ArchSet, Problem> {
    let refuse = |why: String| {
        Problem::new("cuwright::detect::bad_report", Exit::Usage, format!("{file} is no report of `detect --json`"))
            .why(why)
            .help("write one with `cuwright detect --json > FILE` on that machine")
    };
    let merged: Merged = serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
    if merged.schema > SCHEMA {
        return Err(refuse(format!("it has schema {}, and this cuwright reads up to {SCHEMA}", merged.schema)));
    }
    Ok(merged.archs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_what_the_code_says() {
        crate::schema_check::<Report>("schemas/detect.schema.json");
    }

    #[test]
    fn a_report_reads_back_and_anything_else_is_refused() {
        let report = Report::from(&Detection::default());
        assert!(report.error.is_some());
        let text = serde_json::to_string(&report).unwrap();
        assert!(archs_of("a.json", &text).unwrap().is_empty());
        assert_eq!(archs_of("a", r#"{"schema":1,"archs":"8.6;7.5","new":0}"#).unwrap().to_string(), "7.5;8.6");
        for wrong in ["", "[]", "{}", r#"{"schema":9,"archs":""}"#, r#"{"schema":1,"archs":"Failed"}"#] {
            assert_eq!(archs_of("a.json", wrong).unwrap_err().exit(), Exit::Usage, "{wrong}");
        }
    }
}
