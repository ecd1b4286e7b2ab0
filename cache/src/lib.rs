//! Content-addressed artifact store.
