//! The store as its users see it, in one test binary.
//!
//! A file per promise; `support` holds the sandbox that all of them build on. Names of tests are claims.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests are tests too, which clippy cannot see in this kind of binary"
)]

mod concurrency;
mod crash;
mod damage;
mod faults;
mod lifecycle;
mod locks;
mod removal;
mod strange;
mod support;
mod why;
