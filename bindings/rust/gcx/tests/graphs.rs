//! Graphs: captured once, launched on any SMs, changed, refused.

mod common;

use common::graphs::{capture, Captured, Probes, BLOCKS, THREADS};
use gcx::{
    Context, Device, Error, ErrorKind, Graph, GraphOptions, KernelParams, NodeKind, Result,
    SmResource, Stream,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Leases and the cache are the process's, so that tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sets<const N: usize>(counts: [u32; N]) -> Result<[SmResource; N]> {
    Ok(Device::new(0)?.sms()?.split_array(counts)?.0)
}

fn graph_of(captured: &Captured, options: GraphOptions) -> Result<Graph> {
    // SAFETY: the graph is alive; what it works on stays as long as the process.
    unsafe { Graph::from_native_with(captured.native(), options) }
}

/// A kernel, a memset and a kernel, one after the other.
fn chain(probes: &Probes, stream: &Stream) -> Captured {
    capture(stream, || {
        probes.launch(stream, 0);
        probes.clear(stream, 2);
        probes.launch(stream, 1);
    })
}

#[test]
fn runs_where_it_is_launched() -> Result<()> {
    let _turn = turn();
    let probes = Probes::new();
    let parts = Device::new(0)?.partition([24, 108])?;
    let captured = chain(&probes, parts[0].stream());
    // SAFETY: as above.
    let graph = unsafe { Graph::from_native(captured.native()) }?;
    drop(captured);
    for _ in 0..3 {
        for part in &parts {
            graph.launch(part)?;
            part.synchronize()?;
            let own = part.stream().sm_ids()?;
            assert_eq!((probes.take(0), probes.take(1)), (own.clone(), own));
        }
    }
    let info = graph.info()?;
    assert_eq!((info.device, info.node_priorities, info.part_count), (0, false, 1));
    assert_eq!((info.node_count, info.kernel_count), (3, 2));
    assert_eq!((info.made, info.launches, info.evicted), (2, 6, 0));
    assert_eq!((info.executables, info.max_executables), (2, 16));
    assert_eq!(format!("{graph:?}"), "Graph(3 nodes in 1 parts, device 0)");

    let nodes = graph.nodes()?;
    let kinds: Vec<_> = nodes.iter().map(|node| node.kind).collect();
    assert_eq!(kinds, [NodeKind::Kernel, NodeKind::Memset, NodeKind::Kernel]);
    assert!(nodes.iter().all(|node| node.parent.is_none() && node.part == 0));
    assert_eq!(nodes[1].kernel, None);
    let kernel = nodes[0].kernel.as_ref().expect("it is a kernel");
    assert_eq!((kernel.name.as_str(), kernel.cooperative), ("gcx_probe", false));
    assert_eq!(
        (kernel.grid, kernel.block, kernel.cluster),
        ([BLOCKS, 1, 1], [THREADS, 1, 1], None)
    );
    assert!(kernel.blocks_per_sm > 0);
    assert_eq!(kernel.shared_bytes, 0);
    Ok(())
}

/// Two streams, the second forked off the first and joined to it.
fn fork(probes: &Probes, one: &Stream, two: &Stream) -> Captured {
    capture(one, || {
        probes.launch(one, 0);
        two.wait(one).unwrap();
        probes.launch(two, 1);
        one.wait(two).unwrap();
        probes.launch(one, 2);
    })
}

