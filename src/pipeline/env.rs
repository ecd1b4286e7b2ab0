//! Targets, and the toolchain where there is one, for an environment that is used without cuwright's own build.
//!
//! Installs nothing. A toolchain that is not here is no error: the archs can be said without one.

use super::load::Loaded;
use super::{Context, Request, aim, prepare};
use crate::compat;
use crate::compat::support::{self, Compiler};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::domain::release::Versioned;
use crate::domain::toolchain::Toolchain;
use crate::recipe::Recipe;
use crate::targets::{Facts, Selected};

/// What an environment is made of.
#[derive(Debug)]
pub struct Composed {
    /// The targets.
    pub selected: Selected,
    /// What the chosen torch, or the one asked for, accepts; `None` where neither is known.
    pub torch_allows: Option<Vec<String>>,
    /// The toolchain, where one was wanted and is here.
    pub toolchain: Option<Toolchain>,
    /// Why there is none although it was wanted.
    pub missing: Vec<Problem>,
}

/// A stand-in where no recipe is named.
pub fn no_recipe(context: &Context<'_>) -> Loaded {
    Loaded {
        file: None,
        recipe: Recipe::without_source("env"),
        origin: String::new(),
        text: String::new(),
        folder: context.env.current_dir().to_owned(),
        inferred: false,
    }
}

/// Chooses the targets, and with `here` the toolchain of this machine.
///
/// # Errors
/// An unreadable request, no target, or archs that the toolkit cannot compile.
pub fn compose(context: &Context<'_>, loaded: &Loaded, request: &Request, here: bool) -> Result<Composed, Problems> {
    aim::versions(request)?;
    let mut missing = Vec::new();
    let chosen = if here { prepare::choose(context, &loaded.recipe, request, None).map(Some) } else { Ok(None) };
    let toolchain = match chosen {
        Ok(chosen) => chosen.map(|choice| choice.toolchain),
        // What was asked for in words that nobody can read stays an error; a bare machine is none.
        Err(problems) if problems.exit() == Exit::Usage || problems.exit() == Exit::Recipe => return Err(problems),
        Err(problems) => {
            missing.extend(problems.iter().cloned());
            None
        }
    };
    let release = |product: Versioned, asked: &Option<String>| product.release(asked.as_deref()?).ok();
    let asked = release(Versioned::Cuda, &request.cuda).and_then(|version| version.parse().ok()).map(Compiler::release);
    let asked_torch = release(Versioned::Torch, &request.torch);
    let compiler = toolchain.as_ref().map_or(asked, |toolchain| {
        Some(Compiler { version: toolchain.toolkit.nvcc, gpu_codes: toolchain.toolkit.codes() })
    });
    let torch = toolchain.as_ref().map_or(asked_torch.as_deref(), |toolchain| Some(&toolchain.torch.version));
    let by_table = || torch.and_then(compat::torch).map(|row| row.archs.iter().map(ToString::to_string).collect());
    let own = toolchain.as_ref().and_then(prepare::accepted).map(<[String]>::to_vec);
    let torch_allows: Option<Vec<String>> = own.or_else(by_table);
    let facts = Facts { compiler, torch, torch_accepts: torch_allows.as_deref() };
    let selected = aim::select(context, loaded, request, facts)?;
    if let Some(compiler) = compiler {
        Problems::check(support::against_compiler(&selected.set, compiler))?;
    }
    Ok(Composed { selected, torch_allows, toolchain, missing })
}
