//! Events, and what can be waited for.

use std::fmt;

use crate::call::{described, handle, written};
use crate::context::Context;
use crate::device::ordinal_of;
use crate::error::Result;
use crate::partition::Partition;
use crate::stream::Stream;
use crate::sys;

handle! {
    /// A CUDA event: a point in the work of a stream or context, to wait for.
    ///
    /// ```
    /// use gcx::EventOptions;
    ///
    /// let device = gcx::Device::new(0)?;
    /// let parts = device.partition([24])?;
    /// let timed = EventOptions::new().timing();
    /// let (start, end) = (timed.create(0)?, timed.create(0)?);
    /// parts[0].stream().record_into(&start)?;
    /// parts[0].stream().record_into(&end)?;
    /// end.synchronize()?;
    /// assert!(end.milliseconds_since(&start)? >= 0.0);
    /// # Ok::<(), gcx::Error>(())
    /// ```
    Event, gcx_event, gcx_event_destroy
}

impl Event {
    /// Creates an event without timing on the device with this ordinal.
    pub fn new(device: u32) -> Result<Self> {
        EventOptions::new().create(device)
    }

    /// Returns an object for an event that other code created, for recording, waiting and timing.
    ///
    /// # Safety
    ///
    /// `native` is an event that outlives the object.
    pub unsafe fn from_native(native: *mut sys::CUevent_st) -> Result<Self> {
        Event::created(|handle| sys::gcx_event_from_native(native, handle))
    }

    /// Returns the milliseconds from the work of `start` to that of this. Fails with
    /// [`InvalidHandle`](crate::ErrorKind) unless both are recorded, with [`EventOptions::timing`]
    /// and on one device, and with `NotReady` if one hasn't finished.
    pub fn milliseconds_since(&self, start: &Event) -> Result<f32> {
        written(0.0, |to| {
            // SAFETY: the handles are alive; a number is written.
            unsafe { sys::gcx_event_get_elapsed(start.0, self.0, to) }
        })
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = |finished| if finished { "finished" } else { "not finished" }.to_owned();
        described(out, "Event", self.query().map(known))
    }
}

/// How an event is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use]
pub struct EventOptions {
    flags: u32,
}

impl EventOptions {
    /// Without timing; threads that wait for the event spin.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records times, for [`Event::milliseconds_since`]; costs more.
    pub fn timing(mut self) -> Self {
        self.flags |= sys::GCX_EVENT_TIMING;
        self
    }

    /// Makes threads that wait for the event sleep: they wake a little later.
    pub fn blocking_sync(mut self) -> Self {
        self.flags |= sys::GCX_EVENT_BLOCKING_SYNC;
        self
    }

    /// Creates the event on the device with this ordinal.
    pub fn create(self, device: u32) -> Result<Event> {
        let device = ordinal_of(device)?;
        // SAFETY: a handle is written.
        Event::created(|handle| unsafe { sys::gcx_event_create(device, self.flags, handle) })
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Event {}
    impl Sealed for super::Stream {}
    impl Sealed for super::Context {}
    impl Sealed for super::Partition {}
}

/// What [`Stream::wait`], [`Context::wait`] and [`Partition::wait`] can wait for: an [`Event`], or
/// what was submitted so far to a [`Stream`], [`Context`] or [`Partition`].
pub trait WaitFor: sealed::Sealed {
    /// Calls the function with an event that stands for the work.
    #[doc(hidden)]
    fn with_event<R>(&self, function: impl FnOnce(&Event) -> Result<R>) -> Result<R>;
}

impl WaitFor for Event {
    fn with_event<R>(&self, function: impl FnOnce(&Event) -> Result<R>) -> Result<R> {
        function(self)
    }
}

impl WaitFor for Stream {
    fn with_event<R>(&self, function: impl FnOnce(&Event) -> Result<R>) -> Result<R> {
        function(&self.record()?)
    }
}

impl WaitFor for Context {
    fn with_event<R>(&self, function: impl FnOnce(&Event) -> Result<R>) -> Result<R> {
        function(&self.record()?)
    }
}

impl WaitFor for Partition {
    fn with_event<R>(&self, function: impl FnOnce(&Event) -> Result<R>) -> Result<R> {
        self.stream().with_event(function)
    }
}
