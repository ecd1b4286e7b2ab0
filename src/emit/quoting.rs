//! Quoting of one value, a function a reader.

use std::fmt::Write as _;

/// In single quotes, which hold everything but themselves; bare where a shell takes the word as it is.
pub(super) fn sh(value: &str) -> String {
    if is_plain(value) { value.to_owned() } else { format!("'{}'", value.replace('\'', r"'\''")) }
}

/// `.env` readers differ in all but this: bare plain words, and single quotes around anything without one.
pub(super) fn dotenv(value: &str) -> Result<String, String> {
    if is_plain(value) {
        return Ok(value.to_owned());
    }
    if value.contains(['\n', '\r']) {
        return Err("readers of .env files differ in what a line end within a value means".to_owned());
    }
    if value.contains('\'') || value.contains(r"\\") || value.ends_with('\\') || value.contains("${") {
        return Err(r"readers of .env files differ in how `'`, `\\`, a last `\` and `${` are read".to_owned());
    }
    Ok(format!("'{value}'"))
}

/// The inside of double quotes of an `ENV` line.
pub(super) fn docker(value: &str) -> Result<String, String> {
    if value.contains(['\n', '\r']) {
        return Err("a line of a Dockerfile ends the value".to_owned());
    }
    Ok(value.replace('\\', r"\\").replace('"', "\\\"").replace('$', "\\$"))
}

/// A double-quoted scalar in printable ASCII and letters, which YAML 1.1, YAML 1.2 and JSON read alike.
pub(super) fn yaml(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            ' '..='~' => text.push(c),
            c if c.is_alphanumeric() => text.push(c),
            c => {
                let mut units = [0; 2];
                let encoded = c.encode_utf16(&mut units);
                // Beyond the first plane JSON wants two units and YAML wants `\U`; the character itself suits both.
                if let [unit] = encoded {
                    let _ = write!(text, "\\u{unit:04x}");
                } else {
                    text.push(c);
                }
            }
        }
    }
    text.push('"');
    text
}

/// A key as it is, or quoted where it is a word that YAML 1.1 takes for another type.
pub(super) fn yaml_key(name: &str) -> String {
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "_"];
    if words.contains(&name.to_ascii_lowercase().as_str()) { format!("\"{name}\"") } else { name.to_owned() }
}

fn is_plain(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-+:,@%=".contains(&b))
}
