//! The files around fatbins: archives of all makes, objects without tables, Windows files, odd sections.

use fatbin::{Error, Format, FoundBy, Options, Problem};

use crate::build::{Entry, coff_object, elf, fatbin, member, member_header, pe};
use crate::support::{fatbin_sm80, list, problems, shown, vector};

fn members(bytes: &[u8]) -> Vec<String> {
    list(bytes).entries.iter().map(|entry| entry.member.as_deref().unwrap_or("-").to_owned()).collect()
}

#[test]
fn gnu_long_names_and_members_that_are_no_objects() {
    let object = vector("v01_sm80.o");
    let mut archive = b"!<arch>\n".to_vec();
    archive.extend(member("/", &[0; 4]));
    archive.extend(member("//", b"a_name_longer_than_sixteen.o/\nanother_of_that_length.o/\n"));
    archive.extend(member("readme.txt/", b"odd"));
    archive.extend(member("/30", &object));
    archive.extend(member("/0", &object));
    archive.extend(member("/999", &object));
    archive.extend(member("bare.fatbin/", &vector("v17_a.fatbin")));
    archive.extend(member("bare.cubin/", &vector("v18_sm90a.cubin")));
    let listing = list(&archive);
    assert_eq!(listing.format, Format::Archive);
    assert_eq!(
        members(&archive),
        ["another_of_that_length.o", "a_name_longer_than_sixteen.o", "?", "bare.fatbin", "bare.fatbin", "bare.cubin"]
    );
    assert_eq!(listing.diagnostics[0].problem, Problem::MemberSkipped);
    assert_eq!(listing.diagnostics[0].member.as_deref(), Some("readme.txt"));
    assert_eq!(listing.diagnostics.len(), 2);
}

#[test]
fn bsd_names_stand_in_front_of_the_data() {
    let object = [b"long file name.o\0\0\0\0".as_slice(), &vector("v01_sm80.o")].concat();
    let symbols = b"__.SYMDEF SORTED\0\0\0\0\x08\0\0\0";
    let mut archive = b"!<arch>\n".to_vec();
    archive.extend(member("#1/20", symbols));
    archive.extend(member("#1/20", &object));
    archive.extend(member("#1/9999999", &[0; 10]));
    let listing = list(&archive);
    assert_eq!(members(&archive), ["long file name.o"]);
    assert_eq!(shown(&listing), ["elf sm_80"]);
    assert_eq!(listing.diagnostics.len(), 1);
}

#[test]
fn members_of_a_thin_archive_are_named_for_the_caller_to_open() {
    let mut archive = b"!<thin>\n".to_vec();
    archive.extend(member("//", b"sub/dir/object_one.o/\nb.o/\n"));
    archive.extend(member_header("/0", 14280));
    archive.extend(member_header("/22", 9999));
    archive.extend(member_header("c.o/", 1));
    let listing = list(&archive);
    assert_eq!(listing.format, Format::ThinArchive);
    assert_eq!(listing.external, ["sub/dir/object_one.o", "b.o", "c.o"]);
    assert!(!listing.complete);
}

#[test]
fn an_archive_whose_writer_did_not_pad_is_followed() {
    let mut archive = b"!<arch>\n".to_vec();
    archive.extend(member_header("odd/", 3));
    archive.extend(b"odd");
    archive.extend(member("v01.o/", &vector("v01_sm80.o")));
    assert_eq!(members(&archive), ["v01.o"]);
}

#[test]
fn a_damaged_or_nested_archive_keeps_what_came_before() {
    let object = vector("v01_sm80.o");
    let mut archive = b"!<arch>\n".to_vec();
    archive.extend(member("first.o/", &object));
    archive.extend(member("nested.a/", b"!<arch>\n"));
    archive.extend(member_header("huge.o/", 9_999_999_999));
    archive.extend(&object[..10_000]);
    let listing = list(&archive);
    assert_eq!(shown(&listing), ["elf sm_80", "elf sm_80"]);
    assert!(listing.diagnostics.iter().any(|found| matches!(found.problem, Problem::Archive { .. })));
    assert!(!listing.complete);
}

