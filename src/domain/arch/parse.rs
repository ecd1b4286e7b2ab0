//! The grammar of arch lists: reads what people really write, in every tool's spelling, and never guesses.
//!
//! Separators are blanks, commas and semicolons, in any mix and number; quotes hold a name with blanks together.
//! All wrong items are reported at once, each with its place. Families, GPU names, `native`, `all` and `all-major`
//! come back as items: `targets` resolves them, since that needs facts.

mod number;

use std::ops::Range;

use super::{Arch, Form};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems, Snippet};

/// torch's names of GPU families; what they hold is a fact, see `compat`.
pub const FAMILIES: [&str; 15] = [
    "Kepler",
    "Kepler+Tesla",
    "Maxwell",
    "Maxwell+Tegra",
    "Pascal",
    "Volta",
    "Volta+Tegra",
    "Turing",
    "Ampere",
    "Ampere+Tegra",
    "Ada",
    "Hopper",
    "Blackwell",
    "Blackwell+Tegra",
    "Rubin",
];

/// Words by which other tools mean "look at the GPU" or "decide for me".
const FOREIGN_WORDS: [&str; 6] = ["auto", "common", "default", "detect", "none", "off"];

/// One item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A literal arch.
    Arch(Arch, Form),
    /// A torch family; with PTX of its highest member if so written.
    Family {
        /// The name in torch's spelling.
        name: &'static str,
        /// Whether `+PTX` was written.
        ptx: bool,
    },
    /// A GPU's product name, as written.
    Gpu(String),
    /// The GPUs of this machine.
    Native,
    /// Every arch of the toolkit.
    All,
    /// Every generation of the toolkit.
    AllMajor,
}

/// An item and its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned {
    /// What was written.
    pub item: Item,
    /// Byte range within the list.
    pub range: Range<usize>,
}

/// Where a list was written, which decides how a mistake in it ends the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Flag, variable or file, as shown to the user.
    pub name: String,
    /// Exit code of a mistake.
    pub exit: Exit,
}

impl Origin {
    /// A command-line argument or an environment variable.
    pub fn argument(name: impl Into<String>) -> Self {
        Self { name: name.into(), exit: Exit::Usage }
    }

    /// A recipe.
    pub fn recipe(name: impl Into<String>) -> Self {
        Self { name: name.into(), exit: Exit::Recipe }
    }

    /// Points at `range` of `text`.
    pub fn snippet(&self, text: &str, range: Range<usize>, label: impl Into<String>) -> Snippet {
        Snippet { origin: self.name.clone(), text: text.to_owned(), range, label: label.into() }
    }
}

/// What is wrong with one item.
struct Fault {
    code: &'static str,
    message: String,
    label: String,
    why: Option<String>,
    help: String,
}

const MALFORMED: &str = "cuwright::target::malformed_arch";
const LOST_ZERO: &str = "cuwright::target::lost_zero";

/// Reads a list. An empty list is no error here: the caller knows whether it may be empty.
pub fn parse_list(origin: &Origin, text: &str) -> Result<Vec<Spanned>, Problems> {
    let mut items: Vec<Spanned> = Vec::new();
    let mut problems = Vec::new();
    for (range, word) in tokens(text) {
        match word.and_then(|word| read(&word)) {
            Ok(item) => items.push(Spanned { item, range }),
            Err(fault) => {
                let (fault, range) = join_product(text, &mut items, fault, range);
                let problem = Problem::new(fault.code, origin.exit, fault.message).help(fault.help);
                let problem = fault.why.into_iter().fold(problem, Problem::why);
                problems.push(problem.at(origin.snippet(text, range, fault.label)));
            }
        }
    }
    Problems::check(problems).map(|()| items)
}

type Token = (Range<usize>, Result<String, Fault>);

/// The words of the list with their places; quotes are taken off.
fn tokens(text: &str) -> Vec<Token> {
    let separator = |c: char| c.is_whitespace() || c == ',' || c == ';';
    let mut found = Vec::new();
    let mut rest = 0;
    while let Some(offset) = text[rest..].find(|c| !separator(c)) {
        let start = rest + offset;
        let first = text[start..].chars().next().unwrap_or_default();
        if first == '"' || first == '\'' {
            let inner = start + 1;
            let Some(length) = text[inner..].find(first) else {
                found.push((start..text.len(), Err(unclosed(first))));
                break;
            };
            rest = inner + length + 1;
            found.push((start..rest, Ok(text[inner..inner + length].trim().to_owned())));
        } else {
            rest = text[start..].find(separator).map_or(text.len(), |length| start + length);
            found.push((start..rest, Ok(text[start..rest].to_owned())));
        }
    }
    found.retain(|(_, word)| !matches!(word, Ok(word) if word.is_empty()));
    found
}

