//! Every vector against what NVIDIA's tools say of it.

use std::collections::BTreeMap;

use fatbin::{Contents, Cubin, Entry, Extractor, Function, Kind, Limits, Listing, Options};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{expected, list, vector};

/// An entry with the fields and words of `header_dump`.
fn header(entry: &Entry) -> Value {
    let mut fields = json!({
        "kind": entry.kind.to_string(),
        "arch": entry.arch.to_string(),
        "code_version": format!("[{},{}]", entry.code_version.major, entry.code_version.minor),
        "host": entry.host.to_string(),
        "compile_size": format!("{}bit", entry.address_bits),
        "compressed": entry.payload.compression != fatbin::Compression::None,
        "compression": entry.compression.to_string(),
    });
    let options = match entry.kind {
        Kind::Ptx => "ptxasOptions",
        Kind::Nvvm => "nvvmOptions",
        _ => "options",
    };
    let texts = [("member", entry.member.as_deref()), ("identifier", entry.identifier.as_deref())];
    // The tool cuts blanks at the end of options.
    let texts = texts.into_iter().chain([(options, entry.options.as_deref().map(str::trim_end))]);
    for (field, text) in texts {
        if let Some(text) = text {
            fields[field] = json!(text);
        }
    }
    if entry.debug {
        fields["has_debug_info"] = json!(true);
    }
    fields
}

