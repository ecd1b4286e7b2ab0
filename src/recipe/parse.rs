//! Text → [`RawRecipe`], with every refusal pointing at its place.
//!
//! The schema number is read first and then exactly one parser runs, so an error is never about another version.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::SCHEMA;
use super::raw::RawRecipe;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems, Snippet, nearest};

/// A text with the name it goes by in messages.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// File name, or what stands for it.
    pub origin: &'a str,
    /// Content.
    pub text: &'a str,
}

impl Document<'_> {
    /// A snippet of this document.
    pub fn snippet(&self, range: std::ops::Range<usize>, label: impl Into<String>) -> Snippet {
        Snippet { origin: self.origin.to_owned(), text: self.text.to_owned(), range, label: label.into() }
    }
}

#[derive(Deserialize)]
struct OnlySchema {
    schema: Option<Spanned<toml::Value>>,
}

/// Reads a recipe.
///
/// # Errors
/// Broken TOML, a missing or unknown schema number; else every unknown key and wrong type, each with its place.
pub fn parse(document: Document<'_>) -> Result<RawRecipe, Problems> {
    let Read { recipe, problems, .. } = read(document);
    Problems::check(problems)?;
    // Without a problem there is a recipe.
    recipe.ok_or_else(|| broken(document, "the file is no recipe", 0..0).into())
}

/// A recipe as far as it can be read.
#[derive(Debug, Default)]
pub struct Read {
    /// The recipe without its wrong entries; nothing where one of them had to be there.
    pub recipe: Option<RawRecipe>,
    /// What is wrong with them.
    pub problems: Vec<Problem>,
    /// Names of entries that were left out, and those that may have been meant: they are not missing.
    pub left_out: Vec<String>,
}

/// More mistakes of form than this are not looked for in one go.
const MOST: usize = 50;

/// Reads a recipe, and leaves out what is wrong with its form, so that the rest can be judged in the same go.
pub fn read(document: Document<'_>) -> Read {
    let mut read = Read::default();
    let mut table = match DeTable::parse(document.text) {
        Ok(table) => table,
        Err(error) => return Read { problems: vec![translate(document, &error)], ..read },
    };
    if let Err(problem) = schema(document, table.clone()) {
        return Read { problems: vec![problem], ..read };
    }
    for _ in 0..MOST {
        let error = match RawRecipe::deserialize(Deserializer::from(table.clone())) {
            Ok(recipe) => {
                read.recipe = Some(recipe);
                break;
            }
            Err(error) => error,
        };
        let problem = translate(document, &error);
        let missing = missing_field(error.message());
        if missing.is_none_or(|name| !read.left_out.iter().any(|known| known == name)) {
            read.left_out.extend(unknown_field(error.message()).and_then(|(name, legal)| meant(name, &legal)));
            read.problems.push(problem.clone());
        }
        let Some(span) = error.span() else { break };
        let mut mend = Mend { span, text: None, done: None };
        if problem.code() == NOT_A_STRING {
            mend.text = document.text.get(mend.span.clone()).map(str::to_owned);
        }
        mend.table(table.get_mut());
        let Some(name) = mend.done else { break };
        read.left_out.push(name);
    }
    read
}

/// The legal name that a wrong one was meant as.
fn meant(name: &str, legal: &[&str]) -> Option<String> {
    nearest(name, legal.iter().copied()).map(str::to_owned)
}

fn schema(document: Document<'_>, table: Spanned<DeTable<'_>>) -> Result<(), Problem> {
    let first = OnlySchema::deserialize(Deserializer::from(table)).map_err(|error| translate(document, &error))?;
    match first.schema {
        None => Err(Problem::new("cuwright::recipe::no_schema", Exit::Recipe, "the recipe names no schema version")
            .why(format!("{} has no top-level key `schema`", document.origin))
            .help("add `schema = 1` as the first line")),
        Some(schema) if schema.as_ref().as_integer() != Some(SCHEMA) => Err(Problem::new(
            "cuwright::recipe::unknown_schema",
            Exit::Recipe,
            format!("recipe schema {} is not known to cuwright {}", schema.as_ref(), env!("CARGO_PKG_VERSION")),
        )
        .at(document.snippet(schema.span(), format!("this cuwright reads schema {SCHEMA}")))
        .help("update cuwright if the recipe is newer, or write `schema = 1`")),
        Some(_) => Ok(()),
    }
}

