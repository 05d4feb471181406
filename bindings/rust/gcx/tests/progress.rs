//! Contexts that are created ahead of time: the callback, its panics, and cancellation. The cache
//! is the process's, so each test starts one.

mod common;

use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, panic_any, AssertUnwindSafe};

use common::in_process;
use gcx::cache::{prepare_with, stats, PrepareOptions};
use gcx::{Cancel, Device, ErrorKind, SmResource};

fn layouts(counts: &[u32]) -> Vec<SmResource> {
    let sms = Device::new(0).unwrap().sms().unwrap();
    counts.iter().map(|&count| sms.split([count]).unwrap()[0]).collect()
}

#[test]
fn progress_may_call_gcx() {
    in_process("progress_may_call_gcx", || {
        let (outer, inner) = (layouts(&[24, 32, 64]), layouts(&[8, 16]));
        let steps = RefCell::new(Vec::new()); // which the function may use: it needn't be Send
        let options = PrepareOptions::new().progress(|done, count| {
            // It has its own errors, and may prepare too.
            assert!(Device::new(77).is_err());
            let nested = PrepareOptions::new().progress(|done, count| {
                steps.borrow_mut().push((done, count));
            });
            prepare_with(&inner, nested).unwrap();
            steps.borrow_mut().push((done, count));
        });
        assert!(format!("{options:?}").contains("progress: true"));
        prepare_with(&outer, options).unwrap();
        let (a, b) = ((1, 2), (2, 2));
        assert_eq!(*steps.borrow(), [a, b, (1, 3), a, b, (2, 3), a, b, (3, 3)]);
        assert_eq!(stats().unwrap().prepared, 5);
    });
}

#[test]
fn cancel_in_progress_ends_the_rest() {
    in_process("cancel_in_progress_ends_the_rest", || {
        let layouts = layouts(&[8, 16, 24, 32]);
        let (cancel, last) = (Cancel::new().unwrap(), Cell::new(0));
        let options = || {
            PrepareOptions::new().cancel(&cancel).progress(|done, _| {
                last.set(done);
                if done == 2 {
                    cancel.signal().unwrap();
                }
            })
        };
        for _ in 0..2 {
            let refused = prepare_with(&layouts, options()).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Cancelled);
            assert_eq!((last.get(), stats().unwrap().cached), (2, 2));
        }
    });
}

/// Counts its drops.
struct Counted<'a>(&'a Cell<u32>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn panic_in_progress_continues_in_the_caller() {
    in_process("panic_in_progress_continues_in_the_caller", || {
        let layouts = layouts(&[8, 16, 24, 32]);
        let (calls, dropped, cancel) = (Cell::new(0), Cell::new(0), Cancel::new().unwrap());
        let panics = |options: PrepareOptions<'_>| {
            let owned = Counted(&dropped);
            let options = options.progress(|_, _| {
                let _owned = &owned;
                calls.set(calls.get() + 1);
                if calls.get() % 2 == 0 {
                    panic_any(String::from("intended"));
                }
            });
            let caught = catch_unwind(AssertUnwindSafe(|| prepare_with(&layouts, options)));
            let panic = caught.expect_err("the panic continues in the caller");
            assert_eq!(panic.downcast_ref::<String>().unwrap(), "intended");
        };
        // Without a cancel of the caller's, the rest is cancelled.
        panics(PrepareOptions::new());
        assert_eq!((calls.get(), dropped.get(), stats().unwrap().cached), (2, 1, 2));
        // With one, which isn't signalled, the rest is prepared without calling the function.
        panics(PrepareOptions::new().cancel(&cancel));
        assert_eq!((calls.get(), dropped.get(), stats().unwrap().cached), (4, 2, 4));
        prepare_with(&layouts, PrepareOptions::new().cancel(&cancel)).unwrap();
    });
}
