//! Graphs that were captured once and run on any SMs.

use std::fmt;
use std::ptr;

use crate::convert::counted;
use crate::error::{check, Error, Result};
use crate::generated::GraphInfo;
use crate::graph_node::{described, GraphNode, KernelParams};
use crate::live::listed;
use crate::prepare::raw_of;
use crate::resource::SmResource;
use crate::stream::Stream;
use crate::sys;

/// A CUDA graph that was captured once, by whoever and wherever, and is launched on the SMs of any
/// stream: one executable for each set of SMs, made at the first launch there or
/// [ahead of time](Self::prepare), and kept. Nothing is captured again.
///
/// ```no_run
/// # fn captured() -> *mut gcx::sys::CUgraph_st { unimplemented!() }
/// let device = gcx::Device::new(0)?;
/// let decode = gcx::Lease::acquire(&device, 32)?;
/// let stream = decode.stream()?;
/// let native = captured(); // a CUgraph, of cudarc or any other CUDA code
///
/// // SAFETY: the graph is alive, and what it works on lives as long as it is launched.
/// let graph = unsafe { gcx::Graph::from_native(native) }?; // a copy: the native one may go
/// graph.launch(&stream)?; // on the 32 SMs
/// decode.resize(64)?;
/// graph.launch(&stream)?; // on the 64
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// **What moves.** Kernels of libraries and of modules with their arguments and attributes, copies,
/// memsets, host functions, events, external semaphores, empty nodes and child graphs. What was moved
/// is read back and compared: a driver that does it otherwise is an error, never a wrong graph. Nodes
/// that allocate or free memory and conditional nodes can't be moved.
///
/// **Nodes** have numbers, their place in [`nodes`](Self::nodes).
///
/// **Parts.** A graph that forks over several partitions has several, each of which can have SMs of
/// its own: one for each context that its kernels were captured in, numbered as they first appear,
/// unless [`set_part`](Self::set_part) says otherwise.
///
/// **Grids.** A kernel whose blocks wait for each other needs all of them on the SMs at once. A
/// cooperative launch that is larger is refused when the executable is made. One with a barrier of its
/// own, which CUDA knows nothing of, is not, and hangs.
///
/// **Threads.** It is launched from any number of threads. Launches of one executable run one after
/// the other; those on different SMs run side by side, on the same memory.
///
/// **Dropping it** gives its executables up and never waits: work in flight finishes.
///
/// Tested on the simulated driver and on an H200.
pub struct Graph(sys::gcx_graph);

// SAFETY: a handle names an object; any function may be called from any thread, also on the same
// object.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the handle is ours, and is given up once.
        unsafe { sys::gcx_graph_destroy(self.0) };
    }
}

impl Graph {
    /// A copy of a captured graph, a `CUgraph` or `cudaGraph_t`, which stays its owner's and may be
    /// destroyed or changed at once.
    ///
    /// # Safety
    ///
    /// `captured` is a graph that was not destroyed, and no thread changes it meanwhile. Whenever what
    /// this gives is launched, and until that work is done, all that the graph names is there:
    /// modules, memory, host functions and their data, events. It may be launched in any stream of
    /// any thread, also beside itself: who hands it out answers for that.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotSupported`](crate::ErrorKind) a node can't be moved: the message has its kind
    /// and number. `InvalidResourceConfiguration` kernels of two devices, or of more than 16 contexts.
    /// `InvalidContext` the graph has no kernels, and no context is current that would tell its
    /// device. `InvalidValue` it is NULL.
    pub unsafe fn from_native(captured: *mut sys::CUgraph_st) -> Result<Self> {
        Self::from_native_with(captured, GraphOptions::new())
    }

    /// The same with options.
    ///
    /// # Safety
    ///
    /// As [`from_native`](Self::from_native).
    ///
    /// # Errors
    ///
    /// As [`from_native`](Self::from_native).
    pub unsafe fn from_native_with(
        captured: *mut sys::CUgraph_st,
        options: GraphOptions,
    ) -> Result<Self> {
        let max_executables = match options.max_executables {
            Some(0) => {
                let message = "a graph that keeps 0 executables was asked for; it keeps at least 1";
                return Err(Error::of(sys::GCX_ERROR_INVALID_VALUE, message));
            }
            most => most.unwrap_or(0),
        };
        let GraphOptions { flags, .. } = options;
        let params = sys::gcx_graph_params { flags, max_executables, ..sys::GCX_GRAPH_PARAMS_INIT };
        let mut handle = ptr::null_mut();
        check(sys::gcx_graph_create(captured, &params, &mut handle))?;
        Ok(Graph(handle))
    }

