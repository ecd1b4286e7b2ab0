//! One arch set, many spellings: a renderer for each consumer that reads archs from a variable or a flag.
//!
//! Every renderer either holds the set exactly or refuses and says why; none emits a word that makes another tool look
//! at a GPU. The `read` functions say what the consumer itself would make of a value.

pub mod caffe;
pub mod cmake;
pub mod nvcc;
pub mod template;
pub mod tensorflow;
pub mod torch;

use super::{Arch, ArchSet, Form, Variant};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};

/// Code of every refusal.
pub const CANNOT_HOLD: &str = "cuwright::target::dialect_cannot_hold";

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// `8.6`.
    Dotted,
    /// `86`.
    Joined,
}

impl Spelling {
    fn write(self, arch: Arch) -> String {
        match self {
            Self::Dotted => arch.to_string(),
            Self::Joined => arch.joined(),
        }
    }

    fn read(self, text: &str) -> Option<Arch> {
        match self {
            Self::Dotted => text.parse().ok(),
            Self::Joined => Arch::from_joined(text),
        }
    }
}

/// A refusal: what of the set the consumer cannot hold, why, and what to do instead.
fn refusal(consumer: &str, arch: Arch, form: Form, why: impl Into<String>, help: impl Into<String>) -> Problem {
    let one: ArchSet = std::iter::once((arch, form)).collect();
    Problem::new(CANNOT_HOLD, Exit::Toolchain, format!("{consumer} cannot hold {one}")).why(why).help(help)
}

/// Joins what `write` makes of each member; all refusals come together.
fn each(
    set: &ArchSet,
    separator: &str,
    mut write: impl FnMut(Arch, Form) -> Result<String, Problem>,
) -> Result<String, Problems> {
    let mut words = Vec::new();
    let mut refused = Vec::new();
    for (arch, form) in set.iter() {
        match write(arch, form) {
            Ok(word) => words.push(word),
            Err(problem) => refused.push(problem),
        }
    }
    Problems::check(refused).map(|()| words.join(separator))
}

fn plain_only(consumer: &str, arch: Arch, form: Form) -> Result<(), Problem> {
    if arch.variant == Variant::Plain {
        return Ok(());
    }
    let why = format!("it reads digits only, so `{}` would be lost in silence", arch.variant.suffix());
    let help = format!("use {} instead, or give nvcc its flags directly", arch.with(Variant::Plain));
    Err(refusal(consumer, arch, form, why, help))
}
