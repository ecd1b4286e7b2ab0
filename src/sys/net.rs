//! Downloads. Filled in by the provision work.
