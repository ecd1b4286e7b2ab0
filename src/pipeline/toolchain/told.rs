//! What was looked at, in words. Toolchains that cuwright keeps itself are many and much alike: of those that are not
//! taken, the first are told and the others counted.

use camino::Utf8Path;

use crate::domain::toolchain::Considered;
use crate::provision::list;

/// How many of cuwright's own are told one by one.
const OWN_SHOWN: usize = 2;

/// The folder of cuwright's own toolchains, where `place` is inside one of them.
pub fn kept_in(place: &Utf8Path) -> Option<&Utf8Path> {
    list::folder_of(place)
}

/// A line for each place, and one for all further toolchains of cuwright's own, behind the first of them.
pub(super) fn lines<'a>(all: impl IntoIterator<Item = &'a Considered>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut own: Vec<(&Utf8Path, &Considered)> = Vec::new();
    let mut behind = 0;
    for one in all {
        let folder = kept_in(Utf8Path::new(&one.place)).filter(|_| !one.taken && one.what == "toolkit");
        own.extend(folder.map(|folder| (folder, one)));
        if folder.is_none() || own.len() <= OWN_SHOWN {
            lines.push(one.to_string());
            behind = if folder.is_some() { lines.len() } else { behind };
        }
    }
    // One that is left is told rather than counted.
    match own.get(OWN_SHOWN..).unwrap_or_default() {
        [] => {}
        [(_, one)] => lines.insert(behind, one.to_string()),
        [(folder, _), ..] => {
            let more = own.len() - OWN_SHOWN;
            lines.insert(behind, format!("and {more} more in {folder}; `cuwright toolchain list` lists them"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolchains_of_our_own_are_counted_and_the_one_taken_is_told() {
        let of = |place: &str, taken| Considered {
            what: "toolkit".to_owned(),
            place: place.to_owned(),
            version: Some("13.0.88".to_owned()),
            origin: "test".to_owned(),
            taken,
            why: "is looked at".to_owned(),
        };
        let own = |name: &str, taken| of(&format!("/c/toolchains-v1/{name}/cuda"), taken);
        let mut all: Vec<Considered> = ["a", "b", "c", "d", "e"].map(|name| own(name, name == "e")).to_vec();
        all.insert(3, of("/usr/local/cuda", false));
        let told = lines(&all);
        assert_eq!(told.len(), 5, "{told:#?}");
        assert!(told[2].starts_with("and 2 more in /c/toolchains-v1; "), "{told:#?}");
        assert!(told[3].contains("/usr/local/cuda") && told[4].contains("/e/cuda"), "{told:#?}");
        assert_eq!((lines(&all[..2]).len(), lines(&all[..3]).len()), (2, 3));
    }
}
