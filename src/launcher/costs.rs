//! What sources cost, learnt from build to build: kept beside the cache, and never a reason to fail.
//!
//! ```text
//! costs-v1/<recipe>.json    source → for each arch set and toolkit: work, peak
//! ```

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::report::timeline::Call;
use crate::sys::files;

const BUCKET: &str = "costs-v1";
/// A source that no build has had for this many entries is the first to go.
const MOST: usize = 8;

/// What one source took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Cost {
    archs: String,
    toolkit: String,
    /// Milliseconds of processor time.
    pub(super) work: u64,
    /// Bytes at the peak.
    pub(super) peak: u64,
}

/// The costs of one recipe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Costs {
    path: Utf8PathBuf,
    toolkit: String,
    sources: BTreeMap<String, Vec<Cost>>,
}

impl Costs {
    /// What is known of `recipe`, for builds with `toolkit`. Nothing, where nothing can be read.
    pub fn load(cache_root: &Utf8Path, recipe: &str, toolkit: &str) -> Self {
        let path = cache_root.join(BUCKET).join(format!("{recipe}.json"));
        let text = fs_err::read_to_string(&path).unwrap_or_default();
        let sources = serde_json::from_str(&text).unwrap_or_default();
        Self { path, toolkit: toolkit.to_owned(), sources }
    }

    /// Whether anything is known.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// What `source` took for the same archs and toolkit, else for others.
    pub(super) fn find(&self, source: &str, archs: &str) -> Option<&Cost> {
        let known = self.sources.get(source)?;
        let likeness = |cost: &&Cost| (cost.archs == archs, cost.toolkit == self.toolkit, cost.work);
        known.iter().max_by_key(likeness)
    }

    /// Milliseconds of processor time of all sources together, as far as they are known.
    pub(super) fn total(&self) -> u64 {
        self.sources.values().filter_map(|known| known.last()).map(|cost| cost.work).sum()
    }

    /// Takes over what calls took that ended well.
    pub(super) fn learn(&mut self, calls: &[Call]) {
        for call in calls.iter().filter(|call| call.status == 0) {
            let known = self.sources.entry(call.source.clone()).or_default();
            let same = |cost: &Cost| cost.archs == call.archs && cost.toolkit == self.toolkit;
            let (work, mut peak) = (call.user + call.system, call.peak);
            if let Some(index) = known.iter().position(same) {
                // A peak that was not seen this time may come again.
                peak = peak.max(known.remove(index).peak / 10 * 9);
            }
            known.push(Cost { archs: call.archs.clone(), toolkit: self.toolkit.clone(), work, peak });
            if known.len() > MOST {
                known.remove(0);
            }
        }
    }

    /// Writes what was learnt.
    pub fn save(&self) -> std::io::Result<()> {
        let text = serde_json::to_vec(&self.sources)?;
        files::write_atomic(&self.path, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(archs: &str, work: u64, peak: u64) -> Call {
        Call { source: "a.cu".into(), archs: archs.into(), user: work, peak, ..Call::default() }
    }

    #[test]
    fn the_same_archs_and_toolkit_count_first_and_a_broken_file_not_at_all() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temporary.path()).unwrap();
        let mut costs = Costs::load(root, "x", "13.0.88");
        assert!(costs.is_empty());
        costs.learn(&[call("8.6", 10, 100), call("9.0", 20, 50), Call { status: 1, ..call("9.0", 1, 1) }]);
        costs.save().unwrap();
        let known = Costs::load(root, "x", "13.5.1");
        assert_eq!(known.total(), 20, "the last");
        assert_eq!(known.find("a.cu", "8.6").map(|cost| cost.work), Some(10));
        assert_eq!(known.find("a.cu", "7.5").map(|cost| cost.work), Some(20), "the longest of the others");
        assert!(known.find("b.cu", "8.6").is_none());
        costs.learn(&[call("8.6", 12, 10)]);
        assert_eq!(costs.find("a.cu", "8.6").map(|cost| (cost.work, cost.peak)), Some((12, 90)));
        fs_err::write(root.join("costs-v1/x.json"), "{").unwrap();
        assert!(Costs::load(root, "x", "13.0.88").is_empty());
    }
}