/// Takes out the entry that an error points at, or puts a text in the place of a value that should have been one.
struct Mend {
    span: Range<usize>,
    text: Option<String>,
    /// The key of the entry, once it is found.
    done: Option<String>,
}

impl Mend {
    fn table(&mut self, table: &mut DeTable<'_>) {
        let mut gone = None;
        for (key, value) in table.iter_mut() {
            let goes = key.span() == self.span || self.value(value);
            // A text that takes the value's place leaves the entry where it is.
            if goes || self.done.as_ref().is_some_and(String::is_empty) {
                self.done = Some(key.get_ref().to_string());
                gone = goes.then(|| key.clone());
            }
            if self.done.is_some() {
                break;
            }
        }
        if let Some(key) = gone {
            table.remove(&key);
        }
    }

    /// Whether the entry of this value has to go.
    fn value(&mut self, value: &mut Spanned<DeValue<'_>>) -> bool {
        let own = value.span();
        let inside = match value.get_mut() {
            DeValue::Table(table) => {
                self.table(table);
                false
            }
            DeValue::Array(items) => items.iter_mut().any(|item| self.done.is_none() && self.value(item)),
            _ => false,
        };
        if inside || self.done.is_some() || own != self.span {
            return inside;
        }
        match self.text.take() {
            Some(text) => {
                *value.get_mut() = DeValue::String(text.into());
                self.done = Some(String::new());
                false
            }
            None => true,
        }
    }
}

fn translate(document: Document<'_>, error: &toml::de::Error) -> Problem {
    let message = error.message();
    let range = error.span().unwrap_or(0..0);
    if let Some((name, legal)) = unknown_field(message) {
        let mut problem =
            Problem::new("cuwright::recipe::unknown_key", Exit::Recipe, format!("`{name}` is no key of this table"))
                .at(document.snippet(range, "unknown key"));
        if let Some(near) = nearest(name, legal.iter().copied()) {
            problem = problem.help(format!("did you mean `{near}`?"));
        }
        return problem.help(format!("keys here: {}", legal.join(", ")));
    }
    let written = document.text.get(range.clone()).unwrap_or_default();
    if message.contains("expected a string") && message.starts_with("invalid type: ") {
        let label = if message.contains("floating point") { "a number loses its `.0`" } else { "not quoted" };
        return Problem::new(NOT_A_STRING, Exit::Recipe, format!("`{written}` must be a string"))
            .at(document.snippet(range, label))
            .help(format!("quote it: `\"{written}\"`"));
    }
    if message.contains("expected a sequence") && message.starts_with("invalid type: ") {
        let item = if written.starts_with(['"', '\'']) { written.to_owned() } else { format!("\"{written}\"") };
        return Problem::new("cuwright::recipe::wrong_type", Exit::Recipe, format!("`{written}` must be a list"))
            .at(document.snippet(range, "no list"))
            .help(format!("write it in brackets: `[{item}]`"));
    }
    if let Some(field) = missing_field(message) {
        return Problem::new("cuwright::recipe::missing_key", Exit::Recipe, format!("the key `{field}` is missing"))
            .at(document.snippet(range, "in this table"))
            .help(format!("add `{field} = …`; `docs/recipe.md` describes every key"));
    }
    let first_line = message.lines().next().unwrap_or("the file is no TOML");
    if message.starts_with("invalid type") || message.starts_with("invalid value") {
        let problem = Problem::new("cuwright::recipe::wrong_type", Exit::Recipe, first_line);
        return problem.at(document.snippet(range, "here")).help(MEND);
    }
    broken(document, first_line, range)
}

const NOT_A_STRING: &str = "cuwright::recipe::not_a_string";
const MEND: &str = "mend the TOML at this place; strings need quotes, tables need `[brackets]`";

fn broken(document: Document<'_>, message: &str, range: Range<usize>) -> Problem {
    let problem = Problem::new("cuwright::recipe::broken_toml", Exit::Recipe, message);
    problem.at(document.snippet(range, "here")).help(MEND)
}

