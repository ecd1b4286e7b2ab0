//! GPU architectures: values, one canonical set, and the grammar people write them in.
