//! What a hostile program does: two devices mixed up, things dropped in any order and in any thread,
//! a device that is reset, a process that ends with everything alive. Each answers with an error, or
//! does nothing wrong. Every test starts a process of its own, for the driver, the cache and the
//! device are the process's.

mod common;

use std::sync::Arc;

use common::{alone, alone_on, reset_device};
use gcx::{Context, Device, ErrorKind, Event, Partition, Result};

fn first_of(device: u32) -> Result<Partition> {
    Partition::new(&Device::new(device)?.sms()?.split([24])?[0])
}

#[test]
fn two_devices() {
    alone("two_devices", || {
        assert_eq!(gcx::devices().unwrap().len(), 2);
        let (a, b) = (first_of(0).unwrap(), first_of(1).unwrap());
        assert_eq!(a.sms().overlap(b.sms()).unwrap(), 0);
        assert!(a.sms().is_disjoint(b.sms()).unwrap());
        let kind = a.sms().union(b.sms()).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::InvalidResourceConfiguration);
        let mixed = Context::builder().sms(a.sms()).sms(b.sms()).build().unwrap_err();
        assert_eq!(mixed.kind(), ErrorKind::InvalidResourceConfiguration);
        let event = Event::new(1).unwrap();
        let wrong = a.stream().record_into(&event).unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::InvalidHandle);
        let wrong = a.context().record_into(&event).unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::InvalidHandle);
        a.wait(&b).unwrap(); // waiting works across devices
        let both = gcx::verify([a.stream(), b.stream()]).unwrap_err();
        assert_eq!(both.kind(), ErrorKind::InvalidValue);
        assert_eq!(Device::new(2).unwrap_err().kind(), ErrorKind::InvalidDevice);
    });
}

#[test]
fn dropped_in_any_order_and_thread() {
    alone("dropped_in_any_order_and_thread", || {
        for order in 0..24usize {
            let part = first_of(0).unwrap();
            let context = Context::new(part.sms()).unwrap();
            let stream = Arc::new(context.stream().unwrap());
            let event = stream.record().unwrap();
            let mut things: Vec<Box<dyn Send>> = vec![
                Box::new(part),
                Box::new(context),
                Box::new(Arc::clone(&stream)),
                Box::new(event),
            ];
            let mut rest = order;
            while !things.is_empty() {
                let thing = things.remove(rest % things.len());
                rest /= 2;
                std::thread::spawn(move || drop(thing)).join().unwrap();
            }
            assert!(stream.query().unwrap());
        }
        assert!(gcx::live_contexts().unwrap().is_empty());
    });
}

#[test]
fn nothing_is_kept_without_room() {
    alone("nothing_is_kept_without_room", || {
        // SAFETY: nobody names a stream that was given up.
        unsafe { gcx::set_cache_limit(0) }.unwrap();
        let before = gcx::cache_stats().unwrap();
        drop(first_of(0).unwrap());
        let after = gcx::cache_stats().unwrap();
        assert_eq!((after.limit, after.kept, after.in_use), (0, 0, 0));
        assert_eq!(after.misses, before.misses + 1);
        assert!(after.evicted > before.evicted && after.hits == before.hits && after.lost == 0);
    });
}

#[test]
fn a_device_that_is_reset() {
    // From CUDA 13.0 on drivers refuse to reset a device with green contexts.
    alone_on("sim:h100@12.8", "a_device_that_is_reset", || {
        let part = first_of(0).unwrap();
        let event = part.stream().record().unwrap();
        reset_device();
        let gone = ErrorKind::ContextDestroyed;
        assert_eq!(part.stream().synchronize().unwrap_err().kind(), gone);
        assert_eq!(part.stream().native().unwrap_err().kind(), gone);
        assert_eq!(part.stream().info().unwrap_err().kind(), gone);
        assert_eq!(part.context().info().unwrap_err().kind(), gone);
        assert_eq!(part.context().native().unwrap_err().kind(), gone);
        assert_eq!(part.context().native_green().unwrap_err().kind(), gone);
        assert_eq!(part.context().stream().unwrap_err().kind(), gone);
        assert_eq!(part.context().with_current(|| ()).unwrap_err().kind(), gone);
        assert_eq!(event.native().unwrap_err().kind(), gone);
        assert_eq!(format!("{part:?}").matches("DESTROYED").count(), 2);
        let again = Partition::new(part.sms()).unwrap();
        again.synchronize().unwrap();
        drop((part, event));
        assert_eq!(again.sm_count(), 24);
    });
}

#[test]
fn a_forked_child() {
    alone("a_forked_child", || {
        extern "C" {
            fn fork() -> i32;
            fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
            fn _exit(status: i32) -> !;
        }
        let part = first_of(0).unwrap();
        // SAFETY: the child calls gcx alone and ends at once.
        unsafe {
            let child = fork();
            if child == 0 {
                let error = part.synchronize().unwrap_err();
                let made = Context::new(part.sms()).unwrap_err();
                drop(part);
                let right = ErrorKind::NotInitialized;
                _exit(i32::from(error.kind() != right || made.kind() != right));
            }
            let mut status = -1;
            assert_eq!(waitpid(child, &mut status, 0), child);
            assert_eq!(status, 0);
        }
        part.synchronize().unwrap();
    });
}

#[test]
fn exit_with_everything_alive() {
    alone("exit_with_everything_alive", || {
        thread_local! {
            static OF_THE_THREAD: std::cell::RefCell<Vec<Partition>> =
                const { std::cell::RefCell::new(Vec::new()) };
        }
        let part = first_of(0).unwrap();
        OF_THE_THREAD.with(|parts| parts.borrow_mut().push(first_of(1).unwrap()));
        std::mem::forget(part.stream().record().unwrap());
        let shared: &'static Partition = Box::leak(Box::new(part));
        for _ in 0..4 {
            std::thread::spawn(move || loop {
                // While the process exits the driver may have ended already.
                let _ = shared.context().stream().and_then(|stream| stream.query());
            });
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        shared.context().with_current(|| std::process::exit(0)).unwrap();
    });
}