/// Reads serde's `missing field` sentence; `None` for any other.
fn missing_field(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `")?.strip_suffix('`')
}

/// Reads serde's `unknown field` sentence; `None` for any other.
fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let rest = message.strip_prefix("unknown field `")?;
    let (name, rest) = rest.split_once('`')?;
    let legal = rest.split('`').skip(1).step_by(2).collect();
    Some((name, legal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(text: &str) -> Problem {
        let problems = parse(Document { origin: "r.toml", text }).expect_err("must be refused");
        assert_eq!(problems.iter().count(), 1, "{text}: {problems:?}");
        problems.iter().next().unwrap().clone()
    }

    #[test]
    fn every_mistake_of_form_is_told_and_the_rest_is_read() {
        let text = "schema = 1\n[package]\nnames = \"x\"\n[source]\npath = \".\"\nbranch = \"main\"\n[targets]\n\
                    arch = [8.6, \"9.0\", 10.0]\n[build]\nenv = { A = 1, B = 2 }\nbackend = [\"cmake\"]\n\
                    [[build.heavy]]\nfile = 3\nmemory = \"2 GiB\"\n[matrix]\ntorch = \"2.11.0\"\n";
        let Read { recipe, problems, .. } = read(Document { origin: "r.toml", text });
        let mut places: Vec<&str> = problems.iter().map(|p| &text[p.snippet().unwrap().range.clone()]).collect();
        places.sort_unstable();
        assert_eq!(places, ["\"2.11.0\"", "1", "10.0", "2", "3", "8.6", "[\"cmake\"]", "branch", "names"]);
        assert!(recipe.is_none(), "there is no `name`");
        let Read { recipe, problems, .. } =
            read(Document { origin: "r.toml", text: &text.replace("names =", "name =") });
        assert_eq!(problems.len(), 8);
        let archs: Vec<String> = recipe.unwrap().targets.arch.into_iter().map(Spanned::into_inner).collect();
        assert_eq!(archs, ["8.6", "9.0", "10.0"]);
    }

    const HEAD: &str = "schema = 1\n[package]\nname = \"x\"\n[source]\npath = \".\"\n";

    #[test]
    fn an_unknown_key_names_the_nearest_one() {
        let problem = refuse(&format!("{HEAD}[targets]\narchs = [\"9.0\"]\n"));
        assert_eq!(problem.code(), "cuwright::recipe::unknown_key");
        assert_eq!(problem.mends()[0], "did you mean `arch`?");
        let at = problem.snippet().unwrap();
        assert_eq!(&at.text[at.range.clone()], "archs");
    }

    #[test]
    fn an_unquoted_arch_shows_the_quoted_form() {
        let problem = refuse(&format!("{HEAD}[targets]\narch = [10.0]\n"));
        assert_eq!(problem.code(), "cuwright::recipe::not_a_string");
        assert_eq!(problem.mends()[0], "quote it: `\"10.0\"`");
    }

    #[test]
    fn a_single_value_for_a_list_shows_the_list() {
        for written in ["9.0", "\"9.0\""] {
            let problem = refuse(&format!("{HEAD}[targets]\narch = {written}\n"));
            assert_eq!(problem.mends()[0], "write it in brackets: `[\"9.0\"]`");
        }
    }

    #[test]
    fn the_schema_is_judged_before_anything_else() {
        assert_eq!(refuse("schema = 2\nnew-thing = 1\n").code(), "cuwright::recipe::unknown_schema");
        assert_eq!(refuse("schema = \"1\"\n").code(), "cuwright::recipe::unknown_schema");
        assert_eq!(refuse("[package]\nname = \"x\"\n").code(), "cuwright::recipe::no_schema");
        assert_eq!(refuse("schema = \n").code(), "cuwright::recipe::broken_toml");
    }

    #[test]
    fn the_committed_recipe_schema_is_what_the_code_says() {
        crate::schema_check::<RawRecipe>("schemas/recipe.schema.json");
    }

    #[test]
    fn a_missing_table_is_named() {
        assert_eq!(refuse("schema = 1\n[package]\nname = \"x\"\n").message(), "the key `source` is missing");
    }
}
