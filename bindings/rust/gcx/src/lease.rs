//! Leases: acquiring, changing and releasing SMs within a process.

use std::fmt;
use std::ptr;
use std::time::Duration;

use crate::call::{address_of, array, c_text, check, described, handle};
use crate::device::{leases_of, Device};
use crate::error::{Error, Result};
use crate::generated::{Family, LeaseInfo, LiveLease};
use crate::reservation::Reservation;
use crate::stream::Stream;
use crate::sys;

/// How many SMs a lease or reservation is to have. A number is a count, and `None` is the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sms {
    /// This many, at least 1, rounded up to what the device can give.
    Count(u32),
    /// What all others leave. In [`resize`] several share it as evenly as the device allows.
    Rest,
    /// None, only in [`resize`]: the lease keeps its streams, which fail with
    /// [`LeaseParked`](crate::ErrorKind) until it is resized again.
    Parked,
}

impl Sms {
    /// The number as C takes it. A count must not become the rest.
    pub(crate) fn raw(self) -> Result<u32> {
        let message = match self {
            Sms::Rest => return Ok(sys::GCX_REST),
            Sms::Parked => "Sms::Parked is for resizes of a lease; request at least 1 SM",
            Sms::Count(0) => {
                "0 SMs were requested; Sms::Rest takes what the others leave, Sms::Parked in a \
                 resize all SMs of a lease"
            }
            Sms::Count(sys::GCX_REST) => {
                "4294967295 is no count of SMs; Sms::Rest takes what the others leave"
            }
            Sms::Count(count) => return Ok(count),
        };
        Err(Error::of(sys::GCX_ERROR_INVALID_VALUE, message))
    }
}

impl From<u32> for Sms {
    fn from(count: u32) -> Self {
        Sms::Count(count)
    }
}

impl From<Option<u32>> for Sms {
    fn from(count: Option<u32>) -> Self {
        count.map_or(Sms::Rest, Sms::Count)
    }
}

handle! {
    /// Exclusive use of some SMs within this process, from [`Lease::acquire`], [`Device::lease`] or
    /// [`Reservation::lease`].
    ///
    /// No two leases of a process have an SM in common, unless both are
    /// [shared](LeaseBuilder::shared). Plain contexts don't respect leases;
    /// [`SplitOptions::exclude_leased`](crate::SplitOptions::exclude_leased) keeps clear of them.
    ///
    /// ```
    /// use gcx::{Lease, Resize, Sms};
    ///
    /// let device = gcx::Device::new(0)?;
    /// let decode = Lease::acquire(&device, 32)?;
    /// let prefill = Lease::acquire(&device, Sms::Rest)?;
    /// let stream = decode.stream()?;
    ///
    /// // In one operation one lease grows by what the other gives; the host doesn't wait.
    /// gcx::resize(&[(&decode, Sms::Count(64)), (&prefill, Sms::Rest)], Resize::default())?;
    /// assert_eq!(stream.sm_count()?, 64);
    /// let native = stream.native()?; // a CUstream of the 64 SMs: ask again for each step
    /// # let _ = native;
    /// # Ok::<(), gcx::Error>(())
    /// ```
    ///
    /// **Streams follow the lease**: [`Stream::native`], and every function that takes the stream,
    /// uses a `CUstream` of the SMs that the lease has at that call, ordered after all earlier
    /// work. Submit nothing to an earlier `CUstream` while another thread changes the lease.
    ///
    /// **Exclusive in time too**: after a change, work on SMs that a lease gained waits on the
    /// device for the earlier work of gcx streams there.
    ///
    /// **Dropping** a lease never waits. Its SMs are free at once, its work finishes, and its
    /// streams fail with [`ContextDestroyed`](crate::ErrorKind).
    Lease, gcx_lease, gcx_lease_release
}

impl Lease {
    /// Acquires SMs of the device without waiting. Counts are rounded up: [`info`](Self::info)
    /// returns what it has. [`Device::lease`] has all options.
    pub fn acquire(device: &Device, sms: impl Into<Sms>) -> Result<Self> {
        device.lease().sm_count(sms).acquire()
    }

