//! Streams, and what of a kernel fits their SMs.

use std::fmt;

use crate::call::{check, described, filled, handle};
use crate::error::Result;
use crate::event::{Event, WaitFor};
use crate::generated::{KernelFit, StreamInfo};
use crate::sys;

handle! {
    /// A CUDA stream whose kernels run on one partition's SMs, from
    /// [`Context::stream`](crate::Context::stream) or [`Lease::stream`](crate::Lease::stream).
    ///
    /// A stream of a context keeps it; one of a lease follows the lease, and ends with it. Keep the
    /// stream while work is submitted to its [`CUstream`](Self::native); dropping it lets its work
    /// finish.
    Stream, gcx_stream, gcx_stream_destroy
}

impl Stream {
    pub(crate) fn with_priority(
        priority: i32,
        create: impl FnOnce(&sys::gcx_stream_params, &mut sys::gcx_stream) -> sys::gcx_result,
    ) -> Result<Self> {
        let params = sys::gcx_stream_params { priority, ..sys::GCX_STREAM_PARAMS_INIT };
        Stream::created(|handle| create(&params, handle))
    }

    /// Returns an object for a stream that other code created, to ask for its SMs and to wait for
    /// it. Fails with [`InvalidValue`](crate::ErrorKind) for CUDA's default streams, NULL, 1 and 2,
    /// which are other streams in each context.
    ///
    /// # Safety
    ///
    /// `native` is a stream that outlives the object.
    pub unsafe fn from_native(native: *mut sys::CUstream_st) -> Result<Self> {
        Stream::created(|handle| sys::gcx_stream_from_native(native, handle))
    }

    /// Returns an event that stands for the work submitted so far.
    pub fn record(&self) -> Result<Event> {
        let event = Event::new(self.info()?.device)?;
        self.record_into(&event)?;
        Ok(event)
    }

    /// Makes all later work of this stream wait for what was submitted so far. The calling thread
    /// doesn't wait.
    pub fn wait(&self, what: &impl WaitFor) -> Result<()> {
        what.with_event(|event| {
            // SAFETY: the handles are alive.
            check(unsafe { sys::gcx_stream_wait(self.0, event.as_raw()) })
        })
    }

    /// Returns how much of a kernel fits the stream's SMs at once, for kernels whose grid is sized
    /// by them: one with its own grid-wide barrier hangs if the grid doesn't fit.
    ///
    /// `function` is a `CUfunction`, or a `CUkernel` cast to one. A stream of a lease answers for
    /// the present SMs of the lease. Tested on the simulated driver only so far.
    ///
    /// # Safety
    ///
    /// `function` is a kernel of a module or library that is loaded.
    pub unsafe fn kernel_fit(
        &self,
        function: *mut sys::CUfunc_st,
        shape: KernelShape,
    ) -> Result<KernelFit> {
        filled(sys::GCX_KERNEL_FIT_INIT, |fit| {
            sys::gcx_stream_get_kernel_fit(self.0, function, &shape.0, fit)
        })
    }
}

impl AsRef<Stream> for Stream {
    fn as_ref(&self) -> &Stream {
        self
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.info().map(|info| {
            let StreamInfo { sm_count, device, priority, .. } = info;
            format!("{sm_count} SMs of device {device}, priority {priority}")
        });
        described(out, "Stream", known)
    }
}

/// The part of a kernel's launch that decides how much of it fits.
///
/// ```
/// let shape = gcx::KernelShape::new(256).dynamic_shared_bytes(16 << 10).cluster_blocks(2);
/// # let _ = shape;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct KernelShape(sys::gcx_kernel_fit_params);

impl KernelShape {
    /// Blocks of 1 to 1024 threads, without dynamic shared memory and clusters.
    pub fn new(block_threads: u32) -> Self {
        KernelShape(sys::gcx_kernel_fit_params { block_threads, ..sys::GCX_KERNEL_FIT_PARAMS_INIT })
    }

    /// Dynamic shared memory of a block.
    pub fn dynamic_shared_bytes(mut self, bytes: u32) -> Self {
        self.0.dynamic_shared_bytes = bytes;
        self
    }

    /// Blocks of a cluster, also if the kernel was compiled with clusters; 0 is without.
    pub fn cluster_blocks(mut self, blocks: u32) -> Self {
        self.0.cluster_blocks = blocks;
        self
    }
}