#[test]
fn parts_have_sms_of_their_own() -> Result<()> {
    let _turn = turn();
    let probes = Probes::new();
    let device = Device::new(0)?;
    let (at_first, later) = (device.partition([24, 108])?, device.partition([64, 32])?);
    let captured = fork(&probes, at_first[0].stream(), at_first[1].stream());
    let graph = graph_of(&captured, GraphOptions::new())?;
    assert_eq!(graph.info()?.part_count, 2);
    let parts: Vec<_> = graph.nodes()?.iter().map(|node| node.part).collect();
    assert_eq!(parts, [0, 1, 0]);

    graph.prepare(later.iter().map(gcx::Partition::sms))?;
    let made = graph.info()?.made;
    graph.launch_parts(&later)?;
    later[0].synchronize()?;
    let (small, large) = (later[1].stream().sm_ids()?, later[0].stream().sm_ids()?);
    assert_eq!(
        [probes.take(0), probes.take(1), probes.take(2)],
        [&large, &small, &large].map(Vec::clone)
    );
    assert_eq!(graph.info()?.made, made);
    // All parts in one.
    graph.launch(&later[1])?;
    later[1].synchronize()?;
    assert_eq!([probes.take(0), probes.take(1), probes.take(2)], [(); 3].map(|()| small.clone()));

    graph.set_part(&[2], 1)?;
    graph.launch_parts([later[0].stream(), later[1].stream()])?;
    later[0].synchronize()?;
    assert_eq!([probes.take(0), probes.take(1), probes.take(2)], [large, small.clone(), small]);

    let kind = |result: Result<()>| result.unwrap_err().kind();
    let parts = graph.info()?.part_count;
    assert_eq!(kind(graph.set_part(&[], parts)), ErrorKind::InvalidValue);
    graph.set_part(&[], 0)
}

#[test]
fn kernels_are_given_other_parameters() -> Result<()> {
    let _turn = turn();
    let probes = Probes::new();
    let [small, large] = sets([24, 64])?;
    let (small, large) = (Context::new(&small)?.stream()?, Context::new(&large)?.stream()?);
    let graph = graph_of(&chain(&probes, &small), GraphOptions::new())?;
    for stream in [&small, &large] {
        graph.launch(stream)?;
        stream.synchronize()?;
    }
    drop((probes.take(0), probes.take(1)));
    let made = graph.info()?.made;
    let arguments = probes.arguments(3);
    let params = KernelParams::new([512, 2, 1], [128, 1, 1]).shared_bytes(1024);
    // SAFETY: the arguments are the kernel's, and the places stay as long as the process.
    unsafe { graph.set_kernel(0, &params.arguments(&arguments)) }?;
    for stream in [&small, &large] {
        graph.launch(stream)?;
        stream.synchronize()?;
        assert_eq!((probes.take(3), probes.take(0)), (stream.sm_ids()?, vec![]));
        assert_eq!(probes.take(1), stream.sm_ids()?);
    }
    // None are those that it has.
    // SAFETY: as above.
    unsafe { graph.set_kernel(0, &params.shared_bytes(0)) }?;
    graph.launch(&small)?;
    small.synchronize()?;
    assert_eq!(probes.take(3), small.sm_ids()?);
    assert_eq!(graph.info()?.made, made);
    let told = graph.nodes()?[0].kernel.clone().expect("it is a kernel");
    assert_eq!((told.grid, told.block, told.shared_bytes), ([512, 2, 1], [128, 1, 1], 0));

    let short = params.arguments(&arguments[..1]);
    // SAFETY: it is refused.
    let error: Error = unsafe { graph.set_kernel(0, &short) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidValue);
    Ok(())
}

#[test]
fn captured_again() -> Result<()> {
    let _turn = turn();
    let probes = Probes::new();
    let stream = Context::new(&sets([24])?[0])?.stream()?;
    let one = |place| capture(&stream, || probes.launch(&stream, place));
    let graph = graph_of(&one(0), GraphOptions::new())?;
    graph.launch(&stream)?;
    let other = one(2);
    // SAFETY: the graph is alive; what it works on stays as long as the process.
    unsafe { graph.update(other.native()) }?;
    drop(other);
    stream.synchronize()?;
    drop(probes.take(0));
    graph.launch(&stream)?;
    stream.synchronize()?;
    assert_eq!((probes.take(2).len(), probes.take(0).len()), (24, 0));

    let longer = chain(&probes, &stream);
    // SAFETY: as above.
    let differs = unsafe { graph.update(longer.native()) }.unwrap_err();
    assert_eq!(differs.kind(), ErrorKind::GraphUpdate, "{differs}");
    // SAFETY: NULL is refused.
    let null = unsafe { graph.update(std::ptr::null_mut()) }.unwrap_err();
    assert_eq!(null.kind(), ErrorKind::InvalidValue);
    Ok(())
}
