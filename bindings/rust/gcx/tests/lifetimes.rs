//! Objects are dropped in any order and thread, are refused in a forked child, and may be alive as
//! the process exits. Each test starts a process, because leases and contexts belong to the
//! process.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{holds_in_a_child, in_process, Captured, Probes};
use gcx::{Cancel, Context, Device, ErrorKind, Graph, Lease, Partition, Result, Stream};

fn first_of(device: u32) -> Result<Partition> {
    Partition::new(&Device::new(device)?.sms()?.split([24])?[0])
}

fn lease(device: u32, sms: u32) -> Lease {
    Lease::acquire(&Device::new(device).unwrap(), sms).unwrap()
}

fn graph_of(probes: &Probes, stream: &Stream) -> Graph {
    Captured::new(stream, || probes.launch(stream, 0)).graph()
}

#[test]
fn dropped_in_any_order_and_thread() {
    in_process("dropped_in_any_order_and_thread", || {
        let probes = Probes::new();
        for order in 0..24usize {
            let part = first_of(1).unwrap();
            let context = Context::new(part.sms()).unwrap();
            let shared = Arc::new(context.stream().unwrap());
            let lease = lease(0, 32);
            let stream = lease.stream().unwrap();
            let graph = graph_of(&probes, &stream);
            graph.launch([&stream]).unwrap(); // in flight while all is dropped
            let mut things: Vec<Box<dyn Send>> = vec![
                Box::new(shared.record().unwrap()),
                Box::new(stream.record().unwrap()),
                Box::new(part),
                Box::new(context),
                Box::new(Arc::clone(&shared)),
                Box::new(lease),
                Box::new(stream),
                Box::new(graph),
                Box::new(Cancel::new().unwrap()),
            ];
            let mut rest = order;
            while !things.is_empty() {
                let thing = things.remove(rest % things.len());
                rest /= 2;
                std::thread::spawn(move || drop(thing)).join().unwrap();
            }
            assert!(shared.query().unwrap()); // the stream keeps its context
            assert_eq!(gcx::leases().unwrap(), []);
        }
        let live = gcx::live_contexts().unwrap();
        assert!(live.iter().all(|context| context.handle_count + context.stream_count == 0));
    });
}

#[test]
fn forked_child_is_refused() {
    in_process("forked_child_is_refused", || {
        let part = first_of(0).unwrap();
        assert!(holds_in_a_child(|| {
            let error = part.synchronize().unwrap_err();
            let created = Context::new(part.sms()).unwrap_err();
            [error.kind(), created.kind()] == [ErrorKind::NotInitialized; 2]
        }));
        part.synchronize().unwrap();
    });
}

#[test]
fn exit_with_live_objects() {
    in_process("exit_with_live_objects", || {
        thread_local! {
            static OF_THE_THREAD: std::cell::RefCell<Vec<(Partition, Lease, Graph)>> =
                const { std::cell::RefCell::new(Vec::new()) };
        }
        let probes = Probes::new();
        let part: &'static Partition = Box::leak(Box::new(first_of(0).unwrap()));
        let leaked: &'static Lease = Box::leak(Box::new(lease(0, 100)));
        let graph = Arc::new(graph_of(&probes, part.stream()));
        let of_thread = (first_of(1).unwrap(), lease(1, 24), graph_of(&probes, part.stream()));
        OF_THE_THREAD.with(|things| things.borrow_mut().push(of_thread));
        std::mem::forget(part.stream().record().unwrap());
        let cancel: &'static Cancel = Box::leak(Box::new(Cancel::new().unwrap()));
        std::thread::spawn(move || {
            // It waits until the process has exited.
            let builder = Device::new(0).unwrap().lease().timeout(Duration::MAX).cancel(cancel);
            drop(builder.sm_count(64).acquire());
        });
        while gcx::leases().unwrap().len() != 3 {
            std::thread::yield_now();
        }
        for _ in 0..3 {
            let graph = Arc::clone(&graph);
            std::thread::spawn(move || loop {
                // The driver may have ended already.
                let _ = part.context().stream().and_then(|stream| stream.query());
                let _ = leaked.stream().and_then(|stream| stream.query());
                let _ = leaked.resize(96);
                let _ = graph.launch([part.stream()]);
            });
        }
        std::thread::sleep(Duration::from_millis(50));
        part.context().with_current(|| std::process::exit(0)).unwrap();
    });
}
