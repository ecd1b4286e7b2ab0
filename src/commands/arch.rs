//! `arch`: reads a list, checks it by the tables, and shows it in another spelling or by what it runs on.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum as _;
use fs_err as fs;
use serde::Serialize;

use super::World;
use crate::cli::arch::ArchArgs;
use crate::compat::support::{self, Compiler};
use crate::compat::{self, Gpu, GpuLookup};
use crate::domain::arch::dialect::Consumer;
use crate::domain::arch::{ArchSet, Capability};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::domain::release::{Takes, Versioned};
use crate::domain::version::CudaVersion;
use crate::probe::gpu;
use crate::report::Event;
use crate::sys::env_vars;
use crate::targets::{self, Detected, Facts, Request, Selected, Verdict};
use crate::ui::style::table;

/// An arch list, in every form.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
struct ArchReport {
    /// Version of this form.
    schema: u32,
    /// The canonical list.
    archs: String,
    /// Its members, in order.
    members: Vec<Member>,
    /// Why these archs.
    why: Vec<String>,
    /// What one should know although it works.
    warnings: Vec<String>,
    /// What each consumer reads; a consumer that cannot hold the list is left out.
    spellings: BTreeMap<String, String>,
    /// How GPUs fare with it.
    gpus: Vec<Verdict>,
}

/// One arch.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
struct Member {
    /// The arch, such as `9.0a`.
    arch: String,
    /// Whether machine code is built.
    sass: bool,
    /// Whether PTX is built.
    ptx: bool,
    /// First CUDA release of the table that can build it.
    first_cuda: Option<String>,
    /// Last one, where the newest no longer can.
    last_cuda: Option<String>,
}

/// What a product name stands for.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
struct Product {
    /// The name as asked.
    asked: String,
    /// `found`, `ambiguous` or `unknown`.
    status: String,
    /// The product's name in the table.
    name: Option<String>,
    /// Its capability.
    capability: Option<String>,
    /// Products the name could mean, with their capabilities.
    candidates: BTreeMap<String, Vec<String>>,
    /// Names that are near.
    nearest: Vec<String>,
}

pub(super) fn run(args: &ArchArgs, world: &World<'_>) -> Result<Exit, Problems> {
    if let Some(path) = &args.gpu_file {
        let text = fs::read_to_string(world.env.absolute(path)).map_err(|error| {
            Problem::new("cuwright::usage::unreadable_file", Exit::Usage, format!("{path} cannot be read"))
                .why(error.to_string())
        })?;
        return products(&text, world);
    }
    let asked = Asked::read(args)?;
    let judged = if args.list.is_empty() { Vec::new() } else { judged(&args.gpu)? };
    let (selected, torch) = select(args, &asked, world)?;
    let allowed: Option<Vec<String>> = torch.map(|torch| torch.archs.iter().map(ToString::to_string).collect());
    let rendered = args.to.map(|to| to.render(&selected.set, allowed.as_deref())).transpose()?;
    let explained = args.explain || !judged.is_empty();
    let verdicts = if explained || world.json() {
        targets::explain(&selected.set, asked.cuda, asked.driver, &judged)
    } else {
        Vec::new()
    };
    if world.json() {
        let report = report(&selected, allowed.as_deref(), verdicts);
        world.printer.data(&serde_json::to_string_pretty(&report).unwrap_or_default());
        return Ok(Exit::Ok);
    }
    for text in selected.why {
        world.printer.event(&Event::Note { unit: None, text });
    }
    for text in selected.warnings {
        world.printer.event(&Event::Warning { unit: None, text });
    }
    world.printer.data(&rendered.unwrap_or_else(|| selected.set.to_string()));
    if explained {
        world.printer.data(&explanation(&verdicts));
    }
    Ok(Exit::Ok)
}

/// The releases that the list is checked against.
struct Asked {
    cuda: Option<CudaVersion>,
    torch: Option<String>,
    driver: Option<CudaVersion>,
}

