//! Events.

use std::fmt;
use std::ptr;

use crate::device::ordinal_of;
use crate::error::{check, finished, Error, Result};
use crate::sys;

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
pub struct Event(sys::gcx_event);

// SAFETY: a handle names an object; any function may be called from any thread, also on the same
// object.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is ours, and is given up once.
        unsafe { sys::gcx_event_destroy(self.0) };
    }
}

impl Event {
    /// An event on the device of this ordinal, without times.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidDevice`](crate::ErrorKind) there is no such device.
    pub fn new(device: u32) -> Result<Self> {
        EventOptions::new().create(device)
    }

    /// An event that someone else made, for recording, waiting and times.
    ///
    /// # Safety
    ///
    /// `native` is an event that outlives what this gives.
    ///
    /// # Errors
    ///
    /// What the driver says of an event that isn't one, as far as it notices.
    pub unsafe fn from_native(native: *mut sys::CUevent_st) -> Result<Self> {
        let mut handle = ptr::null_mut();
        check(sys::gcx_event_from_native(native, &mut handle))?;
        Ok(Event(handle))
    }

    /// The `CUevent`, for any CUDA code. It stays gcx's. Valid as long as this is alive.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ContextDestroyed`](crate::ErrorKind) the device was reset.
    pub fn native(&self) -> Result<*mut sys::CUevent_st> {
        // SAFETY: the handle is alive.
        let native = unsafe { sys::gcx_event_native(self.0) };
        if native.is_null() {
            // The function says that something is wrong, not which number that has.
            let error = self.query().err();
            return Err(error.unwrap_or_else(|| Error::last(sys::GCX_ERROR_UNKNOWN)));
        }
        Ok(native)
    }

    /// The C API's handle. It stays this event's.
    #[must_use]
    pub fn as_raw(&self) -> sys::gcx_event {
        self.0
    }

    /// Waits in the calling thread for its work.
    ///
    /// # Errors
    ///
    /// Those of that work; [`ErrorKind::Capture`](crate::ErrorKind) it was recorded in a capture.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the handle is alive.
        check(unsafe { sys::gcx_event_synchronize(self.0) })
    }

    /// Whether its work has finished; true of one never recorded. Never waits.
    ///
    /// # Errors
    ///
    /// As [`synchronize`](Self::synchronize).
    pub fn query(&self) -> Result<bool> {
        // SAFETY: the handle is alive.
        finished(unsafe { sys::gcx_event_query(self.0) })
    }

    /// Milliseconds between the work of another event and that of this. Both need
    /// [`EventOptions::timing`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidHandle`](crate::ErrorKind) one has no timing or was never recorded,
    /// or they are of two devices;
    /// [`ErrorKind::NotReady`](crate::ErrorKind) one has not finished.
    pub fn milliseconds_since(&self, start: &Event) -> Result<f32> {
        let mut milliseconds = 0.0;
        // SAFETY: the handles are alive; a number is written.
        check(unsafe { sys::gcx_event_get_elapsed(start.0, self.0, &mut milliseconds) })?;
        Ok(milliseconds)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.query() {
            Ok(true) => write!(out, "Event(finished)"),
            Ok(false) => write!(out, "Event(not finished)"),
            Err(error) => write!(out, "Event({})", error.name()),
        }
    }
}

/// How an event is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use]
pub struct EventOptions {
    flags: u32,
}

impl EventOptions {
    /// Without times; threads that wait for it spin.
    pub fn new() -> Self {
        Self::default()
    }

    /// It takes times, for [`Event::milliseconds_since`]; costs more.
    pub fn timing(mut self) -> Self {
        self.flags |= sys::GCX_EVENT_TIMING;
        self
    }

    /// Threads that wait for it sleep: they leave the processor to others, and wake a little later.
    pub fn blocking_sync(mut self) -> Self {
        self.flags |= sys::GCX_EVENT_BLOCKING_SYNC;
        self
    }

    /// Makes the event on the device of this ordinal.
    ///
    /// # Errors
    ///
    /// As [`Event::new`].
    pub fn create(self, device: u32) -> Result<Event> {
        let mut handle = ptr::null_mut();
        // SAFETY: a handle is written.
        check(unsafe { sys::gcx_event_create(ordinal_of(device)?, self.flags, &mut handle) })?;
        Ok(Event(handle))
    }
}
