//! Graphs: captured once, launched on the SMs of any stream.

use std::fmt;
use std::ptr;

use crate::cache::raw_of;
use crate::call::{array, check, counted, described, handle};
use crate::convert::{some, string};
use crate::error::{Error, Result};
use crate::generated::{GraphInfo, NodeKind};
use crate::resource::SmResource;
use crate::stream::Stream;
use crate::sys;

handle! {
    /// A CUDA graph that was captured once, by any code, and is launched on the SMs of any stream.
    /// It caches one executable for each set of SMs; `docs/guides/graphs.md` says which nodes can be
    /// moved.
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
    /// graph.launch([&stream])?; // on the 32 SMs
    /// decode.resize(64)?;
    /// graph.launch([&stream])?; // on the 64
    /// # Ok::<(), gcx::Error>(())
    /// ```
    ///
    /// **Parts.** A graph has one part for each context that its kernels were captured in, numbered
    /// as they first appear, and each part can have its own SMs; [`set_part`](Self::set_part)
    /// changes them.
    ///
    /// **Grids.** A cooperative kernel that is larger than the SMs is refused. Note: a kernel with
    /// its own grid-wide barrier, which CUDA doesn't know of, hangs instead.
    ///
    /// **Threads.** Launches of one executable run one after the other; those on different SMs run
    /// concurrently, on the same memory. Dropping the graph never waits: work in flight finishes.
    Graph, gcx_graph, gcx_graph_destroy
}

impl Graph {
    /// Copies a captured `CUgraph`, which may then be changed or destroyed.
    ///
    /// Fails with [`NotSupported`](crate::ErrorKind) if a node can't be moved, with
    /// `InvalidResourceConfiguration` if its kernels are of two devices or more than 16 contexts,
    /// and with `InvalidContext` if it has no kernels and no context is current.
    ///
    /// # Safety
    ///
    /// `captured` is a graph that was not destroyed, and no thread changes it during the call.
    /// While this object is launched and until that work is done, all that the graph names is
    /// valid: modules, memory, host functions and their data, events. It may be launched in any
    /// thread, also concurrently.
    pub unsafe fn from_native(captured: *mut sys::CUgraph_st) -> Result<Self> {
        Self::from_native_with(captured, GraphOptions::new())
    }

    /// As [`from_native`](Self::from_native), with options.
    ///
    /// # Safety
    ///
    /// As [`from_native`](Self::from_native).
    pub unsafe fn from_native_with(
        captured: *mut sys::CUgraph_st,
        options: GraphOptions,
    ) -> Result<Self> {
        let GraphOptions { flags, max_executables } = options;
        if max_executables == Some(0) {
            let message = "a graph that caches 0 executables was requested; it caches at least 1";
            return Err(Error::of(sys::GCX_ERROR_INVALID_VALUE, message));
        }
        let params = sys::gcx_graph_params {
            flags,
            max_executables: max_executables.unwrap_or(0),
            ..sys::GCX_GRAPH_PARAMS_INIT
        };
        Graph::created(|handle| sys::gcx_graph_create(captured, &params, handle))
    }

    /// Launches all parts on the SMs that one stream or [partition](crate::Partition) has now, or
    /// each part on the SMs of its own: in the first stream, after all earlier work of these
    /// streams and before all later. Parts without an order between them run concurrently. A
    /// concurrent change of a lease waits for the call. The first launch on a set of SMs creates
    /// the executable, see [`prepare`](Self::prepare).
    ///
    /// Fails with [`Capture`](crate::ErrorKind) while the stream captures a graph: add the captured
    /// graph to that as a child node instead. In a stream of the primary context it runs as it was
    /// captured.
    pub fn launch<'a, I, S>(&self, streams: I) -> Result<()>
    where
        I: IntoIterator<Item = &'a S>,
        S: AsRef<Stream> + 'a,
    {
        let (streams, count) = array(streams.into_iter().map(|s| Ok(s.as_ref().as_raw())))?;
        // SAFETY: the handles are alive, for the streams are borrowed; the array has `count`
        // elements. `from_native` was promised what the graph needs.
        check(unsafe { sys::gcx_graph_launch(self.0, streams.as_ptr(), count) })
    }

