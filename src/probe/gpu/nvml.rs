//! NVML, loaded at run time: the driver's own answer. An absent library is an answer, not an error.

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device as NvmlDevice, Nvml};

use super::{Answer, Confidence, Device, Fault, Method, Roots, by_name};
use crate::domain::arch::Capability;
use crate::domain::version::CudaVersion;

pub(super) fn ask(roots: &Roots) -> Answer {
    let mut absent = None;
    for path in &roots.nvml {
        match Nvml::builder().lib_path(path.as_ref()).init() {
            Ok(nvml) => return read(&nvml),
            // The next path is worth a try only if there is no library here; dlopen names the path itself.
            Err(NvmlError::LibloadingError(error)) => absent = absent.or(Some(error)),
            Err(error) => return failed(&error),
        }
    }
    Answer::said(absent.map_or_else(|| "no library".to_owned(), |error| shorten(&format!("no library: {error}"))))
}

fn failed(error: &NvmlError) -> Answer {
    let fault = match error {
        NvmlError::LibRmVersionMismatch => Fault::DriverLibraryMismatch { kernel: None, library: None },
        NvmlError::DriverNotLoaded => Fault::NotLoaded,
        NvmlError::NoPermission => Fault::NoPermission,
        NvmlError::GpuLost => Fault::Lost,
        other => Fault::Other(format!("NVML: {other}")),
    };
    Answer { fault: Some(fault), ..Answer::said(error.to_string()) }
}

fn read(nvml: &Nvml) -> Answer {
    let mut answer = Answer {
        driver: nvml.sys_driver_version().ok().and_then(|version| version.parse().ok()),
        cuda: nvml.sys_cuda_driver_version().ok().and_then(cuda_version),
        ..Answer::default()
    };
    let count = match nvml.device_count() {
        Ok(count) => count,
        Err(error) => return Answer { driver: answer.driver, cuda: answer.cuda, ..failed(&error) },
    };
    for index in 0..count {
        match nvml.device_by_index(index).and_then(|device| describe(&device, index, &mut answer.notes)) {
            Ok(device) => answer.devices.push(device),
            Err(error) => {
                answer.notes.push(format!("GPU {index} does not answer: {error}"));
                answer.fault = answer.fault.or(failed(&error).fault);
            }
        }
    }
    if count == 0 {
        answer.fault = Some(Fault::NoDevices);
    } else if !answer.devices.is_empty() {
        answer.fault = None;
    }
    answer.outcome = format!("{} of {count} GPUs", answer.devices.len());
    answer
}

fn describe(device: &NvmlDevice<'_>, index: u32, notes: &mut Vec<String>) -> Result<Device, NvmlError> {
    let reported = match device.cuda_compute_capability() {
        Ok(capability) => capability_of(capability.major, capability.minor),
        Err(NvmlError::FailedToLoadSymbol(_) | NvmlError::NotSupported | NvmlError::FunctionNotFound) => {
            notes.push(
                "this driver is too old to tell compute capabilities: they come from the product name".to_owned(),
            );
            None
        }
        Err(error) => return Err(error),
    };
    let mut found = Device {
        index,
        name: device.name().ok(),
        uuid: device.uuid().ok(),
        capability: reported,
        source: Method::Nvml,
        confidence: Confidence::High,
        mig: instances(device),
        visible: true,
    };
    if reported.is_none() {
        by_name(&mut found);
    }
    Ok(found)
}

/// Ids of the MIG instances; a GPU without MIG has none.
fn instances(device: &NvmlDevice<'_>) -> Vec<String> {
    const ENABLED: u32 = 1;
    if !device.mig_mode().is_ok_and(|mode| mode.current == ENABLED) {
        return Vec::new();
    }
    let slots = device.mig_device_count().unwrap_or_default();
    (0..slots).filter_map(|slot| device.mig_device_by_index(slot).and_then(|instance| instance.uuid()).ok()).collect()
}

fn capability_of(major: i32, minor: i32) -> Option<Capability> {
    let number = u16::try_from(major.checked_mul(10)?.checked_add(minor)?).ok()?;
    Capability::from_number(number).filter(|_| (0..10).contains(&minor))
}

/// 12040 is 12.4.
fn cuda_version(number: i32) -> Option<CudaVersion> {
    let major = u16::try_from(number / 1000).ok().filter(|major| *major > 0)?;
    let minor = u16::try_from(number % 1000 / 10).ok()?;
    Some(CudaVersion::new(major, minor))
}

/// dlopen's text is long; its first part says enough.
fn shorten(text: &str) -> String {
    text.chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvml_s_numbers_are_checked() {
        assert_eq!(cuda_version(12040), Some(CudaVersion::new(12, 4)));
        assert_eq!(cuda_version(0), None);
        assert_eq!(capability_of(9, 0), Some(Capability::new(9, 0)));
        for (major, minor) in [(0, 0), (-1, 0), (9, 10), (i32::MAX, 0)] {
            assert_eq!(capability_of(major, minor), None);
        }
    }

    #[test]
    fn an_absent_library_is_an_answer() {
        let roots = Roots { nvml: vec!["/nonexistent/libnvidia-ml.so.1".to_owned()], ..Roots::default() };
        let answer = ask(&roots);
        assert!(answer.devices.is_empty() && answer.fault.is_none());
        assert!(answer.outcome.starts_with("no library"), "{}", answer.outcome);
    }
}