#[test]
fn an_object_without_section_table_is_searched() {
    let whole = vector("v15_two_stripped.so");
    let wanted = shown(&list(&whole));
    let mut bytes = whole.clone();
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    let listing = list(&bytes);
    assert_eq!(shown(&listing), wanted);
    assert_eq!(problems(&listing), [Problem::NoSectionTable]);
    assert!(listing.entries.iter().all(|entry| entry.found_by == FoundBy::Scan && entry.section.is_none()));
    assert!(listing.complete);

    let mut count_zero = whole;
    count_zero[60..64].fill(0);
    // The first section's size stands for the count then, and it is zero too.
    assert_eq!(shown(&list(&count_zero)), wanted);
}

#[test]
fn a_truncated_object_loses_its_table_but_not_its_code() {
    let whole = vector("v15_two_stripped.so");
    let wanted = shown(&list(&whole));
    let listing = list(&whole[..whole.len() - 1]);
    assert_eq!(shown(&listing), wanted);
    assert_eq!(problems(&listing), [Problem::SectionTableOutside]);
    assert!(!listing.complete);
}

#[test]
fn windows_files_are_read_with_short_and_long_section_names() {
    let padded = [fatbin_sm80(), vec![0; 512], fatbin_sm80(), vec![0; 8]].concat();
    let relocatable = fatbin(&[Entry::new(1, 90, b"x")]);
    let dll = pe(&[(".text", &[1; 64]), ("__nv_rel", &relocatable), (".nv_fatb", &padded), (".nvFatBi", &[2; 24])]);
    let listing = list(&dll);
    assert_eq!(listing.format, Format::Pe);
    assert_eq!(shown(&listing), ["elf sm_80", "elf sm_80", "ptx sm_90"]);
    assert_eq!(listing.entries[0].section.as_deref(), Some(".nv_fatb"));
    assert_eq!(listing.diagnostics, []);

    let object = coff_object(".nv_fatbin", &fatbin_sm80());
    let listing = list(&object);
    assert_eq!(listing.format, Format::Coff);
    assert_eq!(shown(&listing), ["elf sm_80"]);
    assert_eq!(listing.entries[0].section.as_deref(), Some(".nv_fatbin"));
}

#[test]
fn other_sections_are_searched_on_request_only_and_marked() {
    let fatbin_in_data = [&b"some text "[..], &fatbin_sm80(), &[0; 8], &fatbin_sm80(), &[7; 100]].concat();
    let plain = fatbin_sm80();
    let host = elf(&[(".cask_resource", 1, &fatbin_in_data), (".nv_fatbin", 1, &plain), (".bss", 8, &[])]);
    assert_eq!(shown(&list(&host)), ["elf sm_80"]);
    let listing = fatbin::list(host.as_slice(), &Options::default().scan_all(true)).expect("an ELF");
    let places: Vec<_> =
        listing.entries.iter().map(|entry| (entry.section.as_deref().expect("a section"), entry.found_by)).collect();
    let scanned = (".cask_resource", FoundBy::Scan);
    assert_eq!(places, [(".nv_fatbin", FoundBy::Format), scanned, scanned]);
    assert_eq!(listing.diagnostics, []);
}

#[test]
fn the_magic_alone_is_no_fatbin() {
    let lookalikes = [&[0x50, 0xed, 0x55, 0xba].repeat(100)[..], &fatbin_sm80()].concat();
    let host = elf(&[(".rodata", 1, &lookalikes)]);
    let listing = fatbin::list(host.as_slice(), &Options::default().scan_all(true)).expect("an ELF");
    assert_eq!(shown(&listing), ["elf sm_80"]);
}

#[test]
fn a_split_debug_file_has_names_without_bytes() {
    let host = elf(&[(".nv_fatbin", 8, &[0; 16])]);
    let listing = list(&host);
    assert_eq!(problems(&listing), [Problem::SectionWithoutBytes]);
    assert!(listing.complete);
}

#[test]
fn a_host_file_without_gpu_code_lists_nothing() {
    let listing = list(&elf(&[(".text", 1, &[0x90; 32])]));
    assert_eq!((listing.entries.len(), listing.diagnostics.len(), listing.complete), (0, 0, true));
}

#[test]
fn other_formats_are_refused_with_what_they_look_like() {
    let refuse = |bytes: &[u8]| fatbin::list(bytes, &Options::default()).expect_err("no format");
    assert!(matches!(refuse(b""), Error::UnknownFormat { .. }));
    assert!(refuse(b"PK\x03\x04rest of a wheel").to_string().contains("zip"));
    assert!(refuse(b"#!/bin/sh\n").to_string().contains("no ELF"));
}