fn read(word: &str) -> Result<Item, Fault> {
    let lower = word.to_ascii_lowercase();
    match lower.as_str() {
        "native" => return Ok(Item::Native),
        "all" => return Ok(Item::All),
        "all-major" => return Ok(Item::AllMajor),
        other if FOREIGN_WORDS.contains(&other) => return Err(foreign(word)),
        _ => {}
    }
    let (base, ptx) = lower.strip_suffix("+ptx").map_or((lower.as_str(), false), |base| (base, true));
    if let Some(name) = FAMILIES.iter().find(|name| name.eq_ignore_ascii_case(base)) {
        return Ok(Item::Family { name, ptx });
    }
    if number::looks_like_one(&lower) {
        return number::read(word, &lower).map(|(arch, form)| Item::Arch(arch, form));
    }
    let legal = |c: char| c.is_alphanumeric() || " -_./()+".contains(c);
    if word.starts_with(char::is_alphabetic) && word.chars().all(legal) {
        return Ok(Item::Gpu(word.to_owned()));
    }
    Err(Fault {
        code: MALFORMED,
        message: format!("`{word}` is neither an arch nor a GPU name"),
        label: "not understood".to_owned(),
        why: None,
        help: "write a list like `8.6;9.0+PTX`, a GPU name like `rtx-4090`, or `native`".to_owned(),
    })
}

fn unclosed(quote: char) -> Fault {
    Fault {
        code: MALFORMED,
        message: format!("a name opened with {quote} is not closed"),
        label: "opened here".to_owned(),
        why: None,
        help: format!("close it with {quote}, or write the name with dashes, such as `rtx-4090`"),
    }
}

fn foreign(word: &str) -> Fault {
    Fault {
        code: MALFORMED,
        message: format!("`{word}` is no target"),
        label: "a word of another tool".to_owned(),
        why: Some("what it stands for differs between the tools that know it".to_owned()),
        help: "write `native` for the GPUs of this machine, or name the archs".to_owned(),
    }
}