    /// Creates a stream of priority 0 that follows the lease.
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with_priority(0)
    }

    /// Creates a stream with a priority. Lower is more urgent; it is clamped to
    /// [`Device::stream_priority_range`].
    pub fn stream_with_priority(&self, priority: i32) -> Result<Stream> {
        Stream::with_priority(priority, |params, handle| {
            // SAFETY: the lease is alive; a handle is written.
            unsafe { sys::gcx_lease_stream_create(self.0, params, handle) }
        })
    }

    /// Changes how many SMs it has, see [`resize`].
    ///
    /// ```
    /// let lease = gcx::Lease::acquire(&gcx::Device::new(0)?, 24)?;
    /// let stream = lease.stream()?;
    /// lease.resize(64)?;
    /// assert_eq!(stream.sm_count()?, 64);
    /// # Ok::<(), gcx::Error>(())
    /// ```
    pub fn resize(&self, sms: impl Into<Sms>) -> Result<()> {
        self.resize_with(sms, Resize::new())
    }

    /// As [`resize`](Self::resize), with options.
    pub fn resize_with(&self, sms: impl Into<Sms>, how: Resize) -> Result<()> {
        resize(&[(self, sms.into())], how)
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.info().map(|info| {
            let LeaseInfo { id, name, sm_count, device, .. } = info;
            format!("{id} {name:?}: {sm_count} SMs of device {device}")
        });
        described(out, "Lease", known)
    }
}

/// Declares what the builders of leases and reservations have in common.
macro_rules! request_setters {
    () => {
        /// Sets how many SMs: a count, or [`Sms::Rest`].
        pub fn sm_count(mut self, sms: impl Into<Sms>) -> Self {
            self.sms = sms.into();
            self
        }

        /// Sets the smallest acceptable count. By default it is the requested one, and of the rest
        /// the smallest that the device can give.
        pub fn min_sm_count(mut self, sm_count: u32) -> Self {
            self.min_sm_count = Some(sm_count);
            self
        }

        /// Sets a name for messages and lists, of at most 63 bytes.
        pub fn name(mut self, name: impl Into<String>) -> Self {
            self.name = Some(name.into());
            self
        }

        /// Sets the family: [`Family::Fine`] or [`Family::MaxCluster`] instead of
        /// [`Family::Coscheduled`].
        pub fn family(mut self, family: Family) -> Self {
            self.family = Some(family);
            self
        }

        /// Sets how long to wait for the SMs, in whole milliseconds, rounded up. Requests, those of
        /// other processes for a reservation too, are served in order of arrival.
        /// [`Duration::MAX`], and all beyond 49 days, never times out.
        pub fn timeout(mut self, timeout: Duration) -> Self {
            self.timeout_ms = crate::lease::milliseconds(timeout);
            self
        }

        /// Sets what cancels the wait from another thread.
        pub fn cancel(mut self, cancel: &'a Cancel) -> Self {
            self.cancel = Some(cancel);
            self
        }
    };
}
pub(crate) use request_setters;

/// Collects what a lease is to be, from [`Device::lease`] or [`Reservation::lease`]. By default it
/// acquires the rest without waiting.
///
/// ```
/// use std::time::Duration;
///
/// let device = gcx::Device::new(0)?;
/// let decode = device
///     .lease()
///     .sm_count(32)
///     .name("decode") // in messages and lists
///     .min_sm_count(16) // is acceptable if 32 aren't free
///     .timeout(Duration::from_millis(50))
///     .acquire()?;
/// assert_eq!(decode.sm_count()?, 32);
/// # Ok::<(), gcx::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LeaseBuilder<'a> {
    source: Source<'a>,
    sms: Sms,
    name: Option<String>,
    min_sm_count: Option<u32>,
    exclusive_sm_count: u32,
    family: Option<Family>,
    flags: u32,
    timeout_ms: u32,
    cancel: Option<&'a Cancel>,
}

/// What a lease has some SMs of.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Device(i32),
    Reservation(&'a Reservation),
}

impl<'a> LeaseBuilder<'a> {
    pub(crate) fn of_device(device: i32) -> Self {
        Self::new(Source::Device(device))
    }

    pub(crate) fn of_reservation(reservation: &'a Reservation) -> Self {
        Self::new(Source::Reservation(reservation))
    }

