//! Brings in the user's own rows of the tables, before any command asks them.

use camino::Utf8Path;
use fs_err as fs;

use crate::compat::user;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::sys::{Env, dirs, env_vars};

/// Reads the file that the flag or the variable names, else the one in the user's settings if it is there.
pub(super) fn install(flag: Option<&Utf8Path>, env: &Env) -> Result<(), Problems> {
    let asked = flag.or_else(|| env.get(env_vars::CUWRIGHT_TABLES).map(Utf8Path::new)).map(|path| env.absolute(path));
    let Some(path) = asked.clone().or_else(|| dirs::config(env).map(|folder| folder.join("gpus.toml"))) else {
        return Ok(());
    };
    match fs::read_to_string(&path) {
        Ok(text) => user::parse(path.as_str(), &text).map(user::install),
        Err(error) if asked.is_none() && missing(&error) => Ok(()),
        Err(error) => Err(Problem::new(user::CODE, Exit::Usage, format!("the tables in {path} cannot be read"))
            .why(error.to_string())
            .help(format!("mend the file, or correct `--tables` and {}", env_vars::CUWRIGHT_TABLES))
            .into()),
    }
}

fn missing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}