    /// Creates the executable for these SMs ahead of time, and their contexts if needed: one
    /// resource for all parts, or one for each. Doesn't delay launches of existing executables.
    ///
    /// Fails with [`CooperativeTooLarge`](crate::ErrorKind) if a cooperative grid is larger than
    /// the SMs, and with `NotSupported` if the driver moved a node otherwise than it was asked to.
    pub fn prepare<'a>(&self, sms: impl IntoIterator<Item = &'a SmResource>) -> Result<()> {
        self.prepare_with(sms, 0)
    }

    /// As [`prepare`](Self::prepare), for launches in streams of leases.
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

    /// Assigns nodes to a part: an existing one, or the next. The node of a child graph stands for
    /// all of its nodes. Destroys the executables for several sets of SMs.
    pub fn set_part(&self, nodes: &[u32], part: u32) -> Result<()> {
        let count = counted(nodes.len())?;
        // SAFETY: the handle is alive; the array has `count` elements.
        check(unsafe { sys::gcx_graph_set_part(self.0, nodes.as_ptr(), count, part) })
    }

    /// Changes the parameters of a kernel node, in the graph and all executables, or nowhere. Work
    /// in flight keeps the earlier ones.
    ///
    /// # Safety
    ///
    /// The kernel may be launched with them: what it accesses is valid whenever the graph is
    /// launched, as [`from_native`](Self::from_native) requires.
    pub unsafe fn set_kernel(&self, node: u32, params: &KernelParams<'_>) -> Result<()> {
        check(sys::gcx_graph_set_kernel(self.0, node, &params.raw()))
    }

    /// Copies all parameters of another captured graph with the same nodes and order, in all
    /// executables or nowhere. Keeps the parts. Fails with [`GraphUpdate`](crate::ErrorKind) if
    /// nodes differ.
    ///
    /// # Safety
    ///
    /// As [`from_native`](Self::from_native).
    pub unsafe fn update(&self, captured: *mut sys::CUgraph_st) -> Result<()> {
        check(sys::gcx_graph_update(self.0, captured))
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.info().map(|info| {
            let GraphInfo { node_count, part_count, device, .. } = info;
            format!("{node_count} nodes in {part_count} parts, device {device}")
        });
        described(out, "Graph", known)
    }
}

/// How a graph is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use]
pub struct GraphOptions {
    flags: u32,
    max_executables: Option<u32>,
}

impl GraphOptions {
    /// Kernels have the priority of the launching stream, and 16 executables are cached.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs kernels with the priorities of their capture, as in `PyTorch`'s graphs.
    pub fn node_priorities(mut self) -> Self {
        self.flags |= sys::GCX_GRAPH_NODE_PRIORITIES;
        self
    }

    /// Caches up to this many executables, at least 1: the most recently used. Each keeps its
    /// contexts and some device memory.
    pub fn max_executables(mut self, count: u32) -> Self {
        self.max_executables = Some(count);
        self
    }
}

/// A node of a [`Graph`], from [`Graph::nodes`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GraphNode {
    /// What it does.
    pub kind: NodeKind,
    /// The number of the node in whose child graph it is.
    pub parent: Option<u32>,
    /// Its part.
    pub part: u32,
    /// Of a kernel: what it is launched with.
    pub kernel: Option<KernelNode>,
}

/// A kernel in a graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct KernelNode {
    /// The compiled name, up to its 255th byte.
    pub name: String,
    /// Whether it is launched cooperatively.
    pub cooperative: bool,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of a cluster, if it is launched in clusters.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// Blocks that run on one SM at once. The largest grid with a grid-wide barrier is this times
    /// the partition's SMs.
    pub blocks_per_sm: u32,
}

impl From<&sys::gcx_graph_node> for GraphNode {
    fn from(node: &sys::gcx_graph_node) -> Self {
        let kind = node.kind.into();
        let kernel = Some(kind).filter(|kind| *kind == NodeKind::Kernel).map(|_| KernelNode {
            name: string(&node.name),
            cooperative: node.cooperative != 0,
            grid: node.grid,
            block: node.block,
            cluster: some(node.cluster, [0; 3]),
            shared_bytes: node.shared_bytes,
            blocks_per_sm: node.blocks_per_sm,
        });
        GraphNode { kind, parent: some(node.parent, sys::GCX_NO_NODE), part: node.part, kernel }
    }
}

/// What a kernel of a graph is to be launched with, for [`Graph::set_kernel`].
///
/// ```
/// use gcx::KernelParams;
///
/// // Of a kernel (float* values, unsigned count): each argument at its offset, as in a C struct.
/// # let values = 0x7f00_0000_0000_u64;
/// let mut arguments = values.to_ne_bytes().to_vec();
/// arguments.extend(4096u32.to_ne_bytes());
/// let params = KernelParams::new([16, 1, 1], [256, 1, 1]).arguments(&arguments);
/// # let _ = params;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct KernelParams<'a> {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    arguments: Option<&'a [u8]>,
}

impl<'a> KernelParams<'a> {
    /// A grid in blocks, and a block in threads, without dynamic shared memory and with the present
    /// arguments.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        KernelParams { grid, block, shared_bytes: 0, arguments: None }
    }

    /// Sets the dynamic shared memory of a block.
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// Sets all arguments, each at its offset (`cuFuncGetParamInfo`), as in a C struct. They are
    /// copied.
    pub fn arguments(mut self, arguments: &'a [u8]) -> Self {
        self.arguments = Some(arguments);
        self
    }

    /// The struct of C, which borrows the arguments.
    fn raw(&self) -> sys::gcx_kernel_params {
        let bytes = self.arguments.unwrap_or(&[]);
        sys::gcx_kernel_params {
            shared_bytes: self.shared_bytes,
            grid: self.grid,
            block: self.block,
            arguments: self.arguments.map_or(ptr::null(), |bytes| bytes.as_ptr().cast()),
            argument_bytes: bytes.len() as u64,
            ..sys::GCX_KERNEL_PARAMS_INIT
        }
    }
}
