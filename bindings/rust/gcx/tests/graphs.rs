//! Graphs: what is passed to C, what comes back, and owners.

mod common;

use common::{Captured, Probes, BLOCKS, THREADS};
use gcx::{
    Device, ErrorKind, Graph, GraphOptions, KernelParams, KernelShape, NodeKind, Partition, Result,
    Stream,
};

fn captured(probes: &Probes, stream: &Stream, places: &[usize]) -> Captured {
    Captured::new(stream, || places.iter().for_each(|&place| probes.launch(stream, place)))
}

#[test]
fn graph_launch_runs_on_the_stream() -> Result<()> {
    let probes = Probes::new();
    let parts = Device::new(0)?.partition([24, 64])?;
    let native = captured(&probes, parts[0].stream(), &[0, 1]);
    // SAFETY: the graph is alive; what it works on lives as long as the process.
    let graph = unsafe {
        Graph::from_native_with(native.native(), GraphOptions::new().max_executables(4))
    }?;
    drop(native);
    for part in &parts {
        graph.launch([part])?;
        part.synchronize()?;
        assert_eq!(
            (probes.take(0), probes.take(1)),
            (part.stream().sm_ids()?, part.stream().sm_ids()?)
        );
    }
    graph.set_part(&[1], 1)?;
    graph.prepare(parts.iter().map(Partition::sms))?;
    graph.launch(&parts)?;
    parts.iter().try_for_each(Partition::synchronize)?;
    assert_eq!(probes.take(0), parts[0].stream().sm_ids()?);
    assert_eq!(probes.take(1), parts[1].stream().sm_ids()?);

    let info = graph.info()?;
    assert_eq!((info.device, info.node_priorities, info.max_executables), (0, false, 4));
    assert_eq!((info.node_count, info.kernel_count, info.part_count), (2, 2, 2));
    assert_eq!(info.launches, 3);
    assert_eq!(format!("{graph:?}"), "Graph(2 nodes in 2 parts, device 0)");
    let node = graph.nodes()?.remove(1);
    assert_eq!((node.kind, node.parent, node.part), (NodeKind::Kernel, None, 1));
    let kernel = node.kernel.expect("it is a kernel");
    assert_eq!((kernel.name.as_str(), kernel.cooperative), ("gcx_probe", false));
    assert_eq!((kernel.grid, kernel.block), ([BLOCKS, 1, 1], [THREADS, 1, 1]));
    assert_eq!((kernel.cluster, kernel.shared_bytes), (None, 0));
    assert!(kernel.blocks_per_sm > 0);
    Ok(())
}

#[test]
fn kernel_parameters_are_copied() -> Result<()> {
    let probes = Probes::new();
    let parts = Device::new(0)?.partition([24])?;
    let stream = parts[0].stream();
    let native = captured(&probes, stream, &[0]);
    let graph = native.graph();
    let (arguments, one_block) = (probes.arguments(3), KernelParams::new([1, 1, 1], [128, 1, 1]));
    // SAFETY: the arguments are the kernel's, and the places live as long as the process.
    unsafe { graph.set_kernel(0, &one_block.shared_bytes(1024).arguments(&arguments)) }?;
    drop(arguments);
    graph.launch([stream])?;
    stream.synchronize()?;
    assert_eq!((probes.take(3).len(), probes.take(0).len()), (1, 0));
    // SAFETY: as above; without arguments it keeps the present ones.
    unsafe { graph.set_kernel(0, &one_block) }?;
    graph.launch([stream])?;
    stream.synchronize()?;
    assert_eq!(probes.take(3).len(), 1);
    // SAFETY: the graph is alive; what it works on lives as long as the process.
    unsafe { graph.update(native.native()) }?;
    graph.launch([stream])?;
    stream.synchronize()?;
    assert_eq!((probes.take(0), probes.take(3).len()), (stream.sm_ids()?, 0));
    Ok(())
}

#[test]
fn wrong_graph_is_refused() -> Result<()> {
    let probes = Probes::new();
    let parts = Device::new(0)?.partition([24])?;
    let stream = parts[0].stream();
    let (one, two) = (captured(&probes, stream, &[0]), captured(&probes, stream, &[0, 1]));
    // SAFETY: the graphs are alive; what is wrong is refused.
    unsafe {
        let kept_none = GraphOptions::new().max_executables(0);
        let refused = Graph::from_native_with(one.native(), kept_none).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidValue);
        let null = Graph::from_native(std::ptr::null_mut()).unwrap_err();
        assert_eq!(null.kind(), ErrorKind::InvalidValue);
        let graph = one.graph();
        assert_eq!(graph.update(two.native()).unwrap_err().kind(), ErrorKind::GraphUpdate);
        let short = KernelParams::new([1; 3], [1; 3]).arguments(&[0]);
        assert_eq!(graph.set_kernel(0, &short).unwrap_err().kind(), ErrorKind::InvalidValue);
        let nothing: [&Stream; 0] = [];
        assert_eq!(graph.launch(nothing).unwrap_err().kind(), ErrorKind::InvalidValue);
    }
    Ok(())
}

#[test]
fn kernel_fit_is_of_the_shape() -> Result<()> {
    let probes = Probes::new();
    let parts = Device::new(0)?.partition([24])?;
    // SAFETY: it is a kernel of a library that lives as long as the process.
    let fit = |shape| unsafe { parts[0].stream().kernel_fit(probes.function(), shape) };
    let plain = fit(KernelShape::new(256))?;
    assert_eq!((plain.sm_count, plain.max_blocks), (24, 24 * plain.blocks_per_sm));
    assert_eq!(plain.max_clusters, 0);
    assert!(fit(KernelShape::new(256).cluster_blocks(2))?.max_clusters > 0);
    let shared = fit(KernelShape::new(256).dynamic_shared_bytes(32 << 10))?;
    assert!(shared.blocks_per_sm < plain.blocks_per_sm);
    Ok(())
}
