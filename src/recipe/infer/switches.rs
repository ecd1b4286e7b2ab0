//! Private switches of a project: variables that make its build compile its CUDA part without a GPU in sight.
//!
//! Files are read as text, never run. A switch is set only to a value that the project compares its variable with.

use std::collections::BTreeMap;

use regex::Regex;

/// A switch that a source reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// Of the variable or `CMake` option.
    pub name: String,
    /// Where it is read, as `file:line`.
    pub place: String,
    /// What turns it on.
    pub on: On,
}

/// What turns a switch on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum On {
    /// This value, and how the source looks at it.
    Value(String, String),
    /// Nothing needs to be set.
    ByDefault,
    /// Not known: the comparison is not understood.
    Unknown,
}

/// The switches that `files` (name below the tree, text) read, each once, by name.
pub fn in_python(files: &[(String, String)]) -> Vec<Switch> {
    let Some(words) = Words::new() else { return Vec::new() };
    let mut found = BTreeMap::new();
    let texts: Vec<(&str, String)> = files.iter().map(|(name, text)| (name.as_str(), without_comments(text))).collect();
    for (file, text) in &texts {
        for read in words.reads(text) {
            let on = words.judge(text, &read);
            match &read.name {
                Name::Literal(name) => keep(&mut found, name, file, text, read.at, on),
                // A function of the project's own that reads whatever variable it is given.
                Name::Parameter(parameter) => {
                    let Some((function, position)) = words.function(text, read.at, parameter) else { continue };
                    for (file, text) in &texts {
                        for (at, name) in calls(text, &function, position, parameter) {
                            keep(&mut found, &name, file, text, at, on.clone());
                        }
                    }
                }
            }
        }
    }
    found.into_values().collect()
}

