//! What a hostile program does with leases: two devices mixed up, things dropped in any order and in
//! any thread, changes while others submit work, a device that is reset, a fork, a process that ends
//! with everything alive. Every test starts a process of its own, for leases are the process's.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{alone, alone_on, duration, holds_in_a_child, reset_device, Work};
use gcx::{Cancel, Device, ErrorKind, Lease, Resize, Sms};

fn lease(device: u32, sms: impl Into<Sms>) -> Lease {
    Lease::acquire(&Device::new(device).unwrap(), sms).unwrap()
}

#[test]
fn two_devices() {
    alone("two_devices", || {
        let (a, b) = (lease(0, None), lease(1, None));
        assert_eq!((a.sm_count().unwrap(), b.info().unwrap().device), (132, 1));
        a.resize(32).unwrap();
        let both = [(&a, Sms::Count(24)), (&b, Sms::Count(24))];
        let mixed = ErrorKind::InvalidResourceConfiguration;
        assert_eq!(gcx::resize(&both, Resize::new()).unwrap_err().kind(), mixed);
        assert_eq!(gcx::prepare(&both).unwrap_err().kind(), mixed);
        let refused = a.hand_over(&b).unwrap_err();
        assert_eq!(refused.error.kind(), mixed);
        let a = refused.lease;
        assert_eq!(a.sm_count().unwrap(), 32);
        b.resize(24).unwrap();
        let (first, second) = (a.stream().unwrap(), b.stream().unwrap());
        first.wait(&second).unwrap(); // waiting works across devices
        assert_eq!(Device::new(1).unwrap().leases().unwrap().len(), 1);
        assert_eq!(gcx::leases().unwrap().len(), 2);
        drop(a);
        assert_eq!(second.sm_ids().unwrap().len(), 24);
        assert_eq!(first.query().unwrap_err().kind(), ErrorKind::ContextDestroyed);
    });
}

#[test]
fn dropped_in_any_order_and_thread() {
    alone("dropped_in_any_order_and_thread", || {
        let work = Work::new();
        for order in 0..24usize {
            let (one, two) = (lease(0, 24), lease(0, 32));
            let streams = [one.stream().unwrap(), one.stream().unwrap(), two.stream().unwrap()];
            for stream in &streams {
                work.spin(stream, 1).unwrap();
            }
            let event = streams[0].record().unwrap();
            let mut things: Vec<Box<dyn Send>> =
                vec![Box::new(one), Box::new(two), Box::new(event)];
            things.extend(streams.map(|stream| Box::new(stream) as Box<dyn Send>));
            things.push(Box::new(Cancel::new().unwrap()));
            let mut rest = order;
            while !things.is_empty() {
                let thing = things.remove(rest % things.len());
                rest /= 2;
                std::thread::spawn(move || drop(thing)).join().unwrap();
            }
            assert_eq!(gcx::leases().unwrap(), []);
        }
        // What was left is all there again.
        assert_eq!(lease(0, None).sm_count().unwrap(), 132);
    });
}

/// The sizes change in one thread, while others take native streams and submit work to them, make
/// and drop streams, and a further lease comes and goes.
#[test]
fn changes_while_others_submit() {
    alone("changes_while_others_submit", || {
        let work = Work::new();
        let (decode, prefill) = (lease(0, 32), lease(0, 64));
        let stream = decode.stream().unwrap();
        let (end, stop) = (Instant::now() + duration(), AtomicBool::new(false));
        let (submitted, changed, short) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let own = prefill.stream().unwrap();
                        own.wait(&stream).unwrap();
                        stream.wait(&own).unwrap();
                        assert!([32, 64].contains(&stream.sm_count().unwrap()));
                        assert!(decode.info().unwrap().sm_count <= 64);
                        submitted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let builder = Device::new(0).unwrap().lease().timeout(Duration::from_millis(5));
                    match builder.clone().sm_count(40).acquire() {
                        Ok(third) => work.spin(&third.stream().unwrap(), 1).unwrap(),
                        Err(error) => assert_eq!(error.kind(), ErrorKind::AlreadyAcquired),
                    }
                    short.fetch_add(1, Ordering::Relaxed);
                }
            });
            scope.spawn(|| {
                let mut large = false;
                while Instant::now() < end {
                    large = !large;
                    let (a, b) = if large { (64, 32) } else { (32, 64) };
                    let sizes = [(&decode, Sms::Count(a)), (&prefill, Sms::Count(b))];
                    let how = if large { Resize::new() } else { Resize::new().at_once() };
                    gcx::resize(&sizes, how).unwrap();
                    changed.fetch_add(1, Ordering::Relaxed);
                }
                stop.store(true, Ordering::Relaxed);
            });
        });
        let counts = [submitted, changed, short].map(AtomicU64::into_inner);
        assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
        assert_eq!(decode.info().unwrap().changes, counts[1]);
        decode.synchronize().unwrap();
        prefill.synchronize().unwrap();
        assert!(gcx::verify([&stream, &prefill.stream().unwrap()]).unwrap().is_ok());
    });
}

