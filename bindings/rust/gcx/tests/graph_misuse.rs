//! What a hostile program does with graphs: wrong streams, many threads, leases that change beneath
//! them, things dropped in any order, a reset, a fork, an exit. Every test starts a process.

mod common;

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use common::graphs::{capture, Captured, Probes, THREADS};
use common::{
    alone, alone_on, begin_capture, duration, end_capture, holds_in_a_child, reset_device,
};
use gcx::{Context, Device, ErrorKind, Graph, KernelParams, Lease, Resize, Result, Sms, Stream};

fn stream_of(device: u32, sm_count: u32) -> Stream {
    let sms = Device::new(device).unwrap().sms().unwrap();
    Context::new(&sms.split([sm_count]).unwrap()[0]).unwrap().stream().unwrap()
}

fn captured_of(probes: &Probes, stream: &Stream) -> Captured {
    capture(stream, || {
        probes.launch(stream, 0);
        probes.launch(stream, 1);
    })
}

fn graph_of(captured: &Captured) -> Graph {
    // SAFETY: the graph is alive; what it works on stays as long as the process.
    unsafe { Graph::from_native(captured.native()) }.unwrap()
}

#[test]
fn wrong_graphs_and_streams() {
    alone("wrong_graphs_and_streams", || {
        let probes = Probes::new();
        // SAFETY: NULL is refused.
        let null = unsafe { Graph::from_native(ptr::null_mut()) }.unwrap_err();
        assert_eq!(null.kind(), ErrorKind::InvalidValue);
        let (stream, other) = (stream_of(0, 24), stream_of(1, 24));
        let nothing = capture(&stream, || {});
        // SAFETY: the graph is alive.
        let empty = unsafe { Graph::from_native(nothing.native()) }.unwrap_err();
        assert_eq!(empty.kind(), ErrorKind::InvalidContext);

        let graph = graph_of(&captured_of(&probes, &stream));
        let kind = |result: Result<()>| result.unwrap_err().kind();
        assert_eq!(kind(graph.launch(&other)), ErrorKind::InvalidDevice);
        assert_eq!(kind(graph.prepare([&other.sms().unwrap()])), ErrorKind::InvalidDevice);
        begin_capture(&stream).unwrap();
        assert_eq!(kind(graph.launch(&stream)), ErrorKind::Capture);
        end_capture(&stream).unwrap();
        let lease = Lease::acquire(&Device::new(0).unwrap(), 24).unwrap();
        let of_lease = lease.stream().unwrap();
        graph.launch(&of_lease).unwrap();
        drop(lease);
        assert_eq!(kind(graph.launch(&of_lease)), ErrorKind::ContextDestroyed);
        graph.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(graph.info().unwrap().launches, 2);
    });
}

/// Launches in a lease that changes, parameters that change, parts and executables made, all at once.
#[test]
fn everything_at_once() {
    alone("everything_at_once", || {
        let probes = Probes::new();
        let device = Device::new(0).unwrap();
        let lease = Lease::acquire(&device, 24).unwrap();
        let stream = lease.stream().unwrap();
        let graph = graph_of(&captured_of(&probes, &stream));
        let again = captured_of(&probes, &stream);
        let plain = stream_of(0, 64);
        let (end, stop) = (Instant::now() + duration(), AtomicBool::new(false));
        let launches = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for own in [&stream, &plain] {
                let (graph, stop, launches) = (&graph, &stop, &launches);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        graph.launch(own).unwrap();
                        launches.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let arguments = probes.arguments(2);
                    let params = KernelParams::new([64, 1, 1], [32, 1, 1]).arguments(&arguments);
                    // SAFETY: the arguments are the kernel's; the graph is alive.
                    unsafe {
                        graph.set_kernel(1, &params).unwrap();
                        assert!([32, THREADS].contains(
                            &graph.nodes().unwrap()[1].kernel.as_ref().unwrap().block[0]
                        ));
                        graph.update(again.native()).unwrap();
                    }
                    let sms = Device::new(0).unwrap().sms().unwrap();
                    graph.prepare(&sms.split([40]).unwrap()).unwrap();
                }
            });
            scope.spawn(|| {
                let mut sizes = [24, 64, 32].iter().cycle();
                while Instant::now() < end {
                    let size = Sms::Count(*sizes.next().unwrap());
                    lease.resize_with(size, Resize::new().at_once()).unwrap();
                    // The first launches make executables; a debug build is slow at that.
                    std::thread::yield_now();
                }
                stop.store(true, Ordering::Relaxed);
            });
        });
        assert_eq!(graph.info().unwrap().launches, launches.into_inner());
        lease.synchronize().unwrap();
        plain.synchronize().unwrap();
        drop([probes.take(0), probes.take(1), probes.take(2)]);
        graph.launch(&stream).unwrap();
        lease.synchronize().unwrap();
        assert_eq!(probes.take(0), stream.sm_ids().unwrap());
    });
}

