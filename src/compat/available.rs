//! Which toolkits can be had on a machine, so that a mend names only what works there.

use crate::domain::version::CudaVersion;

/// Which toolkits can be had on a machine, for mends that work there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Available {
    /// Usable toolkits, with their place.
    pub installed: Vec<(CudaVersion, String)>,
    /// Releases that wheels bring, with their torch.
    pub wheels: Vec<(CudaVersion, String)>,
}

impl Available {
    /// How to get a toolkit whose release `fits`, best way first; `None` where there is none. A toolkit of another major
    /// than `torch` is built for needs another torch.
    pub fn mend(&self, torch: Option<u16>, fits: impl Fn(CudaVersion) -> bool) -> Option<String> {
        let installed = self.installed.iter().filter(|(version, _)| fits(version.release())).max_by_key(|(v, _)| *v);
        if let Some((version, home)) = installed {
            let other = torch.is_some_and(|major| major != version.major);
            let other =
                other.then(|| format!(", with a Python that holds torch for CUDA {}.x (`--python`)", version.major));
            let other = other.unwrap_or_default();
            return Some(format!("use CUDA {version} at {home}: `--cuda {}`{other}", version.release()));
        }
        let (release, torch) = self.wheels.iter().find(|(release, _)| fits(*release))?;
        Some(format!("`--cuda {release}` takes CUDA {release} with torch {torch} from wheels"))
    }
}

/// How to get a toolkit that `fits`: by what is known of this machine, else in general words.
pub(super) fn get(
    available: Option<&Available>,
    torch: u16,
    what: &str,
    general: String,
    fits: impl Fn(CudaVersion) -> bool,
) -> String {
    match available {
        None => general,
        Some(known) => known.mend(Some(torch), fits).unwrap_or_else(|| {
            format!(
                "install CUDA {what} yourself, with a torch built for it, and set CUDA_HOME: wheels bring no such nvcc"
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_toolkit_goes_before_wheels_and_nothing_is_promised() {
        let version = |text: &str| text.parse::<CudaVersion>().unwrap();
        let known = Available {
            installed: vec![(version("12.4.131"), "/a".into()), (version("12.6.85"), "/b".into())],
            wheels: vec![(version("13.0"), "2.11.0".into())],
        };
        let mend = |fits: &dyn Fn(CudaVersion) -> bool| known.mend(Some(12), fits);
        assert_eq!(mend(&|v| v.major == 12).unwrap(), "use CUDA 12.6.85 at /b: `--cuda 12.6`");
        assert!(mend(&|v| v >= version("12.8")).unwrap().starts_with("`--cuda 13.0` takes"));
        let other = known.mend(Some(13), |v| v.major == 12).unwrap();
        assert!(other.ends_with("with a Python that holds torch for CUDA 12.x (`--python`)"), "{other}");
        assert_eq!(mend(&|v| v.major == 11), None);
        assert!(get(Some(&known), 12, "11.8 or older", String::new(), |v| v.major == 11).contains("install CUDA 11.8"));
        assert_eq!(get(None, 12, "", "general".into(), |_| true), "general");
    }
}
