//! `inspect`: the GPU code of finished files, without a toolkit.

use camino::Utf8Path;

use super::World;
use crate::cli::inspect::InspectArgs;
use crate::domain::exit::Exit;
use crate::domain::problem::Problems;
use crate::pipeline::judge;
use crate::ui::style::{bytes, count, table};
use crate::verify::abi::demangle;
use crate::verify::input::{self, Opened};
use crate::verify::inspect::{Inspected, Row, Wish, inspect as read};

pub(super) fn inspect(args: &InspectArgs, world: &World<'_>) -> Result<Exit, Problems> {
    let (mut problems, mut documents, mut inputs): (Vec<_>, Vec<_>, Vec<Opened>) = Default::default();
    for path in &args.files {
        for opened in input::open(&world.env.absolute(path), path.as_str()) {
            match opened {
                Ok(opened) => inputs.push(opened),
                Err(unopened) => problems.push(unopened.problem),
            }
        }
    }
    if let Some(name) = &args.package {
        let root = world.cache_root().ok();
        let python = judge::interpreter(args.python.as_deref(), world.env, root.as_deref());
        match python.and_then(|python| judge::package(name, &python)) {
            Ok(opened) => inputs.push(opened),
            Err(problem) => problems.push(problem),
        }
    }
    let many = inputs.iter().map(|input| input.files.len()).sum::<usize>() > 1;
    let into = args.extract.as_ref().map(|folder| world.env.absolute(folder));
    for input in &inputs {
        for file in &input.files {
            // Several files must not write over one another.
            let folder = into.as_ref().map(|into| if many { into.join(relative(&file.name)) } else { into.clone() });
            let wish = Wish { kernels: args.kernels, scan_all: args.scan_all, extract: folder.as_deref() };
            match read(file, &input.label(file), wish) {
                Ok(document) if world.json() => documents.push(document),
                Ok(document) => world.printer.data(&text(&document, args.summary)),
                Err(problem) => problems.push(problem),
            }
        }
        if input.files.is_empty() && !world.json() {
            world.printer.data(&format!("{}: no extension file inside", input.name));
        }
    }
    if world.json() {
        world.printer.data(&serde_json::to_string_pretty(&documents).unwrap_or_default());
    }
    Problems::check(problems)?;
    Ok(Exit::Ok)
}

/// A path below a folder, whatever it was.
fn relative(name: &str) -> String {
    let parts = Utf8Path::new(name).components().map(|part| part.as_str());
    parts.filter(|part| !matches!(*part, "/" | "." | "..")).collect::<Vec<_>>().join("/")
}

fn text(document: &Inspected, summary: bool) -> String {
    let images = document.archs.iter().map(|share| share.images).sum();
    let mut lines = vec![format!(
        "{}: {}",
        document.file,
        if images == 0 { "no device code".to_owned() } else { count(images, "image") }
    )];
    if !document.archs.is_empty() {
        let mut rows = vec![["  ARCH", "IMAGES", "UNPACKED", "DROPPING IT SAVES"].map(str::to_owned).to_vec()];
        for share in &document.archs {
            let part = share.saves.saturating_mul(100).checked_div(document.bytes).unwrap_or(0);
            let saves = format!("{} ({part} %)", bytes(share.saves));
            rows.push(vec![format!("  {}", share.arch), share.images.to_string(), bytes(share.unpacked), saves]);
        }
        lines.push(table(&rows));
    }
    if !summary && !document.entries.is_empty() {
        lines.push(entries(document));
    }
    lines.extend(document.diagnostics.iter().map(|diagnostic| format!("  warning: {diagnostic}")));
    lines.join("\n")
}

fn entries(document: &Inspected) -> String {
    let member = document.entries.iter().any(|row| row.member.is_some());
    let named = document.entries.iter().any(|row| row.identifier.is_some());
    let head = ["SECTION", "KIND", "ARCH", "VERSION", "COMPRESSION", "STORED", "UNPACKED", "KERNELS"];
    let mut rows = vec![cells("#", member.then_some("MEMBER"), &head.map(str::to_owned), named.then_some("SOURCE"))];
    let mut below: Vec<Vec<String>> = vec![Vec::new()];
    for row in &document.entries {
        let middle = [
            row.section.clone().unwrap_or_else(|| "-".to_owned()),
            row.kind.clone(),
            row.arch.clone(),
            row.code_version.clone(),
            row.compression.clone(),
            if row.stored_bytes == 0 { "-".to_owned() } else { bytes(row.stored_bytes) },
            bytes(row.bytes),
            row.kernel_count.map_or_else(|| "-".to_owned(), |count| count.to_string()),
        ];
        let member = member.then(|| row.member.as_deref().unwrap_or("-"));
        let source = named.then(|| row.identifier.as_deref().unwrap_or("-"));
        rows.push(cells(&row.index.to_string(), member, &middle, source));
        below.push(notes(row));
    }
    let columns = table(&rows);
    let lines = columns.lines().zip(below).flat_map(|(line, notes)| std::iter::once(line.to_owned()).chain(notes));
    lines.collect::<Vec<_>>().join("\n")
}

fn cells(index: &str, member: Option<&str>, middle: &[String], source: Option<&str>) -> Vec<String> {
    let first = std::iter::once(format!("  {index}")).chain(member.map(str::to_owned));
    first.chain(middle.iter().cloned()).chain(source.map(str::to_owned)).collect()
}

/// What stands below an entry: its kernels, and why it could not be read.
fn notes(row: &Row) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for kernel in row.kernels.iter().flatten() {
        let name = demangle(&kernel.name);
        notes.push(match &kernel.resources {
            Some(needs) => {
                let registers = needs.registers.map_or_else(|| "?".to_owned(), |registers| registers.to_string());
                format!(
                    "      {name}: registers {registers}, stack {}, shared {}, constant {}, local {}",
                    needs.stack, needs.shared, needs.constant, needs.local
                )
            }
            None => format!("      {name}"),
        });
    }
    notes.extend(row.error.iter().map(|error| format!("      error: {error}")));
    if row.truncated {
        notes.push("      cut off by the end of the file".to_owned());
    }
    notes
}
