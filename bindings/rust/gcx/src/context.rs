//! Contexts.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr;

use crate::context_builder::ContextBuilder;
use crate::error::{check, Error, Result};
use crate::event::Event;
use crate::generated::ContextInfo;
use crate::order::WaitFor;
use crate::resource::SmResource;
use crate::stream::Stream;
use crate::sys;
use crate::workqueue::WorkqueueResource;

/// A green context: SMs to run on, and perhaps a workqueue configuration.
///
/// Making one for resources that had one before takes microseconds; the first takes 1 to 3 ms and
/// waits for running kernels. Contexts over equal resources share one green context, those of other
/// libraries in the process too, unless they are [private](ContextBuilder::private).
///
/// Its streams keep it, whatever is dropped first. When the last of all is dropped, the green context
/// is kept by gcx for the next that wants the same SMs; work in flight finishes.
///
/// ```
/// let sms = gcx::Device::new(0)?.sms()?;
/// let ([small], _) = sms.split_array([24])?;
/// let stream = gcx::Context::new(&small)?.stream()?; // which keeps the context
/// assert_eq!(stream.sm_count()?, 24);
/// # Ok::<(), gcx::Error>(())
/// ```
pub struct Context(sys::gcx_context);

// SAFETY: a handle names an object; any function may be called from any thread, also on the same
// object. What is of a thread, being current, is taken off in that thread by `with_current`.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // It fails where the context can't be given up: in the child of a fork, or while other code
        // has it current. Nobody is there to be told, and the handle stays.
        // SAFETY: the handle is ours, and is given up once.
        unsafe { sys::gcx_context_destroy(self.0) };
    }
}

impl Context {
    /// A context of a resource.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidResourceConfiguration`](crate::ErrorKind) it has no SMs.
    pub fn new(sms: &SmResource) -> Result<Self> {
        Self::made_of(std::slice::from_ref(sms.as_raw()), 0)
    }

    /// For a context of several resources, or with a workqueue, or a private one.
    pub fn builder() -> ContextBuilder {
        ContextBuilder::new()
    }

    pub(crate) fn made_of(resources: &[sys::gcx_resource], flags: u32) -> Result<Self> {
        let count = u32::try_from(resources.len()).unwrap_or(u32::MAX);
        let params = sys::gcx_context_params { flags, ..sys::GCX_CONTEXT_PARAMS_INIT };
        let mut handle = ptr::null_mut();
        // SAFETY: `resources` has `count` elements; a handle is written.
        check(unsafe { sys::gcx_context_create(resources.as_ptr(), count, &params, &mut handle) })?;
        Ok(Context(handle))
    }

    /// A further handle for the context that gcx made behind a native one.
    ///
    /// # Safety
    ///
    /// `native` is a context that was not destroyed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind) it isn't one of gcx's.
    pub unsafe fn from_native(native: *mut sys::CUctx_st) -> Result<Self> {
        let mut handle = ptr::null_mut();
        check(sys::gcx_context_from_native(native, &mut handle))?;
        Ok(Context(handle))
    }

    /// The `CUcontext`, for any CUDA code. It stays gcx's: never destroy it. Valid as long as the
    /// context or a stream of it is alive.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ContextDestroyed`](crate::ErrorKind) the device was reset.
    pub fn native(&self) -> Result<*mut sys::CUctx_st> {
        // SAFETY: the handle is alive.
        let native = unsafe { sys::gcx_context_native(self.0) };
        if native.is_null() {
            return Err(self.why_no_native());
        }
        Ok(native)
    }

    /// The `CUgreenCtx`, as [`native`](Self::native).
    ///
    /// # Errors
    ///
    /// As [`native`](Self::native).
    pub fn native_green(&self) -> Result<*mut sys::CUgreenCtx_st> {
        // SAFETY: the handle is alive.
        let native = unsafe { sys::gcx_context_native_green(self.0) };
        if native.is_null() {
            return Err(self.why_no_native());
        }
        Ok(native)
    }

    /// The functions that give native handles say that something is wrong, not which number that
    /// has.
    fn why_no_native(&self) -> Error {
        self.info().err().unwrap_or_else(|| Error::last(sys::GCX_ERROR_UNKNOWN))
    }

    /// The C API's handle. It stays this context's.
    #[must_use]
    pub fn as_raw(&self) -> sys::gcx_context {
        self.0
    }

    /// What is known of it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ContextDestroyed`](crate::ErrorKind) the device was reset.
    pub fn info(&self) -> Result<ContextInfo> {
        let mut info = sys::GCX_CONTEXT_INFO_INIT;
        // SAFETY: the handle is alive; the struct is filled in as far as its struct_size says.
        check(unsafe { sys::gcx_context_get_info(self.0, &mut info) })?;
        Ok(ContextInfo::from(&info))
    }

    /// Its SMs, as one resource.
    ///
    /// # Errors
    ///
    /// As [`info`](Self::info).
    pub fn sms(&self) -> Result<SmResource> {
        SmResource::from_raw(self.resource(sys::GCX_RESOURCE_SM)?)
    }

    /// Its workqueue configuration.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotSupported`](crate::ErrorKind) the driver is older than CUDA 13.1.
    pub fn workqueue_config(&self) -> Result<WorkqueueResource> {
        WorkqueueResource::from_raw(self.resource(sys::GCX_RESOURCE_WORKQUEUE_CONFIG)?)
    }

