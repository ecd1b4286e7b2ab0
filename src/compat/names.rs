//! When two spellings of a product name mean the same product.
//!
//! Names match as whole words in order, never by prefix or pattern: `A10` is not `A100`, and `RTX 20…` says nothing.
//! A query may leave out words that do not decide the chip (vendor, line, memory, board form), and only those.

/// Words of a row that a query may leave out.
const OPTIONAL: &[&str] = &[
    "active",
    "accelerator",
    "ac",
    "ada",
    "agx",
    "blackwell",
    "cnx",
    "collectors",
    "converged",
    "design",
    "dgx",
    "dgxs",
    "edition",
    "embedded",
    "fhhl",
    "generation",
    "geforce",
    "gpu",
    "grid",
    "gt",
    "gts",
    "gtx",
    "hbm2e",
    "hbm3",
    "hbm3e",
    "hgx",
    "jetson",
    "laptop",
    "lc",
    "ls",
    "max",
    "nvl",
    "nvl16",
    "oem",
    "pascal",
    "pcie",
    "pro",
    "q",
    "quadro",
    "rtx",
    "server",
    "sff",
    "sxm",
    "sxm2",
    "sxm3",
    "sxm4",
    "sxm5",
    "sxm6",
    "tegra",
    "tesla",
    "with",
    "workstation",
];

/// Words of a query that may be surplus: people add them to products whose name does not carry them.
const SURPLUS: &[&str] = &[
    "agx",
    "card",
    "desktop",
    "edition",
    "geforce",
    "generation",
    "gpu",
    "graphics",
    "hbm2",
    "hbm2e",
    "hbm3",
    "hbm3e",
    "jetson",
    "laptop",
    "max",
    "mobile",
    "nvl",
    "nvlink",
    "pcie",
    "q",
    "quadro",
    "sxm",
    "sxm2",
    "sxm3",
    "sxm4",
    "sxm5",
    "sxm6",
    "tesla",
    "with",
];

/// A name as the words that count, in lower case, without the vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words(Vec<String>);

impl Words {
    /// Splits a name. `RTX4090`, `rtx-4090` and `RTX 4090` give the same words, `80G` and `80 GB` too.
    pub(super) fn of(name: &str) -> Self {
        let lower = name.to_lowercase();
        let mut words: Vec<String> = Vec::new();
        for piece in lower.split(|c: char| !c.is_alphanumeric()) {
            for word in unglue(piece) {
                match words.last_mut() {
                    Some(last) if is_unit(word) && last.bytes().all(|b| b.is_ascii_digit()) => last.push_str("gb"),
                    _ => words.push(memory(word).unwrap_or_else(|| word.to_owned())),
                }
            }
        }
        words.retain(|word| word != "nvidia");
        Self(words)
    }

    /// The words, in order.
    pub(super) fn all(&self) -> &[String] {
        &self.0
    }

    /// Whether no word is left.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this query names `row`: its words in order, of the row only optional ones more, and not optional ones
    /// alone (`RTX` names nothing).
    pub(super) fn names(&self, row: &Self) -> bool {
        let mut wanted = self.0.iter().peekable();
        let rest_is_optional =
            row.0.iter().all(|word| wanted.next_if(|next| *next == word).is_some() || optional(word));
        rest_is_optional && wanted.peek().is_none() && self.0.iter().any(|word| !optional(word))
    }

    /// The query without words that only describe a board; `None` where there are none or nothing else.
    pub(super) fn without_surplus(&self) -> Option<Self> {
        let kept: Vec<String> =
            self.0.iter().filter(|word| !SURPLUS.contains(&word.as_str()) && !is_memory(word)).cloned().collect();
        (!kept.is_empty() && kept.len() < self.0.len()).then_some(Self(kept))
    }

    /// Whether no word tells one product from another, as in `GPU`.
    pub(super) fn decides_nothing(&self) -> bool {
        self.0.iter().all(|word| optional(word))
    }

    /// How many words of this query `row` does not have.
    pub(super) fn missing_in(&self, row: &Self) -> usize {
        self.0.iter().filter(|word| !row.0.contains(word)).count()
    }

    /// One text to measure how far a slip is from a name: the words that are not optional.
    pub(super) fn essence(&self) -> String {
        let words: Vec<&str> = self.0.iter().filter(|word| !optional(word)).map(String::as_str).collect();
        words.join(" ")
    }
}

fn optional(word: &str) -> bool {
    is_memory(word) || OPTIONAL.contains(&word)
}

fn is_unit(word: &str) -> bool {
    matches!(word, "g" | "gb" | "gib")
}

fn is_memory(word: &str) -> bool {
    word.strip_suffix("gb").is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// `80g`, `80gb` and `80gib` as `80gb`.
fn memory(word: &str) -> Option<String> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0 && is_unit(&word[digits..])).then(|| format!("{}gb", &word[..digits]))
}

/// Takes apart what people write together: `rtx4090`, `3080ti`, `teslat4`, `titanxp`.
fn unglue(piece: &str) -> Vec<&str> {
    if piece.is_empty() {
        return Vec::new();
    }
    for line in ["geforce", "tesla", "quadro", "jetson", "titan", "nvidia"] {
        if let Some(rest) = piece.strip_prefix(line).filter(|rest| !rest.is_empty() && *rest != "s") {
            return [vec![line], unglue(rest)].concat();
        }
    }
    for line in ["rtx", "gtx", "gts", "gt"] {
        let number = |rest: &&str| rest.trim_start_matches('a').starts_with(|c: char| c.is_ascii_digit());
        if let Some(rest) = piece.strip_prefix(line).filter(number) {
            return [vec![line], unglue(rest)].concat();
        }
    }
    let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
    if digits >= 3 && matches!(&piece[digits..], "ti" | "super" | "d") {
        return vec![&piece[..digits], &piece[digits..]];
    }
    vec![piece]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(query: &str, row: &str) -> bool {
        Words::of(query).names(&Words::of(row))
    }

    #[test]
    fn spellings_of_one_name_give_the_same_words() {
        for spelling in ["RTX4090", "rtx-4090", "NVIDIA RTX_4090", " rtx  4090"] {
            assert_eq!(Words::of(spelling), Words::of("RTX 4090"), "{spelling}");
        }
        assert_eq!(Words::of("A100 80 GB"), Words::of("a100-80G"));
        assert_eq!(Words::of("GTX 750Ti"), Words::of("gtx 750 ti"));
        assert_eq!(Words::of("RTXA5000"), Words::of("RTX A5000"));
    }

    #[test]
    fn only_words_that_do_not_decide_may_be_left_out() {
        assert!(names("rtx 4090", "NVIDIA GeForce RTX 4090"));
        assert!(names("v100", "Tesla V100-SXM2-16GB"));
        assert!(names("a6000", "RTX A6000"));
        assert!(!names("a10", "A100"));
        assert!(!names("rtx 3080", "GeForce RTX 3080 Ti"));
        assert!(!names("orin nano", "Jetson Nano"));
        assert!(!names("rtx 3050", "GeForce RTX 3050 A Laptop GPU"));
    }

    #[test]
    fn surplus_words_describe_a_board() {
        assert_eq!(Words::of("RTX 4090 24GB").without_surplus(), Some(Words::of("RTX 4090")));
        assert_eq!(Words::of("RTX 4090").without_surplus(), None);
        assert_eq!(Words::of("Tesla").without_surplus(), None);
    }
}
