//! One wiring function per command. No logic: values go in from `cli`, results go out through `ui`.

mod arch;
mod build;
mod cache;
mod detect;
mod doctor;
mod env;
mod explain;
mod inspect;
mod recipes;
mod report_file;
mod tables;
mod toolchain;
mod verify;

use camino::Utf8PathBuf;
use clap::CommandFactory as _;

use crate::cli::usage::Refused;
use crate::cli::{Cli, Command};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::report::{Event, SCHEMA};
use crate::sys::clock::Stopwatch;
use crate::sys::{Env, dirs, env_vars};
use crate::ui::{Format, Printer, Settings};

/// What a command works with.
pub struct World<'a> {
    /// The captured environment.
    pub env: &'a Env,
    /// Shows things.
    pub printer: Printer,
    /// What is wrong with the user's own tables, for commands that go on without them.
    pub tables: Option<Problems>,
}

impl World<'_> {
    /// Root of all caches.
    pub fn cache_root(&self) -> Result<Utf8PathBuf, Problem> {
        let none = |why: &str| {
            Problem::new("cuwright::usage::no_cache_dir", Exit::Usage, "there is no folder for the cache")
                .why(why)
                .help(format!("set {} or pass `--cache-dir DIR`", env_vars::CUWRIGHT_CACHE_DIR))
        };
        let names = [env_vars::CUWRIGHT_CACHE_DIR, env_vars::XDG_CACHE_HOME, env_vars::HOME];
        if let Some(odd) = names.into_iter().find(|name| self.env.skipped.iter().any(|skipped| skipped == name)) {
            return Err(none(&format!("{odd} is not UTF-8")));
        }
        dirs::cache_root(self.env).ok_or_else(|| none("neither HOME, XDG_CACHE_HOME nor CUWRIGHT_CACHE_DIR is set"))
    }

    /// Whether results are wanted as JSON.
    pub fn json(&self) -> bool {
        self.printer.settings().format == Format::Json
    }
}

/// Runs a command and gives its exit code.
pub fn run(cli: &Cli, env: &Env) -> Exit {
    let global = &cli.global;
    // The flag is the variable, so that everything below, uv included, sees one folder.
    let env = &match &global.cache_dir {
        Some(folder) => env.clone().with(env_vars::CUWRIGHT_CACHE_DIR, env.absolute(folder)),
        None => env.clone(),
    };
    // Commands that answer with one document do not wrap it in a stream of messages.
    let streams = matches!(cli.command, Command::Build(_));
    let settings =
        Settings::detect(global.format(), streams, global.quiet, global.verbose, env).without_bars(global.no_progress);
    let mut world = World { env, printer: Printer::new(settings), tables: None };
    let watch = Stopwatch::start();
    if streams {
        world.printer.event(&start(cli.command.name()));
    }
    for name in &env.skipped {
        let text = format!("the environment variable {name} is not UTF-8 and is left out");
        world.printer.event(&Event::Note { unit: None, text });
    }
    let tables = tables::install(global.tables.as_deref(), env).or_else(|problems| {
        if asks_tables(&cli.command) {
            return Err(problems);
        }
        for problem in &problems {
            world.printer.event(&Event::Warning { unit: None, text: format!("{problem}; it is left out") });
        }
        world.tables = Some(problems);
        Ok(())
    });
    let ready = usable(env).map_err(Problems::from).and(tables);
    let result = ready.and_then(|()| dispatch(&cli.command, &world));
    let exit = result.unwrap_or_else(|problems| {
        world.printer.problems(None, &problems);
        problems.exit()
    });
    if streams {
        let milliseconds = u64::try_from(watch.elapsed().as_millis()).unwrap_or(u64::MAX);
        world.printer.event(&Event::Finish { exit: exit.code(), milliseconds });
    }
    world.printer.close();
    match world.printer.lost() {
        Some(lost) if exit == Exit::Ok => lost,
        _ => exit,
    }
}

/// Shows what stands in the way of a command line, or the page that it asks for, and gives the exit code.
pub fn refuse(refused: &Refused, env: &Env) -> Exit {
    let Some(problem) = refused.problem() else {
        refused.print();
        return refused.exit();
    };
    // What reads the messages of a build finds the mistake among them, and first and last message as ever.
    let command = refused.command().filter(|name| *name == "build");
    let printer = Printer::new(Settings::detect(Format::Json, command.is_some(), false, false, env));
    if let Some(command) = command {
        printer.event(&start(command));
    }
    printer.problems(None, &problem.into());
    if command.is_some() {
        printer.event(&Event::Finish { exit: refused.exit().code(), milliseconds: 0 });
    }
    printer.close();
    refused.exit()
}

fn start(command: &str) -> Event {
    Event::Start { schema: SCHEMA, version: env!("CARGO_PKG_VERSION").to_owned(), command: command.to_owned() }
}

/// Relative paths mean nothing without a working folder.
fn usable(env: &Env) -> Result<(), Problem> {
    let Some(why) = &env.no_current_dir else { return Ok(()) };
    Err(Problem::new("cuwright::usage::current_folder", Exit::Usage, "the current folder cannot be used")
        .why(why.as_str())
        .help("go to another folder"))
}

/// Whether a command's answer hangs on the tables of GPUs; the others work although the user's own are broken.
fn asks_tables(command: &Command) -> bool {
    !matches!(
        command,
        Command::Toolchain(_)
            | Command::Cache(_)
            | Command::Inspect(_)
            | Command::Doctor(_)
            | Command::Completions { .. }
    )
}

fn dispatch(command: &Command, world: &World<'_>) -> Result<Exit, Problems> {
    match command {
        Command::Build(args) => build::build(args, world),
        Command::Plan(args) => build::plan(args, world),
        Command::Detect(args) => detect::run(args, world),
        Command::Doctor(args) => doctor::run(args, world),
        Command::Arch(args) => arch::run(args, world),
        Command::Env(args) => env::run(args, world),
        Command::Inspect(args) => inspect::inspect(args, world),
        Command::Verify(args) => verify::verify(args, world),
        Command::Explain(args) => explain::run(args, world),
        Command::Toolchain(args) => toolchain::run(args, world),
        Command::Recipes => recipes::run(world),
        Command::Cache(args) => cache::run(args, world),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "cuwright", &mut text);
            world.printer.data(String::from_utf8_lossy(&text).trim_end());
            Ok(Exit::Ok)
        }
    }
}
