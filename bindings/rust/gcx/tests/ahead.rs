//! Contexts ahead of time, what is kept and trimmed, and what of a kernel fits. What is kept is the
//! process's, so that every test starts one.

mod common;

use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, AssertUnwindSafe};

use common::alone;
use common::graphs::Probes;
use gcx::cache::{prepare, prepare_with, set_limit, stats, trim, PrepareOptions};
use gcx::{Cancel, Context, Device, ErrorKind, KernelShape, Lease, SmResource};

fn layouts(counts: &[u32]) -> Vec<SmResource> {
    let sms = Device::new(0).unwrap().sms().unwrap();
    counts.iter().map(|&count| sms.split([count]).unwrap()[0]).collect()
}

#[test]
fn progress_is_told_and_may_call_gcx() {
    alone("progress_is_told_and_may_call_gcx", || {
        let (outer, inner) = (layouts(&[24, 32, 64]), layouts(&[8, 16]));
        let steps = RefCell::new(Vec::new());
        let told = PrepareOptions::new().progress(|done, count| {
            // Its errors are its own, and it may prepare too.
            assert!(Device::new(77).is_err());
            let nested = PrepareOptions::new().progress(|done, count| {
                steps.borrow_mut().push((done, count));
            });
            prepare_with(&inner, nested).unwrap();
            steps.borrow_mut().push((done, count));
        });
        assert!(format!("{told:?}").contains("progress: true"));
        prepare_with(&outer, told).unwrap();
        let (a, b) = ((1, 2), (2, 2));
        assert_eq!(*steps.borrow(), [a, b, (1, 3), a, b, (2, 3), a, b, (3, 3)]);
        assert_eq!(stats().unwrap().prepared, 5);
    });
}

#[test]
fn given_up() {
    alone("given_up", || {
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
        let refused = prepare_with(&layouts, options()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotPermitted);
        assert!(refused.message().contains("2 of 4"), "{refused}");
        assert_eq!((last.get(), stats().unwrap().kept), (2, 2));
        // For good.
        assert_eq!(prepare_with(&layouts, options()).unwrap_err().kind(), ErrorKind::NotPermitted);
        assert_eq!((last.get(), stats().unwrap().kept), (2, 2));
    });
}

/// Counts itself as it is dropped.
struct Counted<'a>(&'a Cell<u32>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn progress_that_panics() {
    alone("progress_that_panics", || {
        let layouts = layouts(&[8, 16, 24, 32]);
        let (calls, dropped, cancel) = (Cell::new(0), Cell::new(0), Cancel::new().unwrap());
        let panics = |options: PrepareOptions<'_>| {
            let owned = Counted(&dropped);
            let options = options.progress(|_, _| {
                let _kept = &owned;
                calls.set(calls.get() + 1);
                if calls.get() % 2 == 0 {
                    std::panic::panic_any(String::from("as meant"));
                }
            });
            let caught = catch_unwind(AssertUnwindSafe(|| prepare_with(&layouts, options)));
            let panic = caught.expect_err("the panic goes on in the caller");
            assert_eq!(panic.downcast_ref::<String>().unwrap(), "as meant");
        };
        // Without a cancel of the caller's the rest is given up.
        panics(PrepareOptions::new());
        assert_eq!((calls.get(), dropped.get(), stats().unwrap().kept), (2, 1, 2));
        // That one is signalled by nobody else: the rest is made, and it isn't told of that.
        panics(PrepareOptions::new().cancel(&cancel));
        assert_eq!((calls.get(), dropped.get(), stats().unwrap().kept), (4, 2, 4));
        prepare_with(&layouts, PrepareOptions::new().cancel(&cancel)).unwrap();
    });
}

#[test]
fn limits_and_trimming() {
    alone("limits_and_trimming", || {
        let layouts = layouts(&[8, 16, 24, 32]);
        // SAFETY: nobody names a stream that was given up.
        unsafe { set_limit(40) }.unwrap();
        prepare(&layouts).unwrap();

        let used = Context::new(&layouts[3]).unwrap();
        drop(used.stream().unwrap());
        drop(Context::new(&layouts[0]).unwrap().stream().unwrap());
        assert_eq!((stats().unwrap().kept, stats().unwrap().kept_streams), (3, 2));
        // SAFETY: nobody names a stream that was given up.
        let trimmed = unsafe { trim(1) }.unwrap();
        assert_eq!((trimmed.contexts, trimmed.contexts_left, trimmed.streams_left), (2, 0, 0));
        assert_eq!(trimmed.streams, 2);
        assert!(trimmed.bytes > 0);
        let now = stats().unwrap();
        assert_eq!((now.kept, now.in_use, now.kept_streams, now.limit), (1, 1, 0, 40));
    });
}

#[test]
fn what_fits() {
    alone("what_fits", || {
        let probes = Probes::new();
        let lease = Lease::acquire(&Device::new(0).unwrap(), 24).unwrap();
        let stream = lease.stream().unwrap();
        // SAFETY: it is a kernel of a library that stays as long as the process, or it is refused.
        let fit = |shape| unsafe { stream.kernel_fit(probes.function(), shape) };
        let plain = fit(KernelShape::new(256)).unwrap();
        assert_eq!((plain.sm_count, plain.max_blocks), (24, 24 * plain.blocks_per_sm));
        assert!(plain.blocks_per_sm > 0 && plain.max_cluster_blocks >= 1);
        assert_eq!(plain.max_clusters, 0);
        let pairs = fit(KernelShape::new(256).cluster_blocks(2)).unwrap();
        assert!(pairs.max_clusters > 0);
        assert_eq!(pairs.max_blocks, 2 * pairs.max_clusters);
        let shared = fit(KernelShape::new(256).dynamic_shared_bytes(32 << 10)).unwrap();
        assert!(shared.blocks_per_sm < plain.blocks_per_sm);
        lease.resize(64).unwrap();
        assert_eq!(fit(KernelShape::new(256)).unwrap().sm_count, 64);
        // SAFETY: NULL is refused.
        let null = unsafe { stream.kernel_fit(std::ptr::null_mut(), KernelShape::new(32)) };
        assert_eq!(null.unwrap_err().kind(), ErrorKind::InvalidValue);
    });
}
