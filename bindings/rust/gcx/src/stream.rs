//! Streams.

use std::fmt;
use std::ptr;

use crate::context::Context;
use crate::error::{check, finished, Error, Result};
use crate::event::Event;
use crate::generated::StreamInfo;
use crate::lease::Lease;
use crate::order::WaitFor;
use crate::resource::{sm_ids, SmResource};
use crate::sys;
use crate::workqueue::WorkqueueResource;

/// A CUDA stream whose kernels run on a partition's SMs alone, from
/// [`Context::stream`](crate::Context::stream) or [`Lease::stream`](crate::Lease::stream).
///
/// It keeps its context. One of a lease follows that instead, and ends with it: what that means is
/// told at [`Lease`](crate::Lease). Dropping a stream lets its work finish; keep it as long as work
/// is submitted to its [native stream](Self::native).
pub struct Stream(sys::gcx_stream);

// SAFETY: a handle names an object; any function may be called from any thread, also on the same
// object.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the handle is ours, and is given up once.
        unsafe { sys::gcx_stream_destroy(self.0) };
    }
}

impl Stream {
    pub(crate) fn new(context: &Context, priority: i32) -> Result<Self> {
        Self::made(priority, |params, handle| {
            // SAFETY: the context is alive; a handle is written.
            unsafe { sys::gcx_stream_create(context.as_raw(), params, handle) }
        })
    }

    pub(crate) fn of_lease(lease: &Lease, priority: i32) -> Result<Self> {
        Self::made(priority, |params, handle| {
            // SAFETY: the lease is alive; a handle is written.
            unsafe { sys::gcx_lease_stream_create(lease.as_raw(), params, handle) }
        })
    }

    fn made(
        priority: i32,
        make: impl FnOnce(&sys::gcx_stream_params, &mut sys::gcx_stream) -> sys::gcx_result,
    ) -> Result<Self> {
        let params = sys::gcx_stream_params { priority, ..sys::GCX_STREAM_PARAMS_INIT };
        let mut handle = ptr::null_mut();
        check(make(&params, &mut handle))?;
        Ok(Stream(handle))
    }

    /// A stream that someone else made, to ask for its SMs and to wait for it.
    ///
    /// # Safety
    ///
    /// `native` is a stream that outlives what this gives.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidValue`](crate::ErrorKind) it is NULL, 1 or 2, CUDA's default streams,
    /// which are other streams in each context.
    pub unsafe fn from_native(native: *mut sys::CUstream_st) -> Result<Self> {
        let mut handle = ptr::null_mut();
        check(sys::gcx_stream_from_native(native, &mut handle))?;
        Ok(Stream(handle))
    }

    /// The `CUstream`, which is a `cudaStream_t` too, for any CUDA code. It stays gcx's: never
    /// destroy it. Valid as long as this is alive. Of a lease's stream it is another after a change:
    /// take it anew for each step, see [`Lease`](crate::Lease).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ContextDestroyed`](crate::ErrorKind) the device was reset, or the lease is gone.
    pub fn native(&self) -> Result<*mut sys::CUstream_st> {
        // SAFETY: the handle is alive.
        let native = unsafe { sys::gcx_stream_native(self.0) };
        if native.is_null() {
            // The function says that something is wrong, not which number that has.
            let error = self.info().err();
            return Err(error.unwrap_or_else(|| Error::last(sys::GCX_ERROR_UNKNOWN)));
        }
        Ok(native)
    }

    /// The C API's handle. It stays this stream's.
    #[must_use]
    pub fn as_raw(&self) -> sys::gcx_stream {
        self.0
    }

    /// What is known of it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ContextDestroyed`](crate::ErrorKind) the device was reset, or the lease is gone;
    /// [`ErrorKind::Capture`](crate::ErrorKind) someone else's stream captures a graph.
    pub fn info(&self) -> Result<StreamInfo> {
        let mut info = sys::GCX_STREAM_INFO_INIT;
        // SAFETY: the handle is alive; the struct is filled in as far as its struct_size says.
        check(unsafe { sys::gcx_stream_get_info(self.0, &mut info) })?;
        Ok(StreamInfo::from(&info))
    }

    /// How many SMs its kernels can run on.
    ///
    /// # Errors
    ///
    /// As [`info`](Self::info).
    pub fn sm_count(&self) -> Result<u32> {
        Ok(self.info()?.sm_count)
    }