    fn new(source: Source<'a>) -> Self {
        LeaseBuilder {
            source,
            sms: Sms::Rest,
            name: None,
            min_sm_count: None,
            exclusive_sm_count: 0,
            family: None,
            flags: 0,
            timeout_ms: 0,
            cancel: None,
        }
    }

    request_setters!();

    /// Allows other shared leases to have its SMs too.
    pub fn shared(mut self) -> Self {
        self.flags |= sys::GCX_LEASE_SHARED;
        self
    }

    /// Requires exclusive queues (CUDA 13.1), see [`queue_info`](crate::queue_info).
    pub fn require_workqueues(mut self) -> Self {
        self.flags |= sys::GCX_LEASE_REQUIRE_WORKQUEUES;
        self
    }

    /// Sets how many SMs a [shared](Self::shared) lease has exclusively.
    pub fn exclusive_sm_count(mut self, sm_count: u32) -> Self {
        self.exclusive_sm_count = sm_count;
        self
    }

    /// Acquires the SMs; [`Lease::info`] returns what the lease has. The first lease over a set of
    /// SMs creates its context; later ones take microseconds.
    ///
    /// # Errors
    ///
    /// - [`AlreadyAcquired`](crate::ErrorKind): other leases have the SMs, or requests wait for
    ///   them, and there is no timeout. The message names them.
    /// - `Timeout`: the same, still after the timeout.
    /// - `Cancelled`: the wait was [cancelled](Cancel::signal).
    /// - `InvalidResourceConfiguration`: the device or reservation has fewer SMs than requested.
    /// - `SmsNotMapped`: there are leases of another family; call
    ///   [`Device::map_sms`](crate::Device::map_sms) for both.
    /// - `NotSupported`: the driver lacks [`require_workqueues`](Self::require_workqueues).
    /// - `InvalidValue`: a count, name or family is invalid.
    pub fn acquire(&self) -> Result<Lease> {
        let name = self.name.as_deref().map(|name| c_text(name, "the lease's name")).transpose()?;
        let (device, reservation) = match self.source {
            Source::Device(device) => (device, ptr::null_mut()),
            Source::Reservation(reservation) => (-1, reservation.as_raw()),
        };
        let params = sys::gcx_lease_params {
            flags: self.flags,
            family: self.family.map_or(sys::GCX_SM_FAMILY_NONE, Into::into),
            min_sm_count: min_sm_count(self.min_sm_count)?,
            exclusive_sm_count: self.exclusive_sm_count,
            timeout_ms: self.timeout_ms,
            cancel: self.cancel.map_or(ptr::null_mut(), Cancel::as_raw),
            name: address_of(name.as_ref()),
            reservation,
            ..sys::GCX_LEASE_PARAMS_INIT
        };
        let sm_count = self.sms.raw()?;
        // SAFETY: what the struct has is alive; a handle is written.
        Lease::created(|handle| unsafe {
            sys::gcx_lease_acquire(device, sm_count, &params, handle)
        })
    }
}

/// The smallest acceptable count as C takes it, where 0 is the default.
pub(crate) fn min_sm_count(sm_count: Option<u32>) -> Result<u32> {
    if sm_count == Some(0) {
        let message = "min_sm_count is 0; it is at least 1";
        return Err(Error::of(sys::GCX_ERROR_INVALID_VALUE, message));
    }
    Ok(sm_count.unwrap_or(0))
}

/// A timeout as C takes it.
pub(crate) fn milliseconds(timeout: Duration) -> u32 {
    let milliseconds = (timeout.as_nanos() + 999_999) / 1_000_000;
    u32::try_from(milliseconds).unwrap_or(sys::GCX_FOREVER)
}

handle! {
    /// Cancels waits and [preparation](crate::cache::prepare_with), any number of them, from any
    /// thread.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let device = gcx::Device::new(0)?;
    /// let all = gcx::Lease::acquire(&device, None)?;
    /// let cancel = gcx::Cancel::new()?;
    /// let builder = device.lease().timeout(Duration::MAX).cancel(&cancel);
    /// let ended = std::thread::scope(|scope| {
    ///     let waits = scope.spawn(|| builder.acquire());
    ///     cancel.signal()?;
    ///     Ok::<_, gcx::Error>(waits.join().unwrap())
    /// })?;
    /// assert_eq!(ended.unwrap_err().kind(), gcx::ErrorKind::Cancelled);
    /// # drop(all);
    /// # Ok::<(), gcx::Error>(())
    /// ```
    Cancel, gcx_cancel, gcx_cancel_destroy
}

