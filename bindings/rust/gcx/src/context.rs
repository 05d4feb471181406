//! Contexts.

use std::fmt;
use std::mem::{forget, ManuallyDrop};
use std::ptr;

use crate::call::{check, described, filled, handle, written};
use crate::device::live_contexts_of;
use crate::error::{Error, Result};
use crate::event::{Event, WaitFor};
use crate::generated::{ContextInfo, LiveContext};
use crate::resource::{SmResource, WorkqueueResource};
use crate::stream::Stream;
use crate::sys;

handle! {
    /// A green context: SMs to run on, and perhaps a workqueue configuration.
    ///
    /// The first context of some resources takes 1 to 3 ms and waits for running kernels. Later
    /// ones take microseconds: contexts over equal resources share one green context, unless they
    /// are [private](ContextBuilder::private), and it stays cached once all its contexts and
    /// streams are dropped. A stream keeps its context.
    ///
    /// ```
    /// let sms = gcx::Device::new(0)?.sms()?;
    /// let ([small], _) = sms.split_array([24])?;
    /// let stream = gcx::Context::new(&small)?.stream()?; // which keeps the context
    /// assert_eq!(stream.sm_count()?, 24);
    /// # Ok::<(), gcx::Error>(())
    /// ```
    Context, gcx_context, gcx_context_destroy
}

impl Context {
    /// Creates a context of a resource.
    pub fn new(sms: &SmResource) -> Result<Self> {
        Self::of(std::slice::from_ref(sms.as_raw()), 0)
    }

    /// Returns a builder of a context of several resources, with a workqueue, or a private one.
    pub fn builder() -> ContextBuilder {
        ContextBuilder { resources: Vec::new(), flags: 0 }
    }

    fn of(resources: &[sys::gcx_resource], flags: u32) -> Result<Self> {
        let count = u32::try_from(resources.len()).unwrap_or(u32::MAX);
        let params = sys::gcx_context_params { flags, ..sys::GCX_CONTEXT_PARAMS_INIT };
        Context::created(|handle| {
            // SAFETY: `resources` has `count` elements; a handle is written.
            unsafe { sys::gcx_context_create(resources.as_ptr(), count, &params, handle) }
        })
    }

    /// Creates a stream that no other object has. Takes microseconds.
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with_priority(0)
    }

    /// Creates a stream with a priority. Lower is more urgent; it is clamped to
    /// [`Device::stream_priority_range`](crate::Device::stream_priority_range).
    pub fn stream_with_priority(&self, priority: i32) -> Result<Stream> {
        Stream::with_priority(priority, |params, handle| {
            // SAFETY: the context is alive; a handle is written.
            unsafe { sys::gcx_stream_create(self.0, params, handle) }
        })
    }

    /// Calls the function with this context current in the calling thread, and restores what was
    /// current before, also after a panic.
    ///
    /// Fails with [`InvalidContext`](crate::ErrorKind) if the function left another context on top
    /// of CUDA's stack.
    ///
    /// ```
    /// # let sms = gcx::Device::new(0)?.sms()?;
    /// let context = gcx::Context::new(&sms)?;
    /// let current = context.with_current(gcx::current_context)??;
    /// assert_eq!(current.unwrap().id, context.info()?.id);
    /// # Ok::<(), gcx::Error>(())
    /// ```
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
        forget(pushed);
        // SAFETY: NULL asks for no handle.
        check(unsafe { sys::gcx_context_pop(ptr::null_mut()) })?;
        Ok(result)
    }

    /// Returns an event that stands for the work submitted so far to all streams of the context.
    pub fn record(&self) -> Result<Event> {
        let event = Event::new(self.info()?.device)?;
        self.record_into(&event)?;
        Ok(event)
    }

    /// Makes all later work of the context's streams wait for what was submitted so far. The
    /// calling thread doesn't wait.
    pub fn wait(&self, what: &impl WaitFor) -> Result<()> {
        what.with_event(|event| {
            // SAFETY: the handles are alive.
            check(unsafe { sys::gcx_context_wait(self.0, event.as_raw()) })
        })
    }

    /// Releases the context as dropping it does, but reports failures: if other code has it current
    /// in this thread, fails with [`ContextInUse`](crate::ErrorKind) and gives it back.
    pub fn close(self) -> std::result::Result<(), NotClosed> {
        let context = ManuallyDrop::new(self);
        // SAFETY: the handle is this object's, and isn't used again if this succeeds.
        check(unsafe { sys::gcx_context_destroy(context.0) })
            .map_err(|error| NotClosed { context: ManuallyDrop::into_inner(context), error })
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self
            .info()
            .map(|info| format!("{}: {} SMs of device {}", info.id, info.sm_count, info.device));
        described(out, "Context", known)
    }
}

/// The error of [`Context::close`]. As an [`Error`] it drops the context.
#[derive(Debug)]
pub struct NotClosed {
    /// The object, unchanged.
    pub context: Context,
    /// Why the call failed.
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

/// Collects what a context is made of, from [`Context::builder`].
///
/// ```
/// # let sms = gcx::Device::new(0)?.sms()?;
/// let ([a, b], _) = sms.split_array([16, 24])?;
/// let context = gcx::Context::builder().sms(&a).sms(&b).private().build()?;
/// assert_eq!(context.info()?.sm_count, 40);
/// # Ok::<(), gcx::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ContextBuilder {
    resources: Vec<sys::gcx_resource>,
    flags: u32,
}

impl ContextBuilder {
    /// Adds SMs of the same device and family, disjoint from the others.
    pub fn sms(mut self, sms: &SmResource) -> Self {
        self.resources.push(*sms.as_raw());
        self
    }

    /// Sets the workqueue configuration or workqueue (CUDA 13.1).
    pub fn workqueue(mut self, workqueue: &WorkqueueResource) -> Self {
        self.resources.push(*workqueue.as_raw());
        self
    }

    /// Requests a green context that no other context shares while this or a stream of it is alive.
    pub fn private(mut self) -> Self {
        self.flags |= sys::GCX_CONTEXT_PRIVATE;
        self
    }

    /// Creates the context. Fails with [`InvalidResourceConfiguration`](crate::ErrorKind) if the
    /// SMs overlap, are of two devices or families, or are none, and with `InvalidResourceType` if
    /// there are no SM resources or two workqueues.
    pub fn build(&self) -> Result<Context> {
        Context::of(&self.resources, self.flags)
    }
}

/// Returns information about the context that the calling thread made current last, if it is
/// current.
pub fn current_context() -> Result<Option<ContextInfo>> {
    // SAFETY: a handle is written, which stays its owner's.
    let handle = written(ptr::null_mut(), |to| unsafe { sys::gcx_context_get_current(to) })?;
    if handle.is_null() {
        return Ok(None);
    }
    filled(sys::GCX_CONTEXT_INFO_INIT, |info| {
        // SAFETY: C checks the handle, and fills in the struct.
        unsafe { sys::gcx_context_get_info(handle, info) }
    })
    .map(Some)
}

/// Lists the green contexts in use on all devices: those with a context or stream, and those of
/// leases and graphs. [`Device::live_contexts`](crate::Device::live_contexts) lists those of one.
pub fn live_contexts() -> Result<Vec<LiveContext>> {
    live_contexts_of(-1)
}
