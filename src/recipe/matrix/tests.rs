//! Expansion, and refusals with their place.

use super::super::parse::{Document, parse};
use super::super::resolve::resolve;
use super::*;
use crate::domain::problem::Problems;

const HEAD: &str = "schema = 1\n[package]\nname = \"x\"\n[source]\npath = \".\"\n[matrix]\n";

fn read(matrix: &str) -> Result<Matrix, Problems> {
    let text = format!("{HEAD}{matrix}");
    let document = Document { origin: "r.toml", text: &text };
    resolve(document, parse(document)?, |_| Err(String::new())).map(|recipe| recipe.matrix)
}

fn words(matrix: &str) -> Vec<String> {
    read(matrix).unwrap().cells().unwrap().cells.iter().map(Cell::words).collect()
}

#[test]
fn axes_multiply_and_the_last_varies_fastest() {
    let cells = words("arch = [\"8.6\", \"9.0\"]\npython = [\"3.11\", \"3.12\"]\n");
    assert_eq!(
        cells,
        ["arch 8.6, python 3.11", "arch 8.6, python 3.12", "arch 9.0, python 3.11", "arch 9.0, python 3.12"]
    );
    assert_eq!(words(""), Vec::<String>::new());
}

#[test]
fn zipped_axes_go_in_step() {
    let cells = words(
        "arch = [\"8.6\", \"9.0\"]\ntorch = [\"2.11.0\", \"2.15.0\"]\ncuda = [\"13.0\", \"13.2\"]\n\
         zip = [\"torch\", \"cuda\"]\n",
    );
    assert_eq!(
        cells,
        [
            "arch 8.6, torch 2.11.0, cuda 13.0",
            "arch 8.6, torch 2.15.0, cuda 13.2",
            "arch 9.0, torch 2.11.0, cuda 13.0",
            "arch 9.0, torch 2.15.0, cuda 13.2"
        ]
    );
}

#[test]
fn excluded_cells_go_and_included_ones_come_once() {
    let matrix = read(
        "arch = [\"8.6\", \"9.0 10.0\"]\ntorch = [\"2.11.0\", \"2.12.1\"]\n\
         exclude = [{ arch = \"10.0;sm_90\", torch = \"2.12.1\" }, { python = \"3.9\" }]\n\
         include = [{ arch = \"12.0\" }, { arch = \"sm_86\", torch = \"2.11.0\" }]\n",
    )
    .unwrap();
    let found = matrix.cells().unwrap();
    let words: Vec<String> = found.cells.iter().map(Cell::words).collect();
    assert_eq!(words, ["arch 8.6, torch 2.11.0", "arch 8.6, torch 2.12.1", "arch 9.0 10.0, torch 2.11.0", "arch 12.0"]);
    assert_eq!(found.idle, [Cell::default().with(Axis::Python, "3.9")]);
}

#[test]
fn the_command_line_replaces_an_axis() {
    let matrix = read("torch = [\"2.11.0\", \"2.15.0\"]\ncuda = [\"13.0\", \"13.2\"]\nzip = [\"torch\", \"cuda\"]\n");
    let matrix = matrix.unwrap().with_axis(Axis::Arch, &["9.0".to_owned()]).with_axis(Axis::Python, &[]);
    assert_eq!(matrix.cells().unwrap().cells.len(), 2);
    let uneven = matrix.clone().with_axis(Axis::Torch, &["2.11.0".to_owned()]).cells().unwrap_err();
    assert_eq!(uneven.code(), "cuwright::matrix::uneven_zip");
    let many: Vec<String> = (0..600).map(|number| format!("2.{number}.0")).collect();
    let huge = matrix.with_axis(Axis::Torch, &many).with_axis(Axis::Cuda, &many).with_axis(Axis::Arch, &many);
    assert_eq!(huge.cells().unwrap_err().code(), "cuwright::matrix::too_many");
}

#[test]
fn names_of_cells_are_legal_file_names() {
    let cell = Cell::default().with(Axis::Arch, "sm_90+PTX 8.6").with(Axis::Torch, ">=2.6,<3");
    assert_eq!(cell.slug(), "arch8.6_9.0+PTX-torch__2.6__3");
    assert_eq!(Cell::default().with(Axis::Python, "/a b/../é").slug(), "py_a_b_.._é".replace('é', "_"));
}

#[test]
fn every_mistake_is_shown_at_its_place() {
    let wrong = "arch = [\"8.6\", \"sm_86\", \"9.x\"]\ntorch = [\"new\"]\npython = [\" \"]\n\
                 zip = [\"torch\", \"cuda\", \"arch\", \"tproch\"]\ninclude = [{}]\nexclude = [{ cuda = \"x\" }]\n";
    let problems = read(wrong).unwrap_err();
    let shown: Vec<String> = problems
        .iter()
        .map(|problem| {
            let at = problem.snippet().unwrap();
            format!("{}: {}", &at.text[at.range.clone()], problem.message())
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
    assert_eq!(read("arch = [\"8.6\"]\nzip = [\"arch\"]\n").unwrap_err().iter().count(), 1);
    assert_eq!(read("archs = []\n").unwrap_err().iter().next().unwrap().mends()[0], "did you mean `arch`?");
}