/// The options and environment variables of that kind that a `CMakeLists.txt` reads; the options come first.
pub fn in_cmake(file: &str, text: &str) -> (Vec<Switch>, Vec<Switch>) {
    let (mut options, mut variables) = (BTreeMap::new(), BTreeMap::new());
    let option = Regex::new(r#"(?im)^[ \t]*option\s*\(\s*(\w+)\s+"[^"]*"\s*(\w*)"#);
    for found in option.iter().flat_map(|option| option.captures_iter(text)) {
        let (Some(name), default) = (found.get(1), found.get(2).map_or("", |word| word.as_str())) else { continue };
        let on = match default.to_ascii_uppercase().as_str() {
            "" | "OFF" | "NO" | "FALSE" | "0" => On::Value("ON".to_owned(), "an option that is OFF".to_owned()),
            "ON" | "YES" | "TRUE" | "1" => On::ByDefault,
            _ => On::Unknown,
        };
        keep(&mut options, name.as_str(), file, text, name.start(), on);
    }
    let read = Regex::new(r#"ENV\{(\w+)\}"?\s*(?:STREQUAL\s+"?(\w+))?"#);
    for found in read.iter().flat_map(|read| read.captures_iter(text)) {
        let Some(name) = found.get(1) else { continue };
        let on = match found.get(2).map(|value| value.as_str()) {
            Some(value) if is_off(value) => On::Value("1".to_owned(), format!("is off where it is \"{value}\"")),
            Some(value) => On::Value(value.to_owned(), format!("compares it with \"{value}\"")),
            None => On::Value("1".to_owned(), "asks whether it is set".to_owned()),
        };
        keep(&mut variables, name.as_str(), file, text, name.start(), on);
    }
    (options.into_values().collect(), variables.into_values().collect())
}

fn keep(found: &mut BTreeMap<String, Switch>, name: &str, file: &str, text: &str, at: usize, on: On) {
    if !forces(name) {
        return;
    }
    let place = format!("{file}:{}", text[..at].matches('\n').count() + 1);
    let known = found.get(name).is_some_and(|switch| switch.on != On::Unknown);
    if !known {
        found.insert(name.to_owned(), Switch { name: name.to_owned(), place, on });
    }
}

/// Words in a name that make it the opposite, or a choice within the CUDA part.
const OTHER: [&str; 12] =
    ["NO", "NOT", "SKIP", "DISABLE", "DISABLED", "WITHOUT", "ONLY", "CPU", "KEEP", "ROCM", "HIP", "ABI"];
/// What is forced: the last word of such a name.
const PARTS: [&str; 11] =
    ["CUDA", "GPU", "EXT", "EXTS", "EXTENSION", "EXTENSIONS", "OPS", "KERNELS", "BUILD", "COMPILE", "NVCC"];
const VERBS: [&str; 5] = ["WITH", "BUILD", "USE", "ENABLE", "COMPILE"];

/// Whether a variable of this name turns the CUDA part on: `FORCE_CUDA`, `X_FORCE_BUILD`, `BUILD_CUDA_EXT`, `X_WITH_OPS`.
fn forces(name: &str) -> bool {
    let words: Vec<&str> = name.split('_').collect();
    let Some(last) = words.last().filter(|last| PARTS.contains(last)) else { return false };
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    if has(&OTHER) {
        return false;
    }
    let about_cuda = has(&["CUDA", "GPU"]);
    let extension = last.starts_with("EXT") || matches!(*last, "OPS" | "KERNELS");
    has(&["FORCE"]) || about_cuda && (extension || has(&VERBS)) || extension && has(&VERBS)
}

/// Values that mean "no" wherever they are compared.
fn is_off(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "" | "0" | "false" | "off" | "no" | "none" | "n" | "f")
}

/// One look at the environment.
struct Read {
    name: Name,
    /// Where the name stands.
    at: usize,
    /// Where the look begins and ends.
    begin: usize,
    end: usize,
    default: Option<String>,
}

enum Name {
    Literal(String),
    Parameter(String),
}

/// The patterns, made once a look.
struct Words {
    read: Regex,
    member: Regex,
    alias: Regex,
    compared: Regex,
    reversed: Regex,
    assigned: Regex,
    definition: Regex,
}

impl Words {
    fn new() -> Option<Self> {
        let make = |pattern: &str| Regex::new(pattern).ok();
        Some(Self {
            read: make(
                r#"(?:\bgetenv\s*\(|\b(?:environ|ALIAS)\s*\.\s*(?:get|pop|setdefault)\s*\(|\b(?:environ|ALIAS)\s*\[)\s*(?:['"](\w+)['"]|([a-zA-Z_]\w*)\s*[,)\]])"#,
            )?,
            member: make(r#"['"](\w+)['"]\s+(?:not\s+)?in\s+(?:os\s*\.\s*)?environ\b"#)?,
            alias: make(r"(?m)^[ \t]*(\w+)\s*=\s*(?:os\s*\.\s*)?environ[ \t]*$")?,
            compared: make(
                r#"^(?:\s*\)|\s*\.\s*(?:lower|upper|strip|casefold)\s*\(\s*\))*\s*(==|!=|\bnot\s+in\b|\bin\b)\s*(?:([\[({][^\])}]*)|['"]([^'"]*)['"]|(\w+))"#,
            )?,
            reversed: make(r#"['"]([^'"]*)['"]\s*==\s*(?:os\s*\.\s*)?$"#)?,
            assigned: make(r"(?:^|\n)[ \t]*(\w+)(?:\s*:\s*\w+)?\s*=\s*\(?\s*(?:os\s*\.\s*)?$")?,
            definition: make(r"(?m)^[ \t]*def\s+(\w+)\s*\(([^)]*)\)")?,
        })
    }

    fn reads(&self, text: &str) -> Vec<Read> {
        let mut found: Vec<Read> =
            self.member.captures_iter(text).filter_map(|found| Self::membership(&found)).collect();
        // `env = os.environ` and the like: the other name is written out, at the same length or not at all.
        let aliases: Vec<&str> = self.alias.captures_iter(text).filter_map(|c| Some(c.get(1)?.as_str())).collect();
        let alias = if aliases.is_empty() { "environ".to_owned() } else { aliases.join("|") };
        let with_alias = Regex::new(&self.read.as_str().replace("ALIAS", &alias));
        for captures in with_alias.iter().flat_map(|read| read.captures_iter(text)) {
            let Some(whole) = captures.get(0) else { continue };
            let literal = captures.get(1).map(|name| (Name::Literal(name.as_str().to_owned()), name));
            let parameter = captures.get(2).map(|name| (Name::Parameter(name.as_str().to_owned()), name));
            let Some((name, place)) = literal.or(parameter) else { continue };
            let Some(open) = text[whole.start()..place.start()].rfind(['(', '[']) else { continue };
            let open = whole.start() + open;
            let Some(end) = closing(text, open) else { continue };
            let rest = text[end..].trim_start();
            // `os.environ["X"] = …` writes.
            if text[open..].starts_with('[') && rest.starts_with('=') && !rest.starts_with("==") {
                continue;
            }
            let default = text[open + 1..end - 1].split_once(',').map(|(_, default)| {
                default.trim().trim_start_matches("default=").trim_matches([' ', ',', '\'', '"', '\n']).to_owned()
            });
            found.push(Read { name, at: place.start(), begin: whole.start(), end, default });
        }
        found
    }

    fn membership(found: &regex::Captures<'_>) -> Option<Read> {
        let (whole, name) = (found.get(0)?, found.get(1)?);
        let literal = Name::Literal(name.as_str().to_owned());
        // A default of this text marks a question whether the variable is there at all.
        Some(Read {
            name: literal,
            at: name.start(),
            begin: whole.start(),
            end: whole.end(),
            default: Some(THERE.into()),
        })
    }

    fn judge(&self, text: &str, read: &Read) -> On {
        if read.default.as_deref() == Some(THERE) {
            return On::Value("1".to_owned(), "asks whether it is set".to_owned());
        }
        let before = &text[..read.begin];
        let default = read.default.as_deref();
        if let Some(found) = self.comparison(text, &text[read.end..], default) {
            return found;
        }
        if let Some(value) = self.reversed.captures(before).and_then(|found| found.get(1)) {
            return equal(value.as_str(), default);
        }
        if let Some(variable) = self.assigned.captures(before).and_then(|found| found.get(1)) {
            return self.variable(text, read.end, variable.as_str(), default);
        }
        let line = before.rsplit('\n').next().unwrap_or_default();
        if ["int(", "strtobool(", "bool("].iter().any(|call| line.contains(call)) {
            return truth(default, line.contains("int(") || line.contains("strtobool("));
        }
        let asked = ["if ", "elif ", "or ", "and ", "(", "return "];
        let line = line.trim_end().trim_end_matches("os.").trim_end();
        let asks = asked.iter().any(|word| line.ends_with(word.trim_end()));
        let tail = text[read.end..].trim_start_matches([' ', ')']);
        let ends = [":", "\n", "or ", "and "].iter().any(|word| tail.starts_with(word));
        if asks && ends { truth(default, false) } else { On::Unknown }
    }

    /// A comparison right at the start of `tail`.
    fn comparison(&self, text: &str, tail: &str, default: Option<&str>) -> Option<On> {
        let found = self.compared.captures(tail)?;
        let operator = found.get(1)?.as_str();
        let one = found.get(3).map(|value| value.as_str().to_owned());
        let named = found.get(4).map(|word| word.as_str());
        if operator == "==" || operator == "!=" {
            let value =
                one.or_else(|| named.filter(|word| word.bytes().all(|b| b.is_ascii_digit())).map(str::to_owned))?;
            return Some(if operator == "==" { equal(&value, default) } else { unequal(&value, default) });
        }
        let list = match (found.get(2), named) {
            (Some(list), _) => list.as_str().to_owned(),
            (None, Some(name)) => {
                let list = Regex::new(&format!(r"(?m)^[ \t]*{name}\s*=\s*([\[({{][^\])}}]*)")).ok()?;
                list.captures(text)?.get(1)?.as_str().to_owned()
            }
            _ => return None,
        };
        let words: Vec<String> =
            list.split(['\'', '"']).skip(1).step_by(2).map(str::to_owned).filter(|word| !word.is_empty()).collect();
        let off = words.iter().all(|word| is_off(word));
        match (operator == "in", off) {
            (true, false) => {
                let value = words.iter().find(|word| *word == "1").or_else(|| words.iter().find(|w| !is_off(w)))?;
                let by_default = default.is_some_and(|default| words.iter().any(|word| word == default));
                let how = format!("looks for it among {}", words.join(", "));
                Some(if by_default { On::ByDefault } else { On::Value(value.clone(), how) })
            }
            (false, true) => Some(unequal("0", default)),
            _ => Some(On::Unknown),
        }
    }

    /// How a variable of the source's own that holds the value is looked at.
    fn variable(&self, text: &str, after: usize, variable: &str, default: Option<&str>) -> On {
        let Ok(use_of) = Regex::new(&format!(r"\b{variable}\b")) else { return On::Unknown };
        for found in use_of.find_iter(text).filter(|found| found.start() > after) {
            if let Some(on) = self.comparison(text, &text[found.end()..], default) {
                return on;
            }
            let line = text[..found.start()].rsplit('\n').next().unwrap_or_default().trim_end();
            let tail = text[found.end()..].trim_start_matches([' ', ')']);
            let asks = ["if", "elif", "or", "and", "not", "("].iter().any(|word| line.ends_with(word));
            if asks && [":", "or ", "and ", "\n"].iter().any(|word| tail.starts_with(word)) {
                return truth(default, line.contains("int(") || line.contains("strtobool("));
            }
        }
        On::Unknown
    }

    /// The function around `at` whose parameter is called `parameter`, and which one that is.
    fn function(&self, text: &str, at: usize, parameter: &str) -> Option<(String, usize)> {
        let all =
            self.definition.captures_iter(text).filter(|found| found.get(0).is_some_and(|whole| whole.end() <= at));
        let last = all.last()?;
        let names = last.get(2)?.as_str().split(',').map(|one| one.split([':', '=']).next().unwrap_or_default().trim());
        let position = names.into_iter().position(|name| name == parameter)?;
        Some((last.get(1)?.as_str().to_owned(), position))
    }
}

/// Stands for "the source asks whether the variable is there".
const THERE: &str = "\u{0}there";

fn equal(value: &str, default: Option<&str>) -> On {
    if is_off(value) {
        return unequal(value, default);
    }
    if default == Some(value) {
        return On::ByDefault;
    }
    On::Value(value.to_owned(), format!("compares it with \"{value}\""))
}

/// On wherever it is not `value`, which means "no".
fn unequal(value: &str, default: Option<&str>) -> On {
    if !is_off(value) {
        return On::Unknown;
    }
    match default.filter(|default| *default != "None") {
        Some(default) if default != value => On::ByDefault,
        _ => On::Value("1".to_owned(), format!("compares it with \"{value}\"")),
    }
}

/// On wherever Python takes it for true: as a number, or as a text that is not empty.
fn truth(default: Option<&str>, number: bool) -> On {
    let default = default.filter(|default| *default != "None").unwrap_or_default();
    let on = if number { !is_off(default) } else { !default.is_empty() && default != "False" && default != "0" };
    if on { On::ByDefault } else { On::Value("1".to_owned(), "takes it for yes or no".to_owned()) }
}

/// The literals that calls of `function` give as the argument `position` or by the name `parameter`.
fn calls(text: &str, function: &str, position: usize, parameter: &str) -> Vec<(usize, String)> {
    let Ok(call) = Regex::new(&format!(r"\b{function}\s*\(")) else { return Vec::new() };
    let mut found = Vec::new();
    for whole in call.find_iter(text) {
        let open = whole.end() - 1;
        let Some(end) = closing(text, open) else { continue };
        let arguments: Vec<&str> = text[open + 1..end - 1].split(',').map(str::trim).collect();
        let named = arguments.iter().find_map(|one| one.strip_prefix(parameter)?.trim_start().strip_prefix('='));
        let Some(argument) = named.or_else(|| arguments.get(position).copied()).map(str::trim) else { continue };
        let literal = argument.strip_prefix(['\'', '"']).and_then(|rest| rest.strip_suffix(['\'', '"']));
        found.extend(literal.map(|name| (whole.start(), name.to_owned())));
    }
    found
}

/// Where the bracket that opens at `open` has closed.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, c) in text[open..].char_indices() {
        match (quote, c) {
            (Some(q), c) if q == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(open + at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The text with blanks for comments and texts in three quotes; lines stay where they are.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let mut quote: Option<&str> = None;
    while let Some(c) = rest.chars().next() {
        let triple = ["\"\"\"", "'''"].into_iter().find(|triple| rest.starts_with(triple));
        let step = match (quote, triple) {
            (None, Some(triple)) => {
                quote = Some(triple);
                3
            }
            (Some(open), Some(triple)) if open == triple => {
                quote = None;
                3
            }
            (None, None) if c == '#' => rest.find('\n').unwrap_or(rest.len()),
            (None, None) if matches!(c, '"' | '\'') => {
                let line = rest.split('\n').next().unwrap_or_default();
                let end = line[1..].find(c).map_or(line.len(), |end| end + 2);
                plain.push_str(&rest[..end]);
                rest = &rest[end..];
                continue;
            }
            (None, None) => {
                plain.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
            (Some(_), _) => c.len_utf8(),
        };
        plain.extend(rest[..step].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &rest[step..];
    }
    plain
}

#[cfg(test)]
mod tests;