#[test]
fn dropped_in_any_order_and_thread() {
    alone("dropped_in_any_order_and_thread", || {
        let probes = Probes::new();
        for order in 0..12usize {
            let lease = Lease::acquire(&Device::new(0).unwrap(), 24).unwrap();
            let stream = lease.stream().unwrap();
            let plain = stream_of(0, 64);
            let graph = Arc::new(graph_of(&captured_of(&probes, &stream)));
            graph.launch(&stream).unwrap();
            graph.launch(&plain).unwrap();
            let mut things: Vec<Box<dyn Send>> = vec![
                Box::new(lease),
                Box::new(stream),
                Box::new(plain),
                Box::new(Arc::clone(&graph)),
                Box::new(graph),
            ];
            let mut rest = order;
            while !things.is_empty() {
                let thing = things.remove(rest % things.len());
                rest /= 2;
                std::thread::spawn(move || drop(thing)).join().unwrap();
            }
            // That of a lease which had work is remembered for who has its SMs next.
            let live = gcx::live_contexts().unwrap();
            assert!(live.iter().all(|context| context.handle_count + context.stream_count == 0));
            assert!(live.iter().all(|context| context.sm_count != 64), "{live:?}");
        }
    });
}

#[test]
fn a_device_that_is_reset() {
    // From CUDA 13.0 on drivers refuse to reset a device with green contexts.
    alone_on("sim:h100@12.8", "a_device_that_is_reset", || {
        let probes = Probes::new();
        let stream = stream_of(0, 24);
        let graph = graph_of(&captured_of(&probes, &stream));
        graph.launch(&stream).unwrap();
        reset_device();
        let gone = ErrorKind::ContextDestroyed;
        assert_eq!(graph.launch(&stream).unwrap_err().kind(), gone);
        assert_eq!(graph.launch(&stream_of(0, 24)).unwrap_err().kind(), gone);
        assert_eq!(graph.prepare([&stream_of(0, 24).sms().unwrap()]).unwrap_err().kind(), gone);
        assert_eq!(graph.set_part(&[0], 0).unwrap_err().kind(), gone);
        assert_eq!(graph.info().unwrap_err().kind(), gone);
        assert_eq!(graph.nodes().unwrap_err().kind(), gone);
        assert_eq!(format!("{graph:?}"), "Graph(GCX_ERROR_CONTEXT_IS_DESTROYED)");
    });
}

#[test]
fn a_forked_child() {
    alone("a_forked_child", || {
        let probes = Probes::new();
        let stream = stream_of(0, 24);
        let graph = graph_of(&captured_of(&probes, &stream));
        assert!(holds_in_a_child(|| {
            let errors = [graph.launch(&stream).err(), graph.info().err(), stream.sms().err()];
            // SAFETY: the graph is dropped in the child alone, whose copy of it this is.
            drop(unsafe { ptr::read(&graph) });
            errors.iter().all(|error| {
                error.as_ref().map(gcx::Error::kind) == Some(ErrorKind::NotInitialized)
            })
        }));
        graph.launch(&stream).unwrap();
    });
}

#[test]
fn exit_with_graphs_alive() {
    alone("exit_with_graphs_alive", || {
        thread_local! {
            static OF_THE_THREAD: std::cell::RefCell<Vec<Graph>> =
                const { std::cell::RefCell::new(Vec::new()) };
        }
        let probes = Probes::new();
        let stream = Arc::new(stream_of(0, 24));
        let captured = captured_of(&probes, &stream);
        OF_THE_THREAD.with(|graphs| graphs.borrow_mut().push(graph_of(&captured)));
        let graph = Arc::new(graph_of(&captured));
        for _ in 0..3 {
            let (graph, stream) = (Arc::clone(&graph), Arc::clone(&stream));
            std::thread::spawn(move || loop {
                // While the process exits the driver may have ended already.
                let _ = graph.launch(&*stream);
            });
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::mem::forget(captured);
        std::process::exit(0);
    });
}