impl Asked {
    fn read(args: &ArchArgs) -> Result<Self, Problems> {
        let mut problems = Vec::new();
        let mut read = |product: Versioned, flag: &str, text: Option<&String>| {
            let text = text?;
            let refuse = |why: String| product.refuse(flag, text, &why, Takes::Release);
            product.release(text).map_err(|why| problems.push(refuse(why))).ok()
        };
        let cuda = read(Versioned::Cuda, "--cuda", args.cuda.as_ref());
        let torch = read(Versioned::Torch, "--torch", args.torch.as_ref());
        let driver = read(Versioned::Cuda, "--driver", args.driver.as_ref());
        let version = |text: Option<String>| text.and_then(|text| text.parse().ok());
        Problems::check(problems).map(|()| Self { cuda: version(cuda), torch, driver: version(driver) })
    }
}

/// The set that was asked for, checked against what it shall be built with.
fn select(
    args: &ArchArgs,
    asked: &Asked,
    world: &World<'_>,
) -> Result<(Selected, Option<&'static compat::Torch>), Problems> {
    let compiler = asked.cuda.map(Compiler::release);
    let inherited = [env_vars::TORCH_CUDA_ARCH_LIST];
    let inherited = inherited.into_iter().find_map(|name| Some((name, world.env.get(name)?)));
    let gpus: &[String] = if args.list.is_empty() { &args.gpu } else { &[] };
    let request = Request { arch: &args.list, arch_name: Some("LIST"), gpus, inherited, ..Request::default() };
    let facts = Facts { compiler, torch: asked.torch.as_deref(), torch_accepts: None };
    let mut selected = targets::select(&request, facts, || Detected::from(&gpu::detect(world.env)))?;
    let mut problems = Vec::new();
    if let Some(compiler) = compiler {
        problems.extend(support::against_compiler(&selected.set, compiler));
        selected.warnings.extend(support::judged(compiler.version).err());
    }
    let torch = asked.torch.as_deref().and_then(compat::torch);
    if let Some(version) = &asked.torch {
        problems.extend(support::against_torch(&selected.set, version, None));
        if torch.is_none() {
            let newest = compat::torch_releases().last().map(|row| row.version).unwrap_or_default();
            selected.warnings.push(format!("torch {version} is not in the table, which ends at {newest}"));
        }
    }
    if let Some((name, _)) = inherited.filter(|_| args.list.is_empty() && gpus.is_empty()) {
        let from = format!("the list comes from the environment variable {name}");
        problems = problems.into_iter().map(|problem| problem.why(&from)).collect();
    }
    Problems::check(problems).map(|()| (selected, torch))
}

fn judged(names: &[String]) -> Result<Vec<Gpu>, Problems> {
    let mut problems = Vec::new();
    let found = names.iter().filter_map(|name| targets::gpus(name, Exit::Usage).map_err(|p| problems.push(p)).ok());
    let found = found.flatten().collect();
    Problems::check(problems).map(|()| found)
}

fn report(selected: &Selected, allowed: Option<&[String]>, gpus: Vec<Verdict>) -> ArchReport {
    let name = |consumer: &Consumer| consumer.to_possible_value().map(|value| value.get_name().to_owned());
    let spellings = Consumer::value_variants()
        .iter()
        .filter_map(|consumer| Some((name(consumer)?, consumer.render(&selected.set, allowed).ok()?)))
        .collect();
    ArchReport {
        schema: 1,
        archs: selected.set.to_string(),
        members: members(&selected.set),
        why: selected.why.clone(),
        warnings: selected.warnings.clone(),
        spellings,
        gpus,
    }
}

fn members(set: &ArchSet) -> Vec<Member> {
    set.iter()
        .map(|(arch, form)| {
            let span = compat::arch_span(arch);
            Member {
                arch: arch.to_string(),
                sass: form.sass,
                ptx: form.ptx,
                first_cuda: span.map(|span| span.first.to_string()),
                last_cuda: span.and_then(|span| span.last).map(|last| last.to_string()),
            }
        })
        .collect()
}

