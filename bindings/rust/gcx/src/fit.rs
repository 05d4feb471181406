//! How much of a kernel fits a stream's SMs.

use crate::error::{check, Result};
use crate::generated::KernelFit;
use crate::stream::Stream;
use crate::sys;

/// A kernel's launch, as far as it decides how much of it fits.
///
/// ```
/// let shape = gcx::KernelShape::new(256).dynamic_shared_bytes(16 << 10).cluster_blocks(2);
/// # let _ = shape;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct KernelShape {
    block_threads: u32,
    dynamic_shared_bytes: u32,
    cluster_blocks: u32,
}

impl KernelShape {
    /// Blocks of so many threads, 1 to 1024, without dynamic shared memory and clusters.
    pub fn new(block_threads: u32) -> Self {
        KernelShape { block_threads, dynamic_shared_bytes: 0, cluster_blocks: 0 }
    }

    /// Dynamic shared memory of a block.
    pub fn dynamic_shared_bytes(mut self, bytes: u32) -> Self {
        self.dynamic_shared_bytes = bytes;
        self
    }

    /// It is launched in clusters of so many blocks, also if it was compiled with them. 0 is without.
    pub fn cluster_blocks(mut self, blocks: u32) -> Self {
        self.cluster_blocks = blocks;
        self
    }
}

impl Stream {
    /// How much of a kernel fits the stream's SMs at once, when nothing else is there: for kernels that
    /// size their grid by the SMs. A kernel with a barrier of its own over a grid that does not fit
    /// hangs; and CUDA tells the whole device's SMs inside a partition too.
    ///
    /// `function` is a `CUfunction`, or a `CUkernel` cast to one. A stream of a lease answers for the
    /// SMs that the lease has at that call. Tested on the simulated driver alone so far.
    ///
    /// # Safety
    ///
    /// `function` is a kernel of a module or library that is loaded.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidValue`](crate::ErrorKind) blocks can't have so many threads, or the function
    /// is NULL. `InvalidHandle` it is none, as far as the driver notices.
    pub unsafe fn kernel_fit(
        &self,
        function: *mut sys::CUfunc_st,
        shape: KernelShape,
    ) -> Result<KernelFit> {
        let KernelShape { block_threads, dynamic_shared_bytes, cluster_blocks } = shape;
        let params = sys::gcx_kernel_fit_params {
            block_threads,
            dynamic_shared_bytes,
            cluster_blocks,
            ..sys::GCX_KERNEL_FIT_PARAMS_INIT
        };
        let mut fit = sys::GCX_KERNEL_FIT_INIT;
        check(sys::gcx_stream_get_kernel_fit(self.as_raw(), function, &params, &mut fit))?;
        Ok(KernelFit::from(&fit))
    }
}