/// All cubins of a listing, read deep.
fn cubins(bytes: &[u8], listing: &Listing) -> Vec<Cubin> {
    let mut extractor = Extractor::new(bytes, Limits::default());
    let elf = listing.entries.iter().filter(|entry| entry.kind == Kind::Elf);
    elf.map(|entry| {
        let inspection = extractor.inspect(entry).expect("a whole image");
        assert_eq!(inspection.diagnostics, []);
        match inspection.contents {
            Contents::Cubin(cubin) => cubin,
            other => panic!("{other:?}"),
        }
    })
    .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

#[test]
fn headers_equal_the_tools_header_dump() {
    for (name, file) in expected() {
        let listing = list(&vector(&name));
        assert!(listing.complete, "{name}: {:?}", listing.diagnostics);
        assert_eq!(listing.diagnostics, [], "{name}");
        let found: Vec<Value> = listing.entries.iter().map(header).collect();
        if file["header_dump"] == json!([]) {
            // The tool dumps no headers of a bare cubin.
            let archs = found.iter().map(|entry| entry["arch"].clone()).collect();
            assert_eq!(Value::Array(archs), file["list_elf_arch"], "{name}");
            continue;
        }
        let wanted = file["header_dump"].as_array().expect("an array").clone();
        assert_eq!(Value::Array(found), Value::Array(wanted), "{name}");
    }
}

#[test]
fn kernels_and_their_resources_equal_the_tools() {
    let row = |function: &Function, kernel: bool| {
        let mut row = json!({
            "reg": function.registers.unwrap_or(0),
            "stack": function.stack,
            "shared": function.shared,
            "local": function.local,
        });
        if kernel {
            row["const0"] = json!(function.constant);
        } else {
            // The tool shows 0 for some device functions although their cubin records a number.
            row["reg"] = Value::Null;
        }
        (function.name.clone(), row)
    };
    for (name, file) in expected() {
        let bytes = vector(&name);
        let cubins = cubins(&bytes, &list(&bytes));
        let found: Vec<BTreeMap<String, Value>> = cubins
            .iter()
            .map(|cubin| {
                let kernels = cubin.kernels.iter().map(|function| row(function, true));
                kernels.chain(cubin.device_functions.iter().map(|function| row(function, false))).collect()
            })
            .collect();
        let wanted: Vec<BTreeMap<String, Value>> = file["resource_usage"]
            .as_array()
            .expect("an array")
            .iter()
            .map(|cubin| serde_json::from_value(cubin["functions"].clone()).expect("functions by name"))
            .map(|mut functions: BTreeMap<String, Value>| {
                for row in functions.values_mut().filter(|row| row.get("const0").is_none()) {
                    row["reg"] = Value::Null;
                }
                functions
            })
            .collect();
        assert_eq!(found, wanted, "{name}");
        let names = |functions: &[Function]| {
            let mut names: Vec<String> = functions.iter().map(|function| function.name.clone()).collect();
            names.sort();
            names
        };
        let symbols: Vec<Value> = cubins
            .iter()
            .map(
                |cubin| json!({ "kernels": names(&cubin.kernels), "device_functions": names(&cubin.device_functions) }),
            )
            .collect();
        assert_eq!(Value::Array(symbols), file["symbols"], "{name}");
    }
}

#[test]
fn extracted_images_equal_the_tools_to_the_byte() {
    for (name, file) in expected() {
        let bytes = vector(&name);
        let listing = list(&bytes);
        let mut extractor = Extractor::new(bytes.as_slice(), Limits::default());
        for (kind, field) in [(Kind::Elf, "extracted_elf"), (Kind::Ptx, "extracted_ptx")] {
            let images = listing.entries.iter().filter(|entry| entry.kind == kind);
            let mut found: Vec<(u64, String)> = images
                .map(|entry| {
                    let image = extractor.bytes(entry).expect("a whole image");
                    (image.len() as u64, hex(&Sha256::digest(&image)))
                })
                .collect();
            let mut wanted: Vec<(u64, String)> = file[field]
                .as_array()
                .expect("an array")
                .iter()
                .map(|image| {
                    let digest = image["sha256"].as_str().expect("a digest").to_owned();
                    (image["size"].as_u64().expect("a size"), digest)
                })
                .collect();
            // Files that the tool writes under one name replace each other.
            found.sort();
            wanted.sort();
            assert_eq!(found, wanted, "{name} {field}");
        }
    }
}

#[test]
fn fatbins_start_where_sections_do() {
    for (name, file) in expected() {
        let listing = list(&vector(&name));
        for section in file["sections"].as_array().into_iter().flatten() {
            let (title, start) = (section["name"].as_str().expect("a name"), section["offset"].as_u64());
            if [".nv_fatbin", "__nv_relfatbin"].contains(&title) {
                let first = listing.entries.iter().find(|entry| entry.section.as_deref() == Some(title));
                assert_eq!(first.and_then(|entry| entry.fatbin), start, "{name} {title}");
            }
        }
    }
}

#[test]
fn a_bare_cubin_tells_its_maker_in_both_abis() {
    let shown = |name: &str| {
        let bytes = vector(name);
        let listing = list(&bytes);
        let cubin = cubins(&bytes, &listing).remove(0);
        let toolkit = cubin.producer.toolkit.expect("a toolkit").to_string();
        (cubin.arch.to_string(), cubin.abi, cubin.relocatable, toolkit, cubin.producer.options)
    };
    let options = |text: &str| Some(text.to_owned());
    assert_eq!(shown("v18_sm90a.cubin"), ("sm_90a".into(), 8, false, "13.0.88".into(), options("-arch sm_90a -m 64")));
    assert_eq!(
        shown("v19_rel_sm80.cubin"),
        ("sm_80".into(), 8, true, "13.0.88".into(), options("-arch sm_80 -m 64 -c"))
    );
    assert_eq!(shown("v20_abi7_sm90a.cubin"), ("sm_90a".into(), 7, false, "12.4".into(), None));
}

#[test]
fn reserved_shared_memory_is_told_apart_from_sm_90_on() {
    let bytes = vector("v03_sm90_90a_ptx90a.o");
    for cubin in cubins(&bytes, &list(&bytes)) {
        let kernel = &cubin.kernels[0];
        assert_eq!((kernel.shared, kernel.shared_static()), (1536, 512), "{}", kernel.name);
    }
    let bytes = vector("v01_sm80.o");
    let cubin = cubins(&bytes, &list(&bytes)).remove(0);
    assert_eq!((cubin.kernels[0].shared, cubin.kernels[0].shared_static()), (512, 512));
}

#[test]
fn ptx_tells_version_target_and_kernels() {
    let bytes = vector("v05_sm103a_120_121_ptx120f.o");
    let listing = list(&bytes);
    let entry = listing.entries.iter().find(|entry| entry.kind == Kind::Ptx).expect("PTX");
    let inspection = Extractor::new(bytes.as_slice(), Limits::default()).inspect(entry).expect("whole");
    let Contents::Ptx(ptx) = inspection.contents else { panic!("PTX") };
    assert_eq!(ptx.version.expect("a version").to_string(), "9.0");
    assert_eq!(ptx.target, Some(entry.arch));
    assert_eq!(ptx.kernels, ["k8"]);
    assert_eq!(ptx.address_bits, Some(64));
    // The compiler cuts the comment that would tell.
    assert_eq!(ptx.toolkit, None);
}

#[test]
fn lto_code_is_listed_with_its_options_and_comes_out_as_stored() {
    let bytes = vector("v22_lto90.o");
    let listing = list(&bytes);
    let entry = &listing.entries[0];
    assert!(entry.is_opaque());
    let mut extractor = Extractor::new(bytes.as_slice(), Limits::default());
    assert_eq!(extractor.bytes(entry).expect("whole").len(), 0x7c2);
    assert_eq!(extractor.inspect(entry).expect("whole").contents, Contents::Opaque);
}

#[test]
fn the_copy_of_compat_equals_the_cubins_own() {
    let bytes = vector("v04_sm100a_100f_103.o");
    let listing = list(&bytes);
    let mut extractor = Extractor::new(bytes.as_slice(), Limits::default());
    for entry in &listing.entries {
        let copy = entry.compat.as_deref().expect("sm_100 has one");
        assert_eq!(copy.len(), 0x24);
        let image = extractor.bytes(entry).expect("whole");
        assert!(image.windows(copy.len()).any(|bytes| bytes == copy));
    }
}

/// A cubin in a zstd frame is read in parts; taken out and read as a file of its own, it must say the same.
#[test]
fn reading_in_parts_equals_reading_the_whole() {
    let mut compared = 0;
    for name in expected().keys() {
        let bytes = vector(name);
        let Ok(listing) = fatbin::list(&bytes, &Options::default()) else { continue };
        for entry in listing.entries.iter().filter(|entry| entry.kind == Kind::Elf) {
            let mut extractor = Extractor::new(&bytes, Limits::default());
            let whole = extractor.bytes(entry).expect("vectors are sound");
            let bare = list(&whole);
            let of_whole = Extractor::new(&whole, Limits::default()).inspect(&bare.entries[0]).expect("a cubin");
            let in_parts = extractor.inspect(entry).expect("vectors are sound");
            assert_eq!(in_parts.contents, of_whole.contents, "{name}");
            compared += usize::from(entry.compression == fatbin::Compression::Zstd);
        }
    }
    assert!(compared >= 3, "only {compared} in zstd frames");
}
