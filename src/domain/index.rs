//! Where Python packages come from, as values: index addresses and folders of packages.
//!
//! Invariant: an address is shown only through `redact`, since it may carry a password.

use camino::Utf8PathBuf;

/// The package sources that pip and uv were told to use on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// Addresses of simple indexes, the most wanted first.
    pub simple: Vec<String>,
    /// Folders of packages, searched before any index.
    pub folders: Vec<Utf8PathBuf>,
    /// Whether the user forbade asking an index.
    pub no_index: bool,
}

/// `url` without user name, password and query.
pub fn redact(url: &str) -> String {
    let url = url.split_once('?').map_or(url, |(plain, _)| plain);
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://***@{host}{path}"),
        None => format!("{scheme}://{rest}"),
    }
}

/// Every address in `text` without its password, for words that another tool said.
pub fn redact_text(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        let end = after.find(|c: char| c == '/' || c.is_whitespace() || "'\"`)>".contains(c)).unwrap_or(after.len());
        let (authority, tail) = after.split_at(end);
        clean.push_str(before);
        match authority.rsplit_once('@') {
            Some((_, host)) => {
                clean.push_str("***@");
                clean.push_str(host);
            }
            None => clean.push_str(authority),
        }
        rest = tail;
    }
    clean + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_never_survive() {
        assert_eq!(redact("https://me:secret@host.invalid/simple?token=1"), "https://***@host.invalid/simple");
        assert_eq!(redact("https://me:se@cret@host.invalid"), "https://***@host.invalid");
        assert_eq!(redact("/srv/wheels"), "/srv/wheels");
        let said = "failed at `https://u:p@h.invalid/a@b` and (http://h2.invalid/c)";
        assert_eq!(redact_text(said), "failed at `https://***@h.invalid/a@b` and (http://h2.invalid/c)");
    }
}
