//! GPUs of this machine for target selection.

use super::Context;
use crate::probe::gpu;
use crate::targets::Detected;

/// What `probe` found, as `targets` wants it.
pub fn detected(context: &Context<'_>) -> Detected {
    Detected::from(&gpu::detect(context.env))
}
