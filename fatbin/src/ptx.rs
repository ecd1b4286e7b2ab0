//! The little that matters about PTX text: version, target, kernels and its maker.
//!
//! Invariant: one pass over the text, nothing is checked that is not reported. This is no PTX parser.

use crate::arch::Arch;
use crate::entry::CodeVersion;
use crate::toolkit::Toolkit;

/// What a deep read of PTX tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Ptx {
    /// The ISA version of the `.version` line.
    pub version: Option<CodeVersion>,
    /// The architecture of the `.target` line.
    pub target: Option<Arch>,
    /// Whether the `.target` line asks for debug information.
    pub debug: bool,
    /// Width of an address, 32 or 64, of the `.address_size` line.
    pub address_bits: Option<u8>,
    /// The names of its kernels (`.entry`), as mangled.
    pub kernels: Vec<String>,
    /// The toolkit that made it, of the comment at its top.
    pub toolkit: Option<Toolkit>,
}

/// Reads PTX text; bytes that are no UTF-8 are passed over.
pub(crate) fn read(bytes: &[u8]) -> Ptx {
    let mut ptx = Ptx::default();
    for line in bytes.split(|&byte| byte == b'\n') {
        let line = line.trim_ascii();
        if line.starts_with(b"//") {
            if ptx.toolkit.is_none()
                && let Ok(comment) = std::str::from_utf8(line)
            {
                ptx.toolkit = Toolkit::from_banner(comment);
            }
            continue;
        }
        let Ok(line) = std::str::from_utf8(line) else {
            continue;
        };
        let code = line.split("//").next().unwrap_or_default();
        // Instructions are by far the most lines and say nothing here.
        if code.starts_with('.') {
            directive(&mut ptx, code);
        }
    }
    ptx
}

fn directive(ptx: &mut Ptx, code: &str) {
    let mut words = code.split(|letter: char| letter.is_whitespace() || letter == ',').filter(|word| !word.is_empty());
    match words.next() {
        Some(".version") => ptx.version = ptx.version.or_else(|| words.next().and_then(version)),
        Some(".target") => {
            for word in words {
                ptx.target = ptx.target.or_else(|| word.parse().ok());
                ptx.debug |= word == "debug";
            }
        }
        Some(".address_size") => ptx.address_bits = words.next().and_then(|bits| bits.parse().ok()),
        Some(first) => {
            let mut all = std::iter::once(first).chain(words);
            if all.any(|word| word == ".entry")
                && let Some(name) = all.next().map(name).filter(|name| !name.is_empty())
            {
                ptx.kernels.push(name.to_owned());
            }
        }
        None => {}
    }
}

fn version(word: &str) -> Option<CodeVersion> {
    let (major, minor) = word.split_once('.')?;
    Some(CodeVersion { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

fn name(word: &str) -> &str {
    word.split(|letter: char| !(letter.is_alphanumeric() || "_$%".contains(letter))).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn the_head_of_a_module_is_understood() {
        let ptx = read(
            b"//\n// Cuda compilation tools, release 12.4, V12.4.131\n//\n\n.version 8.4\n.target sm_90a, debug\n\
              .address_size 64\n\n.visible .entry _Z3addPf(\n\t.param .u64 p\n)\n.weak .entry second()\n.func helper()\n",
        );
        assert_eq!(ptx.version.unwrap().to_string(), "8.4");
        assert_eq!(ptx.target.unwrap().to_string(), "sm_90a");
        assert!(ptx.debug);
        assert_eq!(ptx.address_bits, Some(64));
        assert_eq!(ptx.kernels, ["_Z3addPf", "second"]);
        assert_eq!(ptx.toolkit.unwrap().to_string(), "12.4.131");
    }

    #[test]
    fn text_that_is_no_ptx_gives_nothing() {
        assert_eq!(read(b"\xff\xfe\n.version\n.target\n.entry"), super::Ptx::default());
    }
}