/// `RTX 4090` without quotes is two words; the number alone is at fault, but the pair is what was meant.
fn join_product(text: &str, items: &mut Vec<Spanned>, fault: Fault, range: Range<usize>) -> (Fault, Range<usize>) {
    let product = text[range.clone()].bytes().take_while(u8::is_ascii_digit).count() >= 4;
    let before = items.last().filter(|last| {
        let gap = &text[last.range.end..range.start];
        matches!(last.item, Item::Gpu(_)) && !gap.is_empty() && gap.chars().all(char::is_whitespace)
    });
    let Some(start) = before.map(|last| last.range.start).filter(|_| product) else { return (fault, range) };
    items.pop();
    let whole = &text[start..range.end];
    let joined = whole.split_whitespace().collect::<Vec<_>>().join("-").to_ascii_lowercase();
    let fault = Fault {
        code: MALFORMED,
        message: format!("`{whole}` is a GPU name with a blank, and blanks separate items"),
        label: "read as two items".to_owned(),
        why: None,
        help: format!("write `{joined}`, or quote it: `\"{whole}\"`"),
    };
    (fault, start..range.end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ArchSet;
    use super::*;

    fn parse(text: &str) -> Result<Vec<Spanned>, Problems> {
        parse_list(&Origin::argument("--arch"), text)
    }

    fn set(text: &str) -> String {
        text.parse::<ArchSet>().unwrap_or_else(|_| panic!("{text}")).to_string()
    }

    fn problem(text: &str) -> Problem {
        let problems = parse(text).expect_err(text);
        assert_eq!(problems.iter().count(), 1, "{text}");
        problems.iter().next().unwrap().clone()
    }

    #[test]
    fn every_spelling_of_an_arch_reads() {
        for (text, canonical) in [
            ("8.6", "8.6"),
            ("86", "8.6"),
            ("75", "7.5"),
            ("120", "12.0"),
            ("12.0", "12.0"),
            ("sm_86", "8.6"),
            ("SM_86", "8.6"),
            ("sm86", "8.6"),
            ("compute_80", "compute_80"),
            ("8.6+PTX", "8.6+PTX"),
            ("8.6+ptx", "8.6+PTX"),
            ("86-real", "8.6"),
            ("86-virtual", "compute_86"),
            ("8.6-virtual", "compute_86"),
            ("90a", "9.0a"),
            ("9.0A", "9.0a"),
            ("10.0f", "10.0f"),
            ("sm_120f", "12.0f"),
            ("sm_90a+PTX", "9.0a+PTX"),
            ("100f-virtual", "compute_100f"),
            ("13.0", "13.0"),
            ("107", "10.7"),
        ] {
            assert_eq!(set(text), canonical, "{text}");
        }
    }

    #[test]
    fn separators_may_be_mixed_and_repeated() {
        assert_eq!(set("8.6, 7.5;;8.6+PTX  7.5"), "7.5;8.6+PTX");
        assert_eq!(set(" ;8.6\n\t9.0; "), "8.6;9.0");
        assert_eq!(set("60;70;80;90"), "6.0;7.0;8.0;9.0");
        assert_eq!(set(""), "");
    }

    #[test]
    fn a_packagers_list_with_duplicates_gives_one_entry_each() {
        let list = "5.2;5.3;6.0;6.1;6.2;7.0;7.0+PTX;7.2;7.2+PTX;7.5;7.5+PTX;8.0;8.0+PTX;8.6;8.6+PTX";
        assert_eq!(set(list), "5.2;5.3;6.0;6.1;6.2;7.0+PTX;7.2+PTX;7.5+PTX;8.0+PTX;8.6+PTX");
        assert_eq!(set("5.2 6.0 6.1 7.0 7.5 8.0 8.6 9.0+PTX"), "5.2;6.0;6.1;7.0;7.5;8.0;8.6;9.0+PTX");
    }

    #[test]
    fn a_lost_zero_is_a_question_never_a_guess() {
        for (text, meant) in
            [("8", "8.0"), ("10", "10.0"), ("12", "12.0"), ("sm_10", "10.0"), ("9+PTX", "9.0+PTX"), ("9PTX", "9.0+PTX")]
        {
            let problem = problem(text);
            assert_eq!(problem.code(), LOST_ZERO, "{text}");
            assert_eq!(problem.exit(), Exit::Usage);
            assert!(problem.mends()[0].contains(&format!("`{meant}`")), "{text}: {:?}", problem.mends());
            assert!(problem.mends()[0].contains("quote"), "{text}");
        }
    }

    #[test]
    fn a_malformed_item_names_the_nearest_legal_form() {
        for (text, nearest) in [
            ("8.60", "`8.6`"),
            ("sm86x", "`sm_86`"),
            ("12.10", "`12.1`"),
            ("75.0", "`7.5`"),
            ("8.6x", "`8.6`"),
            ("8.6(8.0)", "`8.6`"),
            ("8.", "`8.0`"),
            ("8.6.1", "`8.6`"),
            ("8.6+PTX+PTX", "`8.6+PTX`"),
            ("8.6PTX", "`8.6+PTX`"),
            ("9.0-ptx", "`9.0+PTX`"),
            ("sm_86ptx", "`sm_86+PTX`"),
            ("compute_86-real", "`8.6`"),
            ("compute_86+PTX", "`8.6+PTX`"),
            ("1.2", "`12.0`"),
            ("sm_8.6", "`sm_86`"),
            ("4090", "`rtx-4090`"),
            ("auto", "`native`"),
            ("OFF", "`native`"),
            ("86b", "`8.6`"),
        ] {
            let problem = problem(text);
            assert_eq!(problem.code(), MALFORMED, "{text}");
            assert!(problem.mends()[0].contains(nearest), "{text}: {:?}", problem.mends());
            assert_eq!(problem.snippet().map(|s| s.range.clone()), Some(0..text.len()));
        }
    }

    #[test]
    fn all_wrong_items_are_reported_with_their_place() {
        let text = "8.0, 8.60; 9.0a 12";
        let problems = parse(text).unwrap_err();
        let places: Vec<&str> = problems.iter().map(|p| &text[p.snippet().unwrap().range.clone()]).collect();
        assert_eq!(places, ["8.60", "12"]);
    }

    #[test]
    fn names_and_words_come_back_as_items() {
        let items: Vec<Item> = parse("Ampere turing+ptx native all-major 'RTX 4090' rtx-3090,h100 all")
            .unwrap()
            .into_iter()
            .map(|s| s.item)
            .collect();
        let gpu = |name: &str| Item::Gpu(name.to_owned());
        assert_eq!(
            items,
            [
                Item::Family { name: "Ampere", ptx: false },
                Item::Family { name: "Turing", ptx: true },
                Item::Native,
                Item::AllMajor,
                gpu("RTX 4090"),
                gpu("rtx-3090"),
                gpu("h100"),
                Item::All,
            ]
        );
    }

    #[test]
    fn an_unquoted_name_with_a_blank_is_explained() {
        let problem = problem("9.0 RTX 4090");
        assert_eq!(problem.snippet().unwrap().range, 4..12);
        assert!(problem.mends()[0].contains("`rtx-4090`"));
    }

    #[test]
    fn a_recipe_mistake_ends_as_a_recipe_error() {
        let problems = parse_list(&Origin::recipe("cuwright.toml"), "8").unwrap_err();
        assert_eq!(problems.exit(), Exit::Recipe);
    }

    proptest! {
        #[test]
        fn no_text_panics_and_every_place_is_within_it(text in "\\PC{0,40}") {
            if let Err(problems) = parse(&text) {
                for problem in &problems {
                    let range = problem.snippet().unwrap().range.clone();
                    prop_assert!(text.get(range).is_some_and(|at| !at.is_empty()));
                }
            }
        }

        #[test]
        fn number_like_text_never_panics(text in "(sm_|compute_)?[0-9a-f.+\\-() ]{0,12}(\\+PTX|-real|-virtual)?") {
            let _ = parse(&text);
        }
    }
}