#[test]
fn a_device_that_is_reset() {
    // From CUDA 13.0 on drivers refuse to reset a device with green contexts.
    alone_on("sim:h100@12.8", "a_device_that_is_reset", || {
        let (held, other) = (lease(0, 24), lease(0, 32));
        let stream = held.stream().unwrap();
        reset_device();
        let gone = ErrorKind::ContextDestroyed;
        assert_eq!(stream.native().unwrap_err().kind(), gone);
        assert_eq!(held.info().unwrap_err().kind(), gone);
        assert_eq!(held.sms().unwrap_err().kind(), gone);
        assert_eq!(held.stream().unwrap_err().kind(), gone);
        assert_eq!(held.resize(32).unwrap_err().kind(), gone);
        assert_eq!(held.synchronize().unwrap_err().kind(), gone);
        assert_eq!(held.query().unwrap_err().kind(), gone);
        assert_eq!(format!("{held:?}"), "Lease(GCX_ERROR_CONTEXT_IS_DESTROYED)");
        assert_eq!(held.hand_over(&other).unwrap_err().error.kind(), gone);
        drop((stream, other));
        let fresh = lease(0, None);
        assert_eq!(fresh.stream().unwrap().sm_ids().unwrap().len(), 132);
    });
}

#[test]
fn a_forked_child() {
    alone("a_forked_child", || {
        let (held, cancel) = (lease(0, 24), Cancel::new().unwrap());
        let device = Device::new(0).unwrap();
        assert!(holds_in_a_child(|| {
            let errors = [
                held.info().unwrap_err(),
                held.resize(32).unwrap_err(),
                Lease::acquire(&device, 8).unwrap_err(),
                cancel.signal().unwrap_err(),
            ];
            // SAFETY: they are dropped in the child alone, whose copies of them these are.
            drop(unsafe { (std::ptr::read(&held), std::ptr::read(&cancel)) });
            errors.iter().all(|error| error.kind() == ErrorKind::NotInitialized)
        }));
        assert_eq!(held.sm_count().unwrap(), 24);
    });
}

#[test]
fn exit_with_leases_alive() {
    alone("exit_with_leases_alive", || {
        thread_local! {
            static OF_THE_THREAD: std::cell::RefCell<Vec<Lease>> =
                const { std::cell::RefCell::new(Vec::new()) };
        }
        let held = Arc::new(lease(0, 100));
        OF_THE_THREAD.with(|leases| leases.borrow_mut().push(lease(1, 24)));
        let cancel: &'static Cancel = Box::leak(Box::new(Cancel::new().unwrap()));
        std::thread::spawn(move || {
            // It waits for what never comes, until the process is gone.
            let builder = Device::new(0).unwrap().lease().timeout(Duration::MAX).cancel(cancel);
            drop(builder.sm_count(64).acquire());
        });
        while gcx::leases().unwrap().len() != 3 {
            std::thread::yield_now();
        }
        for _ in 0..3 {
            let held = Arc::clone(&held);
            std::thread::spawn(move || loop {
                // While the process exits the driver may have ended already.
                let _ = held.stream().and_then(|stream| stream.query());
                let _ = held.resize(96);
            });
        }
        std::thread::sleep(Duration::from_millis(50));
        std::process::exit(0);
    });
}

/// Whoever uses a stream meanwhile is told, and whoever waits has the SMs.
#[test]
fn dropped_while_others_use_its_streams() {
    alone("dropped_while_others_use_its_streams", || {
        for _ in 0..20 {
            let held = lease(0, 100);
            let streams = [held.stream().unwrap(), held.stream().unwrap()];
            std::thread::scope(|scope| {
                for stream in &streams {
                    scope.spawn(move || loop {
                        let used = stream
                            .native()
                            .and_then(|_| stream.record())
                            .and_then(|event| stream.wait(&event))
                            .and_then(|()| stream.synchronize());
                        if let Err(error) = used {
                            assert_eq!(error.kind(), ErrorKind::ContextDestroyed, "{error}");
                            assert!(error.message().contains("was released"), "{error}");
                            return;
                        }
                    });
                }
                let next = scope.spawn(|| {
                    let builder = Device::new(0).unwrap().lease().sm_count(64);
                    builder.timeout(Duration::MAX).acquire().unwrap()
                });
                while gcx::leases().unwrap().len() != 2 {
                    std::thread::yield_now();
                }
                drop(held);
                assert_eq!(next.join().unwrap().sm_count().unwrap(), 64);
            });
        }
        assert_eq!(gcx::leases().unwrap(), []);
    });
}
