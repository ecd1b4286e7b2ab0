//! Who may hold a lock with whom, and how locks end.

use crate::support::{Helper, Sandbox, helper_store, say, until_told};
use cache::{Error, Mode, STORE_LOCK, Wait};
use std::time::Duration;

#[test]
fn shared_locks_go_together_and_exclude_an_exclusive_one() {
    let Sandbox { store, .. } = &Sandbox::new();
    let one = store.try_lock(STORE_LOCK, Mode::Shared).unwrap().unwrap();
    let two = store.try_lock(STORE_LOCK, Mode::Shared).unwrap().unwrap();
    assert!(store.try_lock(STORE_LOCK, Mode::Exclusive).unwrap().is_none());
    drop((one, two));
    let alone = store.try_lock(STORE_LOCK, Mode::Exclusive).unwrap().unwrap();
    assert_eq!((alone.mode(), alone.degraded()), (Mode::Exclusive, None));
    assert!(store.try_lock(STORE_LOCK, Mode::Shared).unwrap().is_none());
    assert!(store.try_lock("other", Mode::Exclusive).unwrap().is_some());
}

#[test]
fn the_caller_hears_that_it_waits_and_may_give_up() {
    let Sandbox { store, .. } = &Sandbox::new();
    let _held = store.try_lock("a", Mode::Exclusive).unwrap().unwrap();
    let mut heard = Vec::new();
    let result = store.lock("a", Mode::Shared, |waited| {
        heard.push(waited);
        if waited > Duration::from_millis(60) { Wait::GiveUp } else { Wait::Again }
    });
    assert!(matches!(result, Err(Error::Busy { waited, .. }) if waited == *heard.last().unwrap()));
    assert_eq!(heard[0], Duration::ZERO);
    assert!(heard.is_sorted() && heard.len() == 3);
}

#[test]
fn a_waiting_caller_gets_the_lock_once_it_is_free() {
    let Sandbox { store, .. } = &Sandbox::new();
    let mut held = store.try_lock("a", Mode::Exclusive).unwrap();
    let guard = store.lock("a", Mode::Exclusive, |_| {
        held = None;
        Wait::Again
    });
    assert!(guard.is_ok());
}

#[test]
fn a_lock_vanishes_with_a_killed_process() {
    let sandbox = Sandbox::new();
    let mut helper = Helper::start("locks::helper_locks_and_hangs", sandbox.store.root());
    helper.wait_for("locked");
    assert!(sandbox.store.try_lock("a", Mode::Shared).unwrap().is_none());
    helper.kill();
    assert!(sandbox.store.try_lock("a", Mode::Exclusive).unwrap().is_some());
}

#[test]
#[ignore = "the body of a second process, started by a_lock_vanishes_with_a_killed_process"]
fn helper_locks_and_hangs() {
    let Some(store) = helper_store() else { return };
    let _held = store.try_lock("a", Mode::Exclusive).unwrap().unwrap();
    say("locked");
    until_told();
}

#[test]
fn a_lock_name_with_a_slash_is_refused() {
    let Sandbox { store, .. } = &Sandbox::new();
    let result = store.try_lock("../a", Mode::Shared);
    assert!(matches!(result, Err(Error::BadLockName { .. })));
}
