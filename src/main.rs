//! Stands in for a compiler where it is called as one. Else captures the world, parses, dispatches, and turns the result into an exit code. Nothing else.

use std::process::ExitCode;

use cuwright::sys::Env;
use cuwright::{cli, commands, launcher};

fn main() -> ExitCode {
    if let Some(exit) = launcher::stand_in::run() {
        return exit;
    }
    let env = Env::capture();
    let exit = match cli::parse(std::env::args_os()) {
        Ok(cli) => commands::run(&cli, &env),
        Err(refused) => commands::refuse(&refused, &env),
    };
    ExitCode::from(exit.code())
}
