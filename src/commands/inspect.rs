//! `inspect`: the GPU code of finished files, without a toolkit.

use fatbin::{Contents, Entry, Extractor, Kind, Limits, Listing, Options};
use serde_json::{Value, json};

use super::World;
use crate::cli::inspect::InspectArgs;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::ui::style::{bytes, count, table};
use crate::verify::input;
use crate::verify::site::ExtensionFile;

pub(super) fn inspect(args: &InspectArgs, world: &World<'_>) -> Result<Exit, Problems> {
    let mut problems = Vec::new();
    let mut documents = Vec::new();
    for path in &args.files {
        let opened = match input::open(&world.env.absolute(path), path.as_str()) {
            Ok(opened) => opened,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        for input in &opened {
            for file in &input.files {
                let shown = ExtensionFile { name: input.label(file), path: file.path.clone() };
                match one(&shown, args) {
                    Ok(document) if world.json() => documents.push(document),
                    Ok(document) => world.printer.data(&text(&document)),
                    Err(problem) => problems.push(problem),
                }
            }
            if input.files.is_empty() && !world.json() {
                world.printer.data(&format!("{}: no extension file inside", input.name));
            }
        }
    }
    if world.json() {
        world.printer.data(&serde_json::to_string_pretty(&documents).unwrap_or_default());
    }
    Problems::check(problems)?;
    Ok(Exit::Ok)
}

fn unreadable(file: &ExtensionFile, why: &impl ToString) -> Problem {
    Problem::new("cuwright::verify::unreadable_file", Exit::Verify, format!("{} cannot be read", file.name))
        .why(why.to_string())
        .help("files that can hold GPU code are ELF, PE, static archives, fatbins, cubins and wheels")
}

/// One file as JSON; the text form is made from it, so the two cannot disagree.
fn one(file: &ExtensionFile, args: &InspectArgs) -> Result<Value, Problem> {
    let opened = fs_err::File::open(&file.path).map_err(|error| unreadable(file, &error))?;
    let options = Options::default().scan_all(args.scan_all);
    let listing = fatbin::list(opened.file(), &options).map_err(|error| unreadable(file, &error))?;
    let mut extractor = Extractor::new(opened.file(), Limits::default());
    let entries: Vec<Value> =
        listing.entries.iter().map(|entry| entry_json(entry, args.kernels.then_some(&mut extractor))).collect();
    let diagnostics: Vec<String> = listing.diagnostics.iter().map(ToString::to_string).collect();
    Ok(json!({
        "file": file.name,
        "format": listing.format,
        "complete": listing.complete,
        "archs": per_arch(&listing),
        "entries": entries,
        "diagnostics": diagnostics,
    }))
}

fn entry_json(entry: &Entry, extractor: Option<&mut Extractor<&std::fs::File>>) -> Value {
    let mut json = json!({
        "member": entry.member.as_deref(),
        "section": entry.section.as_deref(),
        "offset": entry.offset,
        "kind": entry.kind.to_string(),
        "arch": entry.arch.to_string(),
        "compression": entry.compression.to_string(),
        "stored-bytes": entry.payload.stored_size,
        "bytes": entry.unpacked_size(),
        "identifier": entry.identifier,
        "truncated": entry.truncated,
    });
    let Some(extractor) = extractor.filter(|_| entry.kind != Kind::Concatenated) else { return json };
    match extractor.inspect(entry) {
        Ok(inspection) => match inspection.contents {
            Contents::Cubin(cubin) => json["kernels"] = json!(cubin.kernels),
            Contents::Ptx(ptx) => json["ptx"] = json!(ptx),
            _ => {}
        },
        Err(error) => json["error"] = json!(error.to_string()),
    }
    json
}

/// Stored bytes per arch and kind, in the order of the archs' numbers.
fn per_arch(listing: &Listing) -> Vec<Value> {
    let mut sums: std::collections::BTreeMap<(u32, String), (u64, usize)> = std::collections::BTreeMap::new();
    for image in listing.images() {
        let name = if image.kind == Kind::Ptx { image.arch.to_virtual() } else { image.arch.to_string() };
        let sum = sums.entry((image.arch.number, name)).or_default();
        sum.0 += image.image.map_or(image.payload.stored_size, |image| image.size);
        sum.1 += 1;
    }
    sums.into_iter()
        .map(|((_, arch), (bytes, images))| json!({ "arch": arch, "images": images, "bytes": bytes }))
        .collect()
}

fn text(document: &Value) -> String {
    let string = |value: &Value, name: &str| value[name].as_str().unwrap_or("-").to_owned();
    let number = |value: &Value, name: &str| value[name].as_u64().unwrap_or(0);
    let list = |name: &str| document[name].as_array().cloned().unwrap_or_default();
    let (archs, entries) = (list("archs"), list("entries"));
    let mut lines = vec![string(document, "file")];
    if entries.is_empty() {
        lines.push("  no device code".to_owned());
    }
    let mut rows = Vec::new();
    for arch in &archs {
        let images = usize::try_from(number(arch, "images")).unwrap_or(usize::MAX);
        rows.push(vec![format!("  {}", string(arch, "arch")), count(images, "image"), bytes(number(arch, "bytes"))]);
    }
    if !rows.is_empty() {
        lines.push(table(&rows));
        let head = ["  SECTION", "KIND", "ARCH", "COMPRESSION", "STORED", "UNPACKED", "KERNELS"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for entry in &entries {
            let kernels = entry["kernels"].as_array();
            rows.push(vec![
                format!("  {}", entry["member"].as_str().map_or_else(|| string(entry, "section"), str::to_owned)),
                string(entry, "kind"),
                string(entry, "arch"),
                string(entry, "compression"),
                bytes(number(entry, "stored-bytes")),
                bytes(number(entry, "bytes")),
                kernels.map_or_else(String::new, |kernels| kernels.len().to_string()),
            ]);
            for kernel in kernels.into_iter().flatten() {
                let registers = kernel["registers"].as_u64().map_or_else(|| "?".to_owned(), |n| n.to_string());
                rows.push(vec![format!(
                    "    {} registers {registers}, stack {}, shared {}, constant {}, local {}",
                    string(kernel, "name"),
                    number(kernel, "stack"),
                    number(kernel, "shared"),
                    number(kernel, "constant"),
                    number(kernel, "local"),
                )]);
            }
        }
        lines.push(spread(&rows));
    }
    for diagnostic in list("diagnostics") {
        lines.push(format!("  warning: {}", diagnostic.as_str().unwrap_or_default()));
    }
    lines.join("\n")
}

/// A table in which rows of one cell run over the columns.
fn spread(rows: &[Vec<String>]) -> String {
    let full: Vec<Vec<String>> = rows.iter().filter(|row| row.len() > 1).cloned().collect();
    let rendered = table(&full);
    let mut columns = rendered.lines();
    let line =
        |row: &Vec<String>| if row.len() > 1 { columns.next().unwrap_or_default().to_owned() } else { row[0].clone() };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