    /// Its workqueue, to be shared with another context.
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
        check(unsafe { sys::gcx_context_get_resource(self.0, kind, &mut resource) })?;
        Ok(resource)
    }

    /// A stream of this context, nobody else's while it lives. Takes microseconds.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ContextDestroyed`](crate::ErrorKind) the device was reset.
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with_priority(0)
    }

    /// The same with a priority: lower is more urgent; clamped to
    /// [what the device has](crate::Device::stream_priority_range).
    ///
    /// # Errors
    ///
    /// As [`stream`](Self::stream).
    pub fn stream_with_priority(&self, priority: i32) -> Result<Stream> {
        Stream::new(self, priority)
    }

    /// Calls the function with this context current in the calling thread, on top of CUDA's stack.
    /// What was current before is so again afterwards, also after a panic.
    ///
    /// ```
    /// # let sms = gcx::Device::new(0)?.sms()?;
    /// let context = gcx::Context::new(&sms)?;
    /// let current = context.with_current(gcx::current_context)??;
    /// assert_eq!(current.unwrap().info()?.id, context.info()?.id);
    /// # Ok::<(), gcx::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ContextDestroyed`](crate::ErrorKind) the device was reset, and the function was
    /// not called. [`ErrorKind::InvalidContext`](crate::ErrorKind) it was called, and left another
    /// context on top, which hides this one.
    pub fn with_current<R>(&self, function: impl FnOnce() -> R) -> Result<R> {
        struct Pushed;
        impl Drop for Pushed {
            fn drop(&mut self) {
                // SAFETY: NULL asks for no handle.
                unsafe { sys::gcx_context_pop(ptr::null_mut()) };
            }
        }
        // SAFETY: the handle is alive.
        check(unsafe { sys::gcx_context_push(self.0) })?;
        let pushed = Pushed;
        let result = function();
        std::mem::forget(pushed);
        // SAFETY: NULL asks for no handle.
        check(unsafe { sys::gcx_context_pop(ptr::null_mut()) })?;
        Ok(result)
    }

    /// Waits until all work of the context's streams has finished. Blocks the calling thread.
    ///
    /// # Errors
    ///
    /// Those of that work; [`ErrorKind::Capture`](crate::ErrorKind) a stream of it captures a graph.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the handle is alive.
        check(unsafe { sys::gcx_context_synchronize(self.0) })
    }

    /// An event that stands for the work submitted so far to all streams of the context.
    ///
    /// # Errors
    ///
    /// As [`synchronize`](Self::synchronize).
    pub fn record(&self) -> Result<Event> {
        let event = Event::new(self.info()?.device)?;
        self.record_into(&event)?;
        Ok(event)
    }

    /// The same with an event that there is.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidHandle`](crate::ErrorKind) the event is of another device.
    pub fn record_into(&self, event: &Event) -> Result<()> {
        // SAFETY: the handles are alive.
        check(unsafe { sys::gcx_context_record(self.0, event.as_raw()) })
    }

    /// Holds all later work of the context's streams until the work of the event, stream, context or
    /// partition that was submitted so far has finished. The calling thread doesn't wait.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Capture`](crate::ErrorKind) one takes part in a graph capture.
    pub fn wait(&self, what: &impl WaitFor) -> Result<()> {
        what.with_event(|event| {
            // SAFETY: the handles are alive.
            check(unsafe { sys::gcx_context_wait(self.0, event.as_raw()) })
        })
    }

    /// Gives this context up, as dropping it does, but says if that can't be. Its streams keep it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ContextInUse`](crate::ErrorKind) other code has it current in this thread; the
    /// context is given back with the error.
    pub fn close(self) -> std::result::Result<(), NotClosed> {
        let context = ManuallyDrop::new(self);
        // SAFETY: the handle is ours, and isn't used again if this succeeds.
        check(unsafe { sys::gcx_context_destroy(context.0) })
            .map_err(|error| NotClosed { context: ManuallyDrop::into_inner(context), error })
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Ok(info) => {
                let ContextInfo { id, sm_count, device, .. } = info;
                write!(out, "Context({id}: {sm_count} SMs of device {device})")
            }
            Err(error) => write!(out, "Context({})", error.name()),
        }
    }
}

/// A context that could not be closed, and why.
#[derive(Debug)]
pub struct NotClosed {
    /// The context, as it was.
    pub context: Context,
    /// Why it could not be closed.
    pub error: Error,
}

impl fmt::Display for NotClosed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(out)
    }
}

impl std::error::Error for NotClosed {}

impl From<NotClosed> for Error {
    fn from(not_closed: NotClosed) -> Self {
        not_closed.error
    }
}

/// The context that the calling thread made current last, if it is current.
///
/// # Errors
///
/// None that is known.
pub fn current_context() -> Result<Option<Context>> {
    let mut handle = ptr::null_mut();
    // SAFETY: a handle is written, which stays its owner's.
    check(unsafe { sys::gcx_context_get_current(&mut handle) })?;
    if handle.is_null() {
        return Ok(None);
    }
    // SAFETY: the handle is alive in this thread as long as it is current.
    let native = unsafe { sys::gcx_context_native(handle) };
    if native.is_null() {
        return Err(Error::last(sys::GCX_ERROR_CONTEXT_IS_DESTROYED));
    }
    // SAFETY: it is the native context of a live one.
    unsafe { Context::from_native(native) }.map(Some)
}
