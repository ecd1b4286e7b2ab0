//! A plan for people: one block a unit, each line a fact with its reason, the command ready to paste.

use std::fmt::Write as _;

use super::style::{table, wrap};
use crate::pipeline::plan::PlanDocument;

/// Characters of a line; what is to be pasted is never broken.
const WIDTH: usize = 110;
/// Where facts begin.
const INDENT: usize = 14;

/// Renders a plan, without a final line end.
pub fn text(plan: &PlanDocument) -> String {
    let mut lines = vec![format!("{}  ({})", plan.unit, plan.recipe)];
    let mut exact = |label: &str, text: &str| {
        for (index, line) in text.lines().enumerate() {
            let label = if index == 0 { label } else { "" };
            lines.push(format!("  {label:<11} {line}").trim_end().to_owned());
        }
    };
    if let Some(recipe) = &plan.inferred {
        exact("recipe", recipe.trim_end());
    }
    let mut fact = |label: &str, text: &str| exact(label, &wrap(text, WIDTH - INDENT, "  "));
    if let Some(tried) = &plan.tried {
        fact("tried", tried);
    }
    fact("archs", &plan.archs);
    plan.archs_why.iter().for_each(|why| fact("", why));
    match &plan.toolchain {
        Some(toolchain) => fact("toolchain", toolchain),
        None => fact("toolchain", "none yet"),
    }
    plan.toolchain_why.iter().for_each(|why| fact("", why));
    for missing in &plan.missing {
        fact("missing", &missing.message);
        missing.why.iter().for_each(|why| fact("", why));
    }
    let Some(ready) = &plan.ready else {
        fact("key", "known once that is here; `cuwright build` brings it");
        return lines.join("\n");
    };
    fact("source", &ready.source);
    fact("jobs", &ready.jobs);
    for (name, value) in &ready.environment {
        exact("set", &format!("{name}={value}"));
    }
    for (name, value) in &ready.cleared {
        exact("left out", &format!("{name}={value}"));
    }
    let mut fact = |label: &str, text: &str| exact(label, &wrap(text, WIDTH - INDENT, "  "));
    fact("key", &ready.key);
    fact("cache", if ready.hit { "hit: the verified artifact would be restored" } else { "miss" });
    if let Some(why) = &ready.why {
        fact("", why);
    }
    for why in &ready.local {
        fact("", &format!("valid on this machine only: {why}"));
    }
    exact("leaves", &ready.outputs);
    lines.push(if ready.command.contains('\n') { "  commands" } else { "  command" }.to_owned());
    lines.push(ready.command.clone());
    lines.join("\n")
}

/// Renders the cells of a matrix as a table, and below it why some are not built.
pub fn cells(plans: &[PlanDocument]) -> String {
    let mut rows = vec![["UNIT", "ARCH", "TORCH", "CUDA", "PYTHON", "WOULD BE"].map(str::to_owned).to_vec()];
    for plan in plans {
        let value = |axis: &str| plan.cell.get(axis).cloned().unwrap_or_else(|| "-".to_owned());
        let verdict = match (&plan.pruned, &plan.ready) {
            (Some(_), _) => "pruned",
            (None, None) if !plan.refused.is_empty() => "refused on this machine",
            (None, None) => "built, once its toolchain or source is here",
            (None, Some(ready)) if ready.hit => "restored from the cache",
            (None, Some(_)) => "built",
        };
        let axes = ["arch", "torch", "cuda", "python"].map(value);
        rows.push([vec![plan.unit.clone()], axes.to_vec(), vec![verdict.to_owned()]].concat());
    }
    let mut text = table(&rows);
    for plan in plans {
        let refused = plan.refused.iter().map(|problem| ("refused", &problem.message));
        for (word, why) in plan.pruned.iter().map(|why| ("pruned", why)).chain(refused) {
            let line = format!("{}: {why}", plan.unit);
            let _ = write!(text, "\n{word:<9} {}", wrap(&line, WIDTH - 10, "          "));
        }
    }
    text
}
