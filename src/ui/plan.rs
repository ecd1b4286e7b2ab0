//! A plan for people: one block a unit, each line a fact with its reason, the command ready to paste.

use crate::pipeline::plan::PlanDocument;

/// Renders a plan, without a final line end.
pub fn text(plan: &PlanDocument) -> String {
    let mut lines = vec![format!("{}  ({})", plan.unit, plan.recipe)];
    let mut fact = |label: &str, text: &str| {
        for (index, line) in text.lines().enumerate() {
            let label = if index == 0 { label } else { "" };
            lines.push(format!("  {label:<11} {line}"));
        }
    };
    if let Some(recipe) = &plan.inferred {
        fact("recipe", recipe.trim_end());
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
        fact("set", &format!("{name}={value}"));
    }
    for (name, value) in &ready.cleared {
        fact("left out", &format!("{name}={value}"));
    }
    fact("key", &ready.key);
    fact("cache", if ready.hit { "hit: the verified wheel would be restored" } else { "miss" });
    if let Some(why) = &ready.why {
        fact("", why);
    }
    fact("command", &ready.command);
    lines.join("\n")
}
