//! Whether a release of sccache compiles with a CUDA release.

use std::sync::LazyLock;

use super::table;
use crate::domain::version::CudaVersion;

const TABLE: &str = include_str!("tables/sccache.tsv");

struct Row {
    first: (u32, u32),
    cuda: (CudaVersion, CudaVersion),
    verdict: &'static str,
    why: &'static str,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| table::rows(TABLE).filter_map(|row| read(&row)).collect());

/// How an sccache goes with a CUDA release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SccacheFit {
    /// It was tried, or lies between releases that were.
    Fits,
    /// It compiles most.
    Partly(&'static str),
    /// It breaks the build.
    Fails(&'static str),
    /// Nobody tried.
    Unknown,
}

/// What the table says of an sccache release and a CUDA release.
pub fn sccache_fit(sccache: (u32, u32), cuda: CudaVersion) -> SccacheFit {
    let inside = |row: &&Row| row.cuda.0 <= cuda.release() && cuda.release() <= row.cuda.1;
    match ROWS.iter().filter(inside).filter(|row| row.first <= sccache).max_by_key(|row| row.first) {
        Some(row) if row.verdict == "fits" => SccacheFit::Fits,
        Some(row) if row.verdict == "partly" => SccacheFit::Partly(row.why),
        Some(row) => SccacheFit::Fails(row.why),
        None => SccacheFit::Unknown,
    }
}

fn read(row: &[&'static str]) -> Option<Row> {
    let [first, from, to, verdict, why, ..] = *row else { return None };
    let (major, minor) = first.split_once('.')?;
    let first = (major.parse().ok()?, minor.parse().ok()?);
    Some(Row { first, cuda: (from.parse().ok()?, to.parse().ok()?), verdict, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_reads_and_the_latest_that_holds_counts() {
        table::tests::is_well_formed(TABLE, 1);
        assert_eq!(ROWS.len(), table::rows(TABLE).count());
        assert!(ROWS.iter().all(|row| ["fits", "partly", "fails"].contains(&row.verdict)));
        let fit = |sccache, cuda: &str| sccache_fit(sccache, cuda.parse().unwrap());
        assert_eq!(fit((0, 16), "13.0.88"), SccacheFit::Fits);
        assert!(matches!(fit((0, 16), "13.3"), SccacheFit::Fails(_)));
        assert!(matches!(fit((0, 17), "13.4"), SccacheFit::Fails(_)));
        assert!(matches!(fit((0, 18), "13.4"), SccacheFit::Partly(_)));
        assert!(matches!(fit((0, 18), "13.2"), SccacheFit::Partly(_)));
        assert!(matches!(fit((0, 19), "13.5"), SccacheFit::Partly(_)));
        assert_eq!((fit((0, 8), "13.0"), fit((0, 16), "12.4")), (SccacheFit::Unknown, SccacheFit::Unknown));
    }
}