impl Cancel {
    /// Creates one that isn't signalled.
    pub fn new() -> Result<Self> {
        // SAFETY: a handle is written.
        Cancel::created(|handle| unsafe { sys::gcx_cancel_create(handle) })
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Cancel")
    }
}

/// How leases are changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use]
pub struct Resize {
    flags: u32,
}

impl Resize {
    /// Later work on gained SMs waits on the device for the earlier work there.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps a lease whose new SMs contain its old ones on the old ones until all new ones are
    /// free. A lease that loses SMs moves at once.
    pub fn deferred(mut self) -> Self {
        self.flags |= sys::GCX_RESIZE_DEFERRED;
        self
    }
}

/// Changes the SM counts of leases, all in one operation or none. Work in flight finishes where it
/// runs; later work of their streams runs on the new SMs.
///
/// Takes microseconds if the contexts are cached, see [`prepare`]; otherwise creates them, which
/// delays no other lease.
///
/// # Errors
///
/// - [`AlreadyAcquired`](crate::ErrorKind): the SMs of these leases and the free ones don't
///   suffice, or requests wait for them. The message names them.
/// - `InvalidResourceConfiguration`: the leases are of two devices, families or reservations, the
///   device or reservation has fewer SMs, or a count is below an
///   [`exclusive_sm_count`](LeaseBuilder::exclusive_sm_count).
/// - `InvalidValue`: there are none, one is listed twice, or a count is 0.
pub fn resize(sizes: &[(&Lease, Sms)], how: Resize) -> Result<()> {
    let (sizes, count) = raw_sizes(sizes)?;
    // SAFETY: the handles are alive; the array has `count` elements.
    check(unsafe { sys::gcx_lease_resize(sizes.as_ptr(), count, how.flags) })
}

/// Creates the contexts that [`resize`] with these sizes needs, so that it takes microseconds
/// later. [`cache::prepare_with`](crate::cache::prepare_with) does so before there are leases.
///
/// ```
/// use gcx::{Lease, Resize, Sms};
///
/// let device = gcx::Device::new(0)?;
/// let (decode, prefill) = (Lease::acquire(&device, 32)?, Lease::acquire(&device, Sms::Rest)?);
/// let layout = [(&decode, Sms::Count(64)), (&prefill, Sms::Rest)];
/// gcx::prepare(&layout)?;
/// let made = gcx::cache::stats()?.misses;
/// gcx::resize(&layout, Resize::new())?;
/// assert_eq!(gcx::cache::stats()?.misses, made);
/// # Ok::<(), gcx::Error>(())
/// ```
pub fn prepare(sizes: &[(&Lease, Sms)]) -> Result<()> {
    let (sizes, count) = raw_sizes(sizes)?;
    // SAFETY: the handles are alive; the array has `count` elements.
    check(unsafe { sys::gcx_lease_prepare(sizes.as_ptr(), count) })
}

/// The sizes as C takes them, and their number.
fn raw_sizes(sizes: &[(&Lease, Sms)]) -> Result<(Vec<sys::gcx_lease_size>, u32)> {
    array(sizes.iter().map(|(lease, sms)| {
        let (sm_count, flags) =
            if *sms == Sms::Parked { (0, sys::GCX_SIZE_PARKED) } else { (sms.raw()?, 0) };
        Ok(sys::gcx_lease_size { lease: lease.0, sm_count, flags })
    }))
}

/// Lists the leases of all devices in the order in which they were acquired, then the waiting
/// requests in order of arrival. [`Device::leases`] lists those of one.
///
/// ```
/// let decode = gcx::Device::new(0)?.lease().sm_count(32).name("decode").acquire()?;
/// for lease in gcx::leases()? {
///     println!("{}: {:?} SMs", lease.name, lease.sm_count);
/// }
/// # assert_eq!(gcx::leases()?[0].sms, decode.sms()?);
/// # Ok::<(), gcx::Error>(())
/// ```
pub fn leases() -> Result<Vec<LiveLease>> {
    leases_of(-1)
}
