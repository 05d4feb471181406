//! What a graph's nodes are, and what a kernel's are changed to.

use std::ptr;

use crate::convert::{some, string};
use crate::generated::NodeKind;
use crate::sys;

/// A node of a [`Graph`](crate::Graph), from [`Graph::nodes`](crate::Graph::nodes).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GraphNode {
    /// What it does.
    pub kind: NodeKind,
    /// The number of the node whose child graph it is in.
    pub parent: Option<u32>,
    /// The part that it is of.
    pub part: u32,
    /// Of a kernel: what it is launched with.
    pub kernel: Option<KernelNode>,
}

/// A kernel in a graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct KernelNode {
    /// As compiled; of a long one the first 255 bytes.
    pub name: String,
    /// Whether it is launched as a cooperative one.
    pub cooperative: bool,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of a cluster, if it is launched in clusters.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// How many of its blocks an SM holds at once, without others'. The largest grid whose blocks may
    /// wait for each other is this times the partition's SMs.
    pub blocks_per_sm: u32,
}

/// What C tells of a node.
pub(crate) fn described(node: &sys::gcx_graph_node) -> GraphNode {
    let kind = node.kind.into();
    let kernel = if kind == NodeKind::Kernel { Some(kernel_of(node)) } else { None };
    let parent = some(node.parent, sys::GCX_NO_NODE);
    GraphNode { kind, parent, part: node.part, kernel }
}

fn kernel_of(node: &sys::gcx_graph_node) -> KernelNode {
    KernelNode {
        name: string(&node.name),
        cooperative: node.cooperative != 0,
        grid: node.grid,
        block: node.block,
        cluster: some(node.cluster, [0; 3]),
        shared_bytes: node.shared_bytes,
        blocks_per_sm: node.blocks_per_sm,
    }
}

/// What a kernel of a graph is to be launched with, for [`Graph::set_kernel`](crate::Graph::set_kernel).
///
/// ```
/// use gcx::KernelParams;
///
/// // Of a kernel (float* values, unsigned count): each argument at its place, as in a C struct.
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
    /// This grid, in blocks, of blocks of so many threads, without dynamic shared memory, with the
    /// arguments that the kernel has already.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        KernelParams { grid, block, shared_bytes: 0, arguments: None }
    }

    /// Dynamic shared memory of a block.
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// All arguments, each at its place (`cuFuncGetParamInfo`), as in a C struct. They are copied.
    pub fn arguments(mut self, arguments: &'a [u8]) -> Self {
        self.arguments = Some(arguments);
        self
    }

    /// As C takes it. The arguments are borrowed.
    pub(crate) fn raw(&self) -> sys::gcx_kernel_params {
        let bytes = self.arguments.unwrap_or(&[]);
        sys::gcx_kernel_params {
            shared_bytes: self.shared_bytes,
            grid: self.grid,
            block: self.block,
            // None are NULL, which is those that it has.
            arguments: self.arguments.map_or(ptr::null(), |bytes| bytes.as_ptr().cast()),
            argument_bytes: bytes.len() as u64,
            ..sys::GCX_KERNEL_PARAMS_INIT
        }
    }
}