    /// The C API's handle. It stays this graph's.
    #[must_use]
    pub fn as_raw(&self) -> sys::gcx_graph {
        self.0
    }

    /// Launches it in the stream, all parts on the SMs that the stream has now. A lease that changes
    /// meanwhile waits for the call, so that the work is of the SMs before or after. In a stream of
    /// the primary context, made by someone else, it runs as it was captured.
    ///
    /// The first launch on a set of SMs makes the executable, as [`prepare`](Self::prepare) does; later
    /// ones cost what `cuGraphLaunch` does.
    ///
    /// # Errors
    ///
    /// Those of [`prepare`](Self::prepare). [`ErrorKind::InvalidDevice`](crate::ErrorKind) the stream
    /// is of another device. `Capture` the stream is capturing a graph: add the captured graph to that
    /// as a child node instead.
    pub fn launch(&self, stream: &impl AsRef<Stream>) -> Result<()> {
        // SAFETY: the handles are alive; who made the graph answers for what it works on.
        check(unsafe { sys::gcx_graph_launch(self.0, stream.as_ref().as_raw()) })
    }

    /// Launches it with each part on the SMs of a stream of its own, or
    /// [partition](crate::Partition). It runs behind what all the streams were given before, and what
    /// they are given afterwards runs behind it. Parts with no order between them run side by side.
    ///
    /// # Errors
    ///
    /// Those of [`launch`](Self::launch). [`ErrorKind::InvalidValue`](crate::ErrorKind) there are not
    /// as many streams as parts.
    pub fn launch_parts<'a, I, S>(&self, streams: I) -> Result<()>
    where
        I: IntoIterator<Item = &'a S>,
        S: AsRef<Stream> + 'a,
    {
        let streams: Vec<_> = streams.into_iter().map(|stream| stream.as_ref().as_raw()).collect();
        let count = counted(streams.len())?;
        // SAFETY: the handles are alive, for the streams are borrowed; the array has `count` elements.
        check(unsafe { sys::gcx_graph_launch_parts(self.0, streams.as_ptr(), count) })
    }

