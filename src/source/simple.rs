//! The simple repository API: which files an index has of a project, from its JSON form or its HTML form.
//!
//! Invariant: pure text work. Addresses in a page may be relative to the page.

use serde::Deserialize;

/// What is asked for, the better form first.
pub(super) const ACCEPT: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/// One file of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) sha256: Option<String>,
}

/// Most files of one project; the largest ones of PyPI have some ten thousand.
const MOST: usize = 200_000;

/// The files named by a page at `page_url`; `None` where the page is neither form, or names more than 200,000.
pub(super) fn files(page_url: &str, media_type: &str, body: &[u8]) -> Option<Vec<File>> {
    if media_type.ends_with("json") { json(page_url, body) } else { html(page_url, &String::from_utf8_lossy(body)) }
}

fn json(page_url: &str, body: &[u8]) -> Option<Vec<File>> {
    #[derive(Deserialize)]
    struct Project {
        files: Vec<Listed>,
    }
    #[derive(Deserialize)]
    struct Listed {
        filename: String,
        url: String,
        #[serde(default)]
        hashes: Hashes,
    }
    #[derive(Default, Deserialize)]
    struct Hashes {
        sha256: Option<String>,
    }
    let project: Project = serde_json::from_slice(body).ok()?;
    if project.files.len() > MOST {
        return None;
    }
    let file = |listed: Listed| File {
        url: join(page_url, &listed.url),
        name: listed.filename,
        sha256: listed.hashes.sha256.map(|hash| hash.to_ascii_lowercase()),
    };
    Some(project.files.into_iter().map(file).collect())
}

/// `<a href="../x-1.tar.gz#sha256=…">x-1.tar.gz</a>`, of which only the address matters.
fn html(page_url: &str, text: &str) -> Option<Vec<File>> {
    let lower = text.to_ascii_lowercase();
    if !lower.contains("<a") && !lower.contains("<html") {
        return None;
    }
    let mut found = Vec::new();
    let mut from = 0;
    // Past each `>`, so that every byte is looked at once: a page of nothing but `<a<a<a` must not keep us for hours.
    while let Some(at) = lower[from..].find("<a").map(|at| from + at) {
        let Some(end) = lower[at..].find('>').map(|end| at + end) else { break };
        from = end + 1;
        let Some(address) = attribute(&text[at..end], &lower[at..end], "href=") else { continue };
        if found.len() == MOST {
            return None;
        }
        let address = address.replace("&amp;", "&").replace("&#43;", "+");
        let (address, fragment) = address.split_once('#').unwrap_or((&address, ""));
        let sha256 = fragment.split('&').find_map(|part| part.strip_prefix("sha256=")).map(str::to_ascii_lowercase);
        let last = address.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        found.push(File { name: decode(last), url: join(page_url, address), sha256 });
    }
    Some(found)
}

fn attribute<'a>(tag: &'a str, lower: &str, name: &str) -> Option<&'a str> {
    let value = &tag[lower.find(name)? + name.len()..];
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value[1..].split_once(quote).map(|(inner, _)| inner),
        _ => value.split_whitespace().next(),
    }
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let pair = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        if let Some(byte) = pair.filter(|_| *first == b'%').and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            bytes.push(byte);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `address` as seen from the page. An index's user name and password go along to addresses on the same host.
pub(super) fn join(page_url: &str, address: &str) -> String {
    let Some((scheme, rest)) = page_url.split_once("://") else { return address.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (credentials, host) = authority.rsplit_once('@').map_or(("", authority), |(user, host)| (user, host));
    if let Some((other_scheme, other)) = address.split_once("://") {
        let same = other.split('/').next() == Some(host) && other_scheme == scheme && !credentials.is_empty();
        return if same { format!("{scheme}://{credentials}@{other}") } else { address.to_owned() };
    }
    if let Some(other) = address.strip_prefix("//") {
        return format!("{scheme}://{other}");
    }
    let mut parts: Vec<&str> = if address.starts_with('/') { Vec::new() } else { path.split('/').collect() };
    if !parts.is_empty() {
        parts.pop();
    }
    for part in address.split('/').filter(|part| !part.is_empty()) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let path: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{scheme}://{authority}/{}", path.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_name_the_same_file() {
        let page = "http://i.invalid/simple/x/";
        let body = br#"{"files":[{"filename":"x-1.tar.gz","url":"../../f/x-1.tar.gz","hashes":{"sha256":"AB"}}]}"#;
        let json = files(page, "application/vnd.pypi.simple.v1+json", body).unwrap();
        let body = b"<!DOCTYPE html><html><A rel=x HREF='../../f/x-1.tar.gz#sha256=ab'>x</A><a name=y>";
        let html = files(page, "text/html", body).unwrap();
        assert_eq!(json, html);
        assert_eq!(json[0].url, "http://i.invalid/f/x-1.tar.gz");
        assert_eq!(files(page, "text/html", b"nonsense"), None);
        assert_eq!(files(page, "application/json", b"{}"), None);
    }

    #[test]
    fn a_page_made_to_keep_us_is_read_once() {
        let page = "http://i.invalid/simple/x/";
        let read = |body: &str| files(page, "text/html", body.as_bytes()).map(|files| files.len());
        let watch = crate::sys::clock::Stopwatch::start();
        for tag in ["<a", "<a ", "<a href=", "<a href='", "<a\u{130}", "<a <A"] {
            assert_eq!(read(&tag.repeat(500_000)), Some(0), "{tag}");
            let closed = tag.repeat(500_000) + ">";
            assert!(read(&closed).is_some_and(|count| count < 2), "{tag}");
        }
        assert!(watch.elapsed().as_secs() < 60, "{:?}", watch.elapsed());
        assert_eq!(read(&"<a href=x>".repeat(MOST)), Some(MOST));
        assert_eq!(read(&"<a href=x>".repeat(MOST + 1)), None);
        let listed = r#"{"filename":"x","url":"x"},"#.repeat(MOST) + r#"{"filename":"x","url":"x"}"#;
        assert_eq!(files(page, "application/json", format!(r#"{{"files":[{listed}]}}"#).as_bytes()), None);
    }

    #[test]
    fn addresses_are_seen_from_their_page() {
        let page = "http://u:p@h.invalid/simple/x/";
        assert_eq!(join(page, "http://h.invalid/f"), "http://u:p@h.invalid/f");
        assert_eq!(join(page, "http://other.invalid/f"), "http://other.invalid/f");
        assert_eq!(join(page, "/f/g"), "http://u:p@h.invalid/f/g");
        assert_eq!(join(page, "g?a=b"), "http://u:p@h.invalid/simple/x/g?a=b");
        assert_eq!(join(page, "../../../../g"), "http://u:p@h.invalid/g");
        assert_eq!(join(page, "//c.invalid/g"), "http://c.invalid/g");
        assert_eq!(decode("a%2Bb%zz%"), "a+b%zz%");
    }
}
