//! `cache`: overview, why, gc, removal.

use std::time::Duration;

use cache::{Limits, Match, Mode, Removed, STORE_LOCK, Store, Wait};
use serde_json::json;

use super::World;
use crate::build::folder;
use crate::cli::build::Choice;
use crate::cli::cache::{CacheAction, CacheArgs};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems, chain};
use crate::pipeline::artifact::{Artifacts, change};
use crate::pipeline::{Context, Request, load, prepare};
use crate::recipe::size::ByteSize;
use crate::report::Event;
use crate::sys::env_vars::CUWRIGHT_LOCK_TIMEOUT;
use crate::sys::{clock, files};
use crate::ui::style::{age, bytes, count, table};

pub(super) fn run(args: &CacheArgs, world: &World<'_>) -> Result<Exit, Problems> {
    // What is asked is looked at before anything is waited for.
    let limits = match &args.action {
        CacheAction::Gc { max_size, max_age } => limits(max_size.as_deref(), *max_age)?,
        _ => Limits::default(),
    };
    let store = Artifacts::store(&world.cache_root()?)?;
    match &args.action {
        CacheAction::List => list(&store, world)?,
        CacheAction::Stat => stat(&store, world)?,
        CacheAction::Why { choice } => return why(choice, &store, world),
        CacheAction::Gc { .. } => {
            let guard = exclusive(&store, world)?;
            let removed = store.gc(&guard, limits, clock::now()).map_err(|error| failed(&error))?;
            // Nobody builds while we hold the store alone, so every build folder is a dead one.
            for leftover in folder::leftovers(&world.cache_root()?, clock::now()) {
                files::remove_tree(&leftover.path).map_err(|error| not_removed(&error))?;
            }
            tell_removed(&removed, world);
        }
        CacheAction::Remove { keys } => {
            named(keys, &store)?;
            let guard = exclusive(&store, world)?;
            let mut all = Removed::default();
            for key in keys {
                // One that is gone by now was removed by whoever we waited for, which is as good.
                let removed = store.remove(&guard, &Match::Prefix(key)).map_err(|error| failed(&error))?;
                all.keys.extend(removed.keys);
                all.bytes += removed.bytes;
            }
            tell_removed(&all, world);
        }
    }
    Ok(Exit::Ok)
}

fn limits(max_size: Option<&str>, max_age: Option<u64>) -> Result<Limits, Problem> {
    let max_bytes = max_size.map(str::parse::<ByteSize>).transpose().map_err(|why| usage(&why))?;
    if max_bytes.is_none() && max_age.is_none() {
        return Err(usage("gc needs a limit: `--max-size` or `--max-age`"));
    }
    let max_age = max_age.map(|days| Duration::from_secs(days.saturating_mul(86_400)));
    Ok(Limits { max_bytes: max_bytes.map(|size| size.0), max_age })
}

/// Refuses keys that name nothing, before any of the others is removed.
fn named(keys: &[String], store: &Store) -> Result<(), Problems> {
    let mut problems = Vec::new();
    for key in keys {
        match store.holds(key) {
            Ok(true) => {}
            Ok(false) => {
                let message = format!("no artifact has a key that starts with `{key}`");
                let problem = Problem::new("cuwright::cache::no_such_key", Exit::Cache, message);
                problems.push(problem.help("`cuwright cache list` shows the keys"));
            }
            Err(error) => problems.push(failed(&error)),
        }
    }
    Problems::check(problems)
}

fn usage(why: &str) -> Problem {
    Problem::new("cuwright::usage::cache", Exit::Usage, why).help("see `cuwright cache gc --help`")
}

fn not_removed(error: &std::io::Error) -> Problem {
    Problem::new("cuwright::cache::failed", Exit::Cache, "the leftovers of old builds could not be removed")
        .why(error.to_string())
        .help("check the cache folder's permissions")
}

fn failed(error: &cache::Error) -> Problem {
    if matches!(error, cache::Error::BadPrefix { .. }) {
        let problem = Problem::new("cuwright::usage::cache", Exit::Usage, error.to_string());
        return problem.help("`cuwright cache list` shows the keys");
    }
    Problem::new("cuwright::cache::failed", Exit::Cache, "the cache could not do that")
        .why(chain(error))
        .help("check the cache folder's permissions and free space")
}

/// Seconds that a removal waits for the builds that use the cache.
const PATIENCE: u64 = 60;

fn exclusive(store: &Store, world: &World<'_>) -> Result<cache::Guard, Problem> {
    let asked = world.env.get(CUWRIGHT_LOCK_TIMEOUT).and_then(|seconds| seconds.parse().ok());
    let limit = Duration::from_secs(asked.unwrap_or(PATIENCE));
    let wait = |waited: Duration| {
        if waited.is_zero() && !limit.is_zero() {
            let lock = store.lock_file(STORE_LOCK).map(|path| path.display().to_string()).unwrap_or_default();
            let text = format!("for builds that use the cache, up to {} s; the lock is {lock}", limit.as_secs());
            world.printer.event(&Event::Waiting { text });
        }
        if waited < limit { Wait::Again } else { Wait::GiveUp }
    };
    store.lock(STORE_LOCK, Mode::Exclusive, wait).map_err(|error| match error {
        cache::Error::Busy { .. } => Problem::new("cuwright::cache::busy", Exit::Cache, "builds are using the cache")
            .why(error.to_string())
            .help(format!("try again when they are done, or wait longer with {CUWRIGHT_LOCK_TIMEOUT}=SECONDS")),
        error => failed(&error),
    })
}

fn tell_removed(removed: &Removed, world: &World<'_>) {
    if world.json() {
        let keys: Vec<&str> = removed.keys.iter().map(cache::Key::as_str).collect();
        world.printer.data(&json!({ "removed": keys, "bytes": removed.bytes }).to_string());
    } else {
        world.printer.data(&format!("removed {}, {}", count(removed.keys.len(), "artifact"), bytes(removed.bytes)));
    }
}