    /// Makes the executable for these SMs ahead of time, and their contexts if there are none: one
    /// resource for all parts, or one for each. For a thread of the caller's: it holds up no launches
    /// of executables that there are. Nothing is done if it is kept already.
    ///
    /// # Errors
    ///
    /// Those of [`Context::new`](crate::Context::new).
    /// [`ErrorKind::CooperativeTooLarge`](crate::ErrorKind) a cooperative grid is larger than the SMs
    /// hold: the message has the kernel's name, its grid and the largest. `InvalidValue` there is
    /// neither one resource nor one for each part. `InvalidDevice` one is of another device.
    /// `NotSupported` the driver did not move a node as it was told: the message says which.
    pub fn prepare<'a>(&self, sms: impl IntoIterator<Item = &'a SmResource>) -> Result<()> {
        self.prepare_with(sms, 0)
    }

    /// The same for launches in streams of leases.
    ///
    /// # Errors
    ///
    /// As [`prepare`](Self::prepare).
    pub fn prepare_for_leases<'a>(
        &self,
        sms: impl IntoIterator<Item = &'a SmResource>,
    ) -> Result<()> {
        self.prepare_with(sms, sys::GCX_PREPARE_FOR_LEASES)
    }

    fn prepare_with<'a>(
        &self,
        sms: impl IntoIterator<Item = &'a SmResource>,
        flags: u32,
    ) -> Result<()> {
        let (resources, count) = raw_of(sms)?;
        // SAFETY: the handle is alive; the array has `count` elements.
        check(unsafe { sys::gcx_graph_prepare(self.0, resources.as_ptr(), count, flags) })
    }

    /// Says which part these nodes are of: one that there is, or the next. The node of a child graph
    /// stands for all of its nodes. Executables for several sets of SMs are given up. If there are no
    /// nodes, nothing changes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidValue`](crate::ErrorKind) there is no such node, or the part is beyond the
    /// next, or the 17th, or is the next and there are no nodes.
    pub fn set_part(&self, nodes: &[u32], part: u32) -> Result<()> {
        let count = counted(nodes.len())?;
        // SAFETY: the handle is alive; the array has `count` elements.
        check(unsafe { sys::gcx_graph_set_part(self.0, nodes.as_ptr(), count, part) })
    }

    /// Gives a kernel's node other parameters, in the graph and all executables, or nowhere. Launches
    /// from then on have them, work in flight has the former. Takes about a microsecond for each
    /// executable where the driver changes executables, which it doesn't in child graphs; else they are
    /// made anew.
    ///
    /// # Safety
    ///
    /// The kernel may be launched so: what it does with the arguments, in this grid, touches memory
    /// that is there whenever the graph is launched, as [`from_native`](Self::from_native) asks.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidValue`](crate::ErrorKind) there is no such node, or it is not a kernel's, or
    /// the arguments are too short; what the driver says of the parameters; those of
    /// [`prepare`](Self::prepare).
    pub unsafe fn set_kernel(&self, node: u32, params: &KernelParams<'_>) -> Result<()> {
        check(sys::gcx_graph_set_kernel(self.0, node, &params.raw()))
    }

    /// Takes over all parameters of another captured graph with the same nodes and order, as of the
    /// same code captured again, in all executables or nowhere. Parts stay. `captured` stays its
    /// owner's.
    ///
    /// # Safety
    ///
    /// As [`from_native`](Self::from_native).
    ///
    /// # Errors
    ///
    /// Those of [`from_native`](Self::from_native).
    /// [`ErrorKind::GraphUpdate`](crate::ErrorKind) the nodes or their order differ: the message says
    /// where.
    pub unsafe fn update(&self, captured: *mut sys::CUgraph_st) -> Result<()> {
        check(sys::gcx_graph_update(self.0, captured))
    }

    /// What is known of it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotInitialized`](crate::ErrorKind) in the child of a fork.
    pub fn info(&self) -> Result<GraphInfo> {
        let mut info = sys::GCX_GRAPH_INFO_INIT;
        // SAFETY: the handle is alive; the struct is filled in as far as its struct_size says.
        check(unsafe { sys::gcx_graph_get_info(self.0, &mut info) })?;
        Ok(GraphInfo::from(&info))
    }

    /// Its nodes, by their numbers: in the order of `cuGraphGetNodes`, each child graph's right behind
    /// the node that stands for it.
    ///
    /// # Errors
    ///
    /// As [`info`](Self::info).
    pub fn nodes(&self) -> Result<Vec<GraphNode>> {
        let found = listed(|list, room, count| {
            // SAFETY: the handle is alive; `list` has room for `room` elements.
            unsafe { sys::gcx_graph_get_nodes(self.0, list, room, count) }
        })?;
        Ok(found.iter().map(described).collect())
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Ok(info) => {
                let GraphInfo { node_count, part_count, device, .. } = info;
                write!(out, "Graph({node_count} nodes in {part_count} parts, device {device})")
            }
            Err(error) => write!(out, "Graph({})", error.name()),
        }
    }
}

/// How a graph is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use]
pub struct GraphOptions {
    flags: u32,
    max_executables: Option<u32>,
}

impl GraphOptions {
    /// Kernels have the priority of the stream that the graph is launched in, and 16 executables are
    /// kept.
    pub fn new() -> Self {
        Self::default()
    }

    /// Kernels run with the priorities that they were captured with, as in `PyTorch`'s graphs.
    pub fn node_priorities(mut self) -> Self {
        self.flags |= sys::GCX_GRAPH_NODE_PRIORITIES;
        self
    }

    /// So many executables are kept, of at least 1: the last used. Each holds its contexts, and some
    /// device memory.
    pub fn max_executables(mut self, count: u32) -> Self {
        self.max_executables = Some(count);
        self
    }
}
