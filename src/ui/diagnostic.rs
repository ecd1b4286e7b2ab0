//! A [`Problem`] as text: what, where, why, and the mend.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::style::visible;
use crate::domain::problem::Problem;

/// Renders one problem, without a final line end.
pub fn render(problem: &Problem, color: bool) -> String {
    let message = visible(problem.message());
    let title = Level::ERROR.with_name(Some(format!("error[{}]", problem.code()))).primary_title(&*message);
    let mut group = Group::with_title(title);
    if let Some(at) = problem.snippet() {
        // A caret needs a character to stand under; an empty range gets the one before it.
        let end = at.text.ceil_char_boundary(at.range.end);
        let start = at.text.floor_char_boundary(at.range.start.min(end.saturating_sub(1)));
        let range = start..end;
        if at.text.trim().is_empty() {
            group = group.element(Origin::path(at.origin.as_str()));
        } else {
            let annotation = AnnotationKind::Primary.span(range).label(at.label.as_str());
            group = group.element(Snippet::source(at.text.as_str()).path(at.origin.as_str()).annotation(annotation));
        }
    }
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut text = renderer.decor_style(DecorStyle::Unicode).render(&[group]);
    for why in problem.evidence() {
        text.push_str(&line("why", why));
    }
    for help in problem.mends() {
        text.push_str(&line("help", help));
    }
    text
}

/// One labelled fact; further lines of it are indented under the first.
fn line(label: &str, fact: &str) -> String {
    let indent = format!("\n{:8}", "");
    format!("\n  {:<6}{}", format!("{label}:"), visible(fact.trim_end()).replace('\n', &indent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::exit::Exit;
    use crate::domain::problem;

    #[test]
    fn a_problem_shows_what_where_why_and_the_mend() {
        let text = "[targets]\narch = [\"9.0\", \"10.0\"]\n".to_owned();
        let start = text.find("\"10.0\"").unwrap();
        let problem =
            Problem::new("cuwright::target::arch_unsupported", Exit::Toolchain, "nvcc 11.8 cannot compile for sm_100")
                .at(problem::Snippet {
                    origin: "recipes/mmcv.toml".into(),
                    text,
                    range: start..start + 6,
                    label: "first supported by CUDA 12.8".into(),
                })
                .why("nvcc 11.8 at /usr/local/cuda-11.8/bin/nvcc, chosen because CUDA_HOME is set")
                .help("build with CUDA 12.8 or newer (`--cuda 12.8`), or remove \"10.0\" from `arch`");
        insta::assert_snapshot!(render(&problem, false));
    }

    #[test]
    fn odd_ranges_do_not_break_the_rendering() {
        for (text, range) in [("", 0..0), ("ä", 1..1), ("x", 5..9), ("\n", 0..1), ("ab", 2..2)] {
            let at = problem::Snippet { origin: "f".into(), text: text.into(), range, label: "l".into() };
            let problem = Problem::new("cuwright::test", Exit::Recipe, "m").at(at);
            assert!(render(&problem, false).contains("error[cuwright::test]"));
        }
    }
}
