//! What nvcc was really told: reads the arch flags of a compiler call.
//!
//! This feeds the *effective* column, so it reports what it cannot read instead of passing over it: words that depend
//! on a GPU (`native`), link-time code (`lto_90`), malformed flags.

use super::{Arch, ArchSet, Form, Variant};

/// The archs of a compiler call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effective {
    /// What the flags name.
    pub set: ArchSet,
    /// Arch arguments that name no fixed arch, as written.
    pub unread: Vec<String>,
}

impl Effective {
    fn gencode(&mut self, value: &str) {
        let Some((virtual_arch, codes)) = split_gencode(value) else { return self.unread.push(value.to_owned()) };
        let Some(base) = Arch::from_code(virtual_arch) else { return self.unread.push(value.to_owned()) };
        for code in codes {
            self.code(base, code);
        }
    }

    /// One image. nvcc gives a plain real arch the variant of the virtual one it is made from.
    fn code(&mut self, base: Arch, code: &str) {
        match Arch::from_code(code) {
            Some(arch) if code.starts_with("compute_") => self.set.insert(arch, Form::PTX),
            Some(arch) if arch.variant == Variant::Plain => self.set.insert(arch.with(base.variant), Form::SASS),
            Some(arch) => self.set.insert(arch, Form::SASS),
            None => self.unread.push(code.to_owned()),
        }
    }

    /// `-arch`, with the `-code` of the same call.
    fn arch(&mut self, value: &str, codes: Option<&str>) {
        let Some(base) = Arch::from_code(value) else {
            self.unread.push(value.to_owned());
            return;
        };
        if let Some(codes) = codes {
            for code in unwrap_list(codes) {
                self.code(base, code);
            }
        } else if value.starts_with("compute_") {
            self.set.insert(base, Form::PTX);
        } else {
            self.set.insert(base, Form::BOTH);
            self.set.insert(base.with(Variant::Plain), Form::PTX);
        }
    }
}

/// Reads an argument list, without or with the program in front.
pub fn effective_archs<S: AsRef<str>>(argv: &[S]) -> Effective {
    let mut found = Effective::default();
    let mut arch = None;
    let mut codes = None;
    let mut words = argv.iter().map(AsRef::as_ref);
    while let Some(word) = words.next() {
        if matches!(word, "-Xcompiler" | "--compiler-options" | "-Xptxas" | "-Xlinker" | "-Xarchive" | "-Xnvlink") {
            words.next();
            continue;
        }
        let (name, attached) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let mut value = || attached.or_else(|| words.next());
        match name {
            "-gencode" | "--generate-code" => value().into_iter().for_each(|v| found.gencode(v)),
            "-arch" | "--gpu-architecture" => arch = value(),
            "-code" | "--gpu-code" => codes = value(),
            _ => {}
        }
    }
    if let Some(arch) = arch {
        found.arch(arch, codes);
    }
    found
}

/// Reads one line of a build log. A line that a shell could not split is split at blanks.
pub fn effective_archs_of_line(line: &str) -> Effective {
    let words = shlex::split(line).unwrap_or_else(|| line.split_whitespace().map(str::to_owned).collect());
    effective_archs(&words)
}

/// `arch=compute_80,code=[sm_80,compute_80]` in its two parts.
fn split_gencode(value: &str) -> Option<(&str, Vec<&str>)> {
    let value = value.trim_matches(['"', '\'']);
    let (first, second) = value.split_once(',')?;
    // nvcc takes the two in either order, but `code` first only in its unlisted form.
    let (arch, codes) = match first.split_once('=')? {
        ("arch", arch) => (arch, second.strip_prefix("code=")?),
        ("code", code) => (second.strip_prefix("arch=")?, code),
        _ => return None,
    };
    let listed = codes.starts_with(['[', '"', '\'']);
    let codes = unwrap_list(codes);
    // Several codes without brackets or quotes are fatal to nvcc.
    (listed || codes.len() == 1).then_some((arch, codes))
}

fn unwrap_list(codes: &str) -> Vec<&str> {
    codes.trim_matches(['[', ']', '"', '\'', '\\']).split(',').filter(|code| !code.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> (String, Vec<String>) {
        let found = effective_archs_of_line(text);
        (found.set.to_string(), found.unread)
    }

    #[test]
    fn every_form_of_the_flags_reads() {
        for (text, set) in [
            ("nvcc -gencode arch=compute_80,code=sm_80 -c a.cu", "8.0"),
            ("nvcc -gencode=arch=compute_86,code=compute_86 -gencode=arch=compute_86,code=sm_86", "8.6+PTX"),
            ("nvcc --generate-code=arch=compute_75,code=[sm_75,compute_75]", "7.5+PTX"),
            ("nvcc --generate-code arch=compute_75,code=[sm_75,sm_86]", "7.5;8.6"),
            ("nvcc \"--generate-code=arch=compute_80,code=[compute_80,sm_80]\" x", "8.0+PTX"),
            (r#"nvcc -gencode arch=compute_80,code=\"sm_80,compute_80\""#, "8.0+PTX"),
            ("nvcc -gencode code=sm_80,arch=compute_80", "8.0"),
            ("nvcc -arch=sm_86 a.cu", "8.6+PTX"),
            ("nvcc -arch sm_90a a.cu", "compute_90;9.0a+PTX"),
            ("nvcc --gpu-architecture=compute_80 --gpu-code=sm_80,compute_80", "8.0+PTX"),
            ("nvcc -arch=compute_90", "compute_90"),
            ("nvcc -code=sm_80 -arch=compute_80", "8.0"),
            ("nvcc -gencode arch=compute_100f,code=sm_103", "10.3f"),
            ("nvcc -gencode arch=compute_90,code=sm_90a", "9.0a"),
            ("nvcc a.cu", ""),
            ("g++ -march=native -c a.cpp", ""),
            ("nvcc -Xcompiler -march=native -Xcompiler -arch=sm_50 -arch=sm_75", "7.5+PTX"),
        ] {
            assert_eq!(line(text), (set.to_owned(), Vec::new()), "{text}");
        }
    }

    #[test]
    fn what_names_no_arch_is_reported() {
        assert_eq!(line("nvcc -arch=native").1, ["native"]);
        assert_eq!(line("nvcc -arch=all-major").1, ["all-major"]);
        assert_eq!(line("nvcc -gencode arch=compute_90,code=lto_90").1, ["lto_90"]);
        assert_eq!(line("nvcc -gencode arch=compute_,code=sm_").1, ["arch=compute_,code=sm_"]);
        assert_eq!(line("nvcc -gencode arch=compute_80,code=sm_80,compute_80").1.len(), 1);
        assert_eq!(line("nvcc -arch=sm_Failed").1, ["sm_Failed"]);
    }

    #[test]
    fn a_line_with_an_open_quote_still_reads() {
        assert_eq!(line("[3/9] nvcc -DX='a -gencode arch=compute_80,code=sm_80").0, "8.0");
    }
}