    /// The SMs of its context.
    ///
    /// # Errors
    ///
    /// Of someone else's stream [`ErrorKind::NotSupported`](crate::ErrorKind): its context has a part
    /// of the device, and the driver is older than CUDA 13.1.
    pub fn sms(&self) -> Result<SmResource> {
        SmResource::from_raw(self.resource(sys::GCX_RESOURCE_SM)?)
    }

    /// The workqueue configuration of its context.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotSupported`](crate::ErrorKind) the driver is older than CUDA 13.1;
    /// [`ErrorKind::NotFound`](crate::ErrorKind) someone else made the stream.
    pub fn workqueue_config(&self) -> Result<WorkqueueResource> {
        WorkqueueResource::from_raw(self.resource(sys::GCX_RESOURCE_WORKQUEUE_CONFIG)?)
    }

    /// The workqueue of its context, to be shared with another context.
    ///
    /// # Errors
    ///
    /// As [`workqueue_config`](Self::workqueue_config).
    pub fn workqueue(&self) -> Result<WorkqueueResource> {
        WorkqueueResource::from_raw(self.resource(sys::GCX_RESOURCE_WORKQUEUE)?)
    }

    fn resource(&self, kind: sys::gcx_resource_type) -> Result<sys::gcx_resource> {
        let mut resource = sys::gcx_resource::default();
        // SAFETY: the handle is alive; a value is written.
        check(unsafe { sys::gcx_stream_get_resource(self.0, kind, &mut resource) })?;
        Ok(resource)
    }

    /// The most blocks that a thread block cluster of its kernels can have, see
    /// [`SmResource::max_cluster_size`].
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn max_cluster_size(&self) -> Result<u32> {
        let mut blocks = 0;
        // SAFETY: the handle is alive; a number is written.
        check(unsafe { sys::gcx_stream_get_max_cluster_size(self.0, &mut blocks) })?;
        Ok(blocks)
    }

    /// Waits until its work has finished. Blocks the calling thread.
    ///
    /// # Errors
    ///
    /// Those of that work; [`ErrorKind::Capture`](crate::ErrorKind) it captures a graph.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the handle is alive.
        check(unsafe { sys::gcx_stream_synchronize(self.0) })
    }

    /// Whether its work has finished. Never waits.
    ///
    /// # Errors
    ///
    /// As [`synchronize`](Self::synchronize).
    pub fn query(&self) -> Result<bool> {
        // SAFETY: the handle is alive.
        finished(unsafe { sys::gcx_stream_query(self.0) })
    }

    /// An event that stands for the work submitted so far.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn record(&self) -> Result<Event> {
        let event = Event::new(self.info()?.device)?;
        self.record_into(&event)?;
        Ok(event)
    }

    /// The same with an event that there is; it forgets what it stood for before.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidHandle`](crate::ErrorKind) the event is of another device.
    pub fn record_into(&self, event: &Event) -> Result<()> {
        // SAFETY: the handles are alive.
        check(unsafe { sys::gcx_stream_record(self.0, event.as_raw()) })
    }

    /// Holds all later work of this stream until the work of the event, stream, context or partition
    /// that was submitted so far has finished. The calling thread doesn't wait.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Capture`](crate::ErrorKind) one takes part in a graph capture that the other
    /// doesn't.
    pub fn wait(&self, what: &impl WaitFor) -> Result<()> {
        what.with_event(|event| {
            // SAFETY: the handles are alive.
            check(unsafe { sys::gcx_stream_wait(self.0, event.as_raw()) })
        })
    }

    /// The numbers of the SMs that its kernels really run on, ascending, from the hardware: a probe
    /// kernel of well under a millisecond notes them. Waits for the stream.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Capture`](crate::ErrorKind) it captures a graph.
    pub fn sm_ids(&self) -> Result<Vec<u32>> {
        sm_ids(|ids, room, count| {
            // SAFETY: the handle is alive; `ids` has `room` elements.
            unsafe { sys::gcx_stream_probe_sms(self.0, ids, room, count) }
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
        match self.info() {
            Ok(info) => {
                let StreamInfo { sm_count, device, priority, .. } = info;
                write!(out, "Stream({sm_count} SMs of device {device}, priority {priority})")
            }
            Err(error) => write!(out, "Stream({})", error.name()),
        }
    }
}
