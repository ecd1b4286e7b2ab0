//! Prints the GPU code of a file: `cargo run --example inspect -- libfoo.so`.
//!
//! One line per image; with `--deep` also its kernels and their resources, with `--scan` also code in sections where no
//! loader looks, with `--extract N` the bytes of image N to standard output.

use std::io::{self, Write};

use fatbin::{Contents, Entry, Extractor, Inspection, Limits, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let Some(path) = arguments.iter().find(|argument| !argument.starts_with("--")) else {
        return Err("usage: inspect [--deep] [--scan] [--extract=N] FILE".into());
    };
    let file = fs_err::File::open(path)?;
    let listing = fatbin::list(file.file(), &Options::default().scan_all(flag("--scan")))?;
    let mut extractor = Extractor::new(file.file(), Limits::default());
    let mut out = io::BufWriter::new(io::stdout().lock());
    if let Some(index) = arguments.iter().find_map(|argument| argument.strip_prefix("--extract=")) {
        let entry = listing.entries.get(index.parse::<usize>()?).ok_or("no such image")?;
        out.write_all(&extractor.bytes(entry)?)?;
        return Ok(out.flush()?);
    }
    for (index, entry) in listing.entries.iter().enumerate() {
        print_entry(&mut out, index, entry)?;
        if flag("--deep") {
            match extractor.inspect(entry) {
                Ok(inspection) => print_inspection(&mut out, &inspection)?,
                Err(error) => writeln!(out, "      {error}")?,
            }
        }
    }
    for diagnostic in &listing.diagnostics {
        writeln!(out, "note: {diagnostic}")?;
    }
    Ok(out.flush()?)
}

fn print_entry(out: &mut impl Write, index: usize, entry: &Entry) -> io::Result<()> {
    let place = [entry.member.as_deref(), entry.section.as_deref(), entry.identifier.as_deref()];
    let place: Vec<&str> = place.into_iter().flatten().collect();
    writeln!(
        out,
        "{index:5} {:18} {:9} {:5} {:9} {:>10} bytes  {}",
        entry.kind,
        entry.arch,
        entry.code_version,
        entry.compression,
        entry.unpacked_size(),
        place.join(" ")
    )
}

fn print_inspection(out: &mut impl Write, inspection: &Inspection) -> io::Result<()> {
    match &inspection.contents {
        Contents::Cubin(cubin) => {
            for kernel in &cubin.kernels {
                writeln!(
                    out,
                    "      {} registers, {} stack, {} shared, {} constant, {} local: {}",
                    kernel.registers.map_or_else(|| "?".to_owned(), |count| count.to_string()),
                    kernel.stack,
                    kernel.shared_static(),
                    kernel.constant,
                    kernel.local,
                    kernel.name
                )?;
            }
        }
        Contents::Ptx(ptx) => {
            for kernel in &ptx.kernels {
                writeln!(out, "      {kernel}")?;
            }
        }
        _ => {}
    }
    for diagnostic in &inspection.diagnostics {
        writeln!(out, "      note: {diagnostic}")?;
    }
    Ok(())
}