fn explanation(verdicts: &[Verdict]) -> String {
    let mut rows = vec![["GPU", "CAPABILITY", "RUNS", ""].map(str::to_owned).to_vec()];
    for verdict in verdicts {
        let by = verdict.by.clone().unwrap_or_default();
        let how = match (verdict.runs.as_str(), &verdict.why) {
            ("no", Some(why)) => why.clone(),
            ("by-jit", _) => format!("{by}, compiled by the driver at first start"),
            _ => by,
        };
        rows.push(vec![verdict.gpu.clone(), verdict.capability.clone(), verdict.runs.clone(), how]);
    }
    table(&rows)
}

/// A line in, a line out, in the same order.
fn products(text: &str, world: &World<'_>) -> Result<Exit, Problems> {
    let names: Vec<&str> = text.lines().map(str::trim).collect();
    let answers: Vec<Product> = names.iter().map(|name| product(name)).collect();
    let problems: Vec<Problem> = names
        .iter()
        .filter(|name| !name.is_empty())
        .filter_map(|name| targets::gpus(name, Exit::Usage).err())
        .collect();
    if world.json() {
        world.printer.data(&serde_json::to_string_pretty(&answers).unwrap_or_default());
        return Ok(if problems.is_empty() { Exit::Ok } else { Exit::Usage });
    }
    for answer in &answers {
        world.printer.data(&line(answer));
    }
    Problems::check(problems).map(|()| Exit::Ok)
}

fn product(name: &str) -> Product {
    let mut product = Product {
        asked: name.to_owned(),
        status: "unknown".to_owned(),
        name: None,
        capability: None,
        candidates: BTreeMap::new(),
        nearest: Vec::new(),
    };
    match compat::gpu_by_name(name) {
        GpuLookup::Found(gpu) => {
            "found".clone_into(&mut product.status);
            product.name = Some(gpu.name.to_owned());
            product.capability = Some(gpu.capability.to_string());
        }
        GpuLookup::Several(gpus) => {
            "series".clone_into(&mut product.status);
            let list = |gpu: Gpu| (gpu.name.to_owned(), vec![gpu.capability.to_string()]);
            product.candidates = gpus.into_iter().map(list).collect();
        }
        GpuLookup::Retired(_) => "retired".clone_into(&mut product.status),
        GpuLookup::Ambiguous(candidates) => {
            "ambiguous".clone_into(&mut product.status);
            let list = |candidate: compat::Candidate| {
                let capabilities = candidate.capabilities.iter().map(Capability::to_string).collect();
                (candidate.name.to_owned(), capabilities)
            };
            product.candidates = candidates.into_iter().map(list).collect();
        }
        GpuLookup::Unknown(near) => product.nearest = near.into_iter().map(str::to_owned).collect(),
    }
    product
}

/// The capability alone, so that a script can use it; otherwise a word and what could be meant.
fn line(answer: &Product) -> String {
    if let Some(capability) = &answer.capability {
        return capability.clone();
    }
    let capabilities: BTreeSet<Capability> =
        answer.candidates.values().flatten().filter_map(|text| text.parse().ok()).collect();
    let list: Vec<String> = capabilities.iter().map(Capability::to_string).collect();
    format!("{} {}", answer.status, list.join("|")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schemas_are_what_the_code_says() {
        crate::schema_check::<ArchReport>("schemas/arch.schema.json");
        crate::schema_check::<Vec<Product>>("schemas/gpu-file.schema.json");
    }

    #[test]
    fn a_product_is_one_word_or_says_why_not() {
        assert_eq!(line(&product("RTX 4090")), "8.9");
        assert_eq!(line(&product("RTX 4000")), "ambiguous 7.5|8.9|12.0");
        assert_eq!(line(&product("Radeon")), "unknown");
    }
}
