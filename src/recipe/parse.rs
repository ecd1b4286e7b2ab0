//! Text → [`RawRecipe`], with every refusal pointing at its place.
//!
//! The schema number is read first and then exactly one parser runs, so an error is never about another version.

use serde::Deserialize;
use toml::Spanned;

use super::SCHEMA;
use super::raw::RawRecipe;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Snippet, nearest};

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
/// Broken TOML, a missing or unknown schema number, an unknown key, a wrong type: one problem with its place.
pub fn parse(document: Document<'_>) -> Result<RawRecipe, Problem> {
    let first: OnlySchema = toml::from_str(document.text).map_err(|error| translate(document, &error))?;
    match first.schema {
        None => {
            return Err(Problem::new(
                "cuwright::recipe::no_schema",
                Exit::Recipe,
                "the recipe names no schema version",
            )
            .why(format!("{} has no top-level key `schema`", document.origin))
            .help("add `schema = 1` as the first line"));
        }
        Some(schema) if schema.as_ref().as_integer() != Some(SCHEMA) => {
            return Err(Problem::new(
                "cuwright::recipe::unknown_schema",
                Exit::Recipe,
                format!("recipe schema {} is not known to cuwright {}", schema.as_ref(), env!("CARGO_PKG_VERSION")),
            )
            .at(document.snippet(schema.span(), format!("this cuwright reads schema {SCHEMA}")))
            .help("update cuwright if the recipe is newer, or write `schema = 1`"));
        }
        Some(_) => {}
    }
    toml::from_str(document.text).map_err(|error| translate(document, &error))
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
        return Problem::new("cuwright::recipe::not_a_string", Exit::Recipe, format!("`{written}` must be a string"))
            .at(document.snippet(range, label))
            .help(format!("quote it: `\"{written}\"`"));
    }
    if message.contains("expected a sequence") && message.starts_with("invalid type: ") {
        let item = if written.starts_with(['"', '\'']) { written.to_owned() } else { format!("\"{written}\"") };
        return Problem::new("cuwright::recipe::wrong_type", Exit::Recipe, format!("`{written}` must be a list"))
            .at(document.snippet(range, "no list"))
            .help(format!("write it in brackets: `[{item}]`"));
    }
    if let Some(field) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return Problem::new("cuwright::recipe::missing_key", Exit::Recipe, format!("the key `{field}` is missing"))
            .at(document.snippet(range, "in this table"))
            .help(format!("add `{field} = …`; `docs/recipe.md` describes every key"));
    }
    let code = if message.starts_with("invalid type") || message.starts_with("invalid value") {
        "cuwright::recipe::wrong_type"
    } else {
        "cuwright::recipe::broken_toml"
    };
    let first_line = message.lines().next().unwrap_or("the file is no TOML").to_owned();
    Problem::new(code, Exit::Recipe, first_line)
        .at(document.snippet(range, "here"))
        .help("mend the TOML at this place; strings need quotes, tables need `[brackets]`")
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
        parse(Document { origin: "r.toml", text }).expect_err("must be refused")
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
