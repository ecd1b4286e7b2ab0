//! GPU generations that are known and that no toolkit of the table compiles for any more.
//!
//! Their capability may lie outside what an arch can spell (1.x would be read as a lost digit of 10 to 13), so it is text.

use super::names::Words;
use super::table;
use crate::domain::arch::Capability;

const TABLE: &str = include_str!("tables/retired.tsv");

/// A product or a generation that nothing here can build for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retired {
    /// The product's name without the vendor; the generation's where a generation was asked for.
    pub name: &'static str,
    /// Its compute capabilities, joined by `|`.
    pub capability: &'static str,
    /// The generation's name.
    pub generation: &'static str,
    /// The last CUDA release that compiled for it, such as `8.0`.
    pub last: &'static str,
}

fn rows() -> impl Iterator<Item = Retired> {
    table::rows(TABLE).filter_map(|row| {
        let [product, capability, generation, last, ..] = *row else { return None };
        let name = if product == "-" { generation } else { product };
        Some(Retired { name, capability, generation, last })
    })
}

/// A retired product, or a generation by its first word (`Fermi`). The word `Tesla` alone is a product line of many
/// generations and finds nothing.
pub(super) fn by_name(query: &Words) -> Option<Retired> {
    rows().find(|row| {
        let words = Words::of(row.name);
        if row.name == row.generation { row.name == "Fermi" && *query == words } else { query.names(&words) }
    })
}

/// The generation of a capability, if nothing compiles for it any more.
pub fn retired(capability: Capability) -> Option<Retired> {
    let text = capability.to_string();
    rows().find(|row| row.name == row.generation && row.capability.split('|').any(|one| one == text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_reads_and_retired_names_are_known() {
        table::tests::is_well_formed(TABLE, 1);
        assert_eq!(rows().count(), table::rows(TABLE).count());
        let found = |name: &str| by_name(&Words::of(name)).map(|row| row.last);
        assert_eq!(found("GeForce 8800 GTX"), Some("6.5"));
        assert_eq!(found("8800-gtx"), Some("6.5"));
        assert_eq!(found("fermi"), Some("8.0"));
        assert_eq!((found("Tesla"), found("GTX"), found("RTX 4090")), (None, None, None));
        assert_eq!(retired(Capability::new(2, 1)).map(|row| row.generation), Some("Fermi"));
        assert_eq!(retired(Capability::new(3, 0)), None);
    }
}