fn list(store: &Store, world: &World<'_>) -> Result<(), Problem> {
    let listing = store.list().map_err(|error| failed(&error))?;
    if world.json() {
        let entries: Vec<_> = listing
            .entries
            .iter()
            .map(|entry| json!({ "key": entry.key().as_str(), "bytes": entry.bytes, "inputs": entry.inputs, "local": local(entry) }))
            .collect();
        let damaged: Vec<&str> = listing.damaged.iter().map(|damaged| damaged.key.as_str()).collect();
        world.printer.data(&json!({ "entries": entries, "damaged": damaged }).to_string());
        return Ok(());
    }
    if listing.entries.is_empty() && listing.damaged.is_empty() {
        world.printer.data("the cache holds no artifact; `cuwright build` puts one there");
        return Ok(());
    }
    let text =
        |entry: &cache::Record, name: &str| entry.inputs.get(name).and_then(|v| v.as_str()).unwrap_or("?").to_owned();
    let mut rows = vec![
        ["KEY", "PACKAGE", "ARCHS", "CUDA", "TORCH", "PYTHON", "VALID", "SIZE", "USED"].map(str::to_owned).to_vec(),
    ];
    for entry in &listing.entries {
        let used = clock::now().duration_since(entry.last_used).unwrap_or_default();
        rows.push(vec![
            entry.key().short().to_owned(),
            text(entry, "package"),
            text(entry, "archs"),
            text(entry, "nvcc"),
            text(entry, "torch"),
            text(entry, "python"),
            if local(entry).is_empty() { "anywhere" } else { "one machine" }.to_owned(),
            bytes(entry.bytes),
            age(used),
        ]);
    }
    let damaged = |damaged: &cache::Damaged| format!("{}  damaged: {}", damaged.key.short(), damaged.damage);
    let lines = std::iter::once(table(&rows)).chain(listing.damaged.iter().map(damaged));
    world.printer.data(&lines.collect::<Vec<_>>().join("\n"));
    Ok(())
}

/// Why an entry is valid on one machine only.
fn local(entry: &cache::Record) -> Vec<&str> {
    let reasons = entry.manifest.meta.get("local").and_then(|reasons| reasons.as_array());
    reasons.into_iter().flatten().filter_map(|reason| reason.as_str()).collect()
}

fn stat(store: &Store, world: &World<'_>) -> Result<(), Problem> {
    let stat = store.stat().map_err(|error| failed(&error))?;
    let root = store.root().display().to_string();
    if world.json() {
        let json = json!({ "root": root, "entries": stat.entries, "bytes": stat.bytes, "damaged": stat.damaged, "newer": stat.newer });
        world.printer.data(&json.to_string());
        return Ok(());
    }
    let ago = |time: Option<std::time::SystemTime>| {
        time.map_or_else(|| "never".to_owned(), |time| age(clock::now().duration_since(time).unwrap_or_default()))
    };
    world.printer.data(&table(&[
        vec!["folder".to_owned(), root],
        vec!["artifacts".to_owned(), stat.entries.to_string()],
        vec!["size".to_owned(), bytes(stat.bytes)],
        vec!["damaged".to_owned(), stat.damaged.to_string()],
        vec!["last used".to_owned(), ago(stat.newest_use)],
    ]));
    Ok(())
}

fn why(choice: &Choice, store: &Store, world: &World<'_>) -> Result<Exit, Problems> {
    let cache_root = world.cache_root()?;
    let tell = |event: Event| {
        if matches!(event, Event::Warning { .. }) {
            world.printer.event(&event);
        }
    };
    let context = Context { env: world.env, cache_root: &cache_root, tell: &tell };
    let request = Request { dry: true, ..choice.request(world.env.absolute("dist".into()), false)? };
    for name in choice.recipes() {
        let loaded = load::load(name, world.env)?;
        let package = loaded.recipe.name.clone();
        let prepared = prepare::prepare(&context, loaded, &request)?;
        let inputs = prepared.inputs.to_json();
        let same =
            |record: &cache::Record| record.inputs.get("package").and_then(|v| v.as_str()) == Some(package.as_str());
        let near = store.why(&inputs, same).map_err(|error| failed(&error))?;
        let found = Artifacts::open(&context, &package).get(&context, &prepared);
        let hit = found.is_ok();
        let (local, stale) = match found {
            Ok(cached) => (cached.summary.local, None),
            Err(why) => (Vec::new(), why),
        };
        if world.json() {
            let near: Vec<_> =
                near.iter().map(|near| json!({ "key": near.record.key().as_str(), "changes": near.changes })).collect();
            world.printer.data(
                &json!({ "unit": package, "key": prepared.key.as_str(), "hit": hit, "stale": stale, "local": local, "inputs": inputs, "near": near })
                    .to_string(),
            );
            continue;
        }
        let mut lines = vec![format!("{package} {}: {}", prepared.key.short(), if hit { "hit" } else { "miss" })];
        lines.extend(stale.map(|why| format!("  {} does not hold any more: {why}", prepared.key.short())));
        lines.extend(local.iter().map(|why| format!("  valid on this machine only: {why}")));
        for near in near.iter().filter(|near| !near.changes.is_empty()).take(5) {
            let changes: Vec<String> = near.changes.iter().map(change).collect();
            lines.push(format!("  {} differs in {}", near.record.key().short(), changes.join(", ")));
        }
        if near.is_empty() {
            lines.push("  the cache holds no artifact of this package".to_owned());
        }
        world.printer.data(&lines.join("\n"));
    }
    Ok(Exit::Ok)
}
