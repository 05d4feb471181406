//! Acquiring leases, and giving the wait for one up.

use std::ffi::CString;
use std::fmt;
use std::ptr;
use std::time::Duration;

use crate::error::{check, Error, Result};
use crate::generated::Family;
use crate::lease::Lease;
use crate::reservation::Reservation;
use crate::sys;

/// How many SMs a lease or a reservation is to have. A number is a count, and `None` is the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sms {
    /// So many, of at least 1, rounded up to what the device can give.
    Count(u32),
    /// What all other leases leave. In [`resize`](crate::resize) several share it, as evenly as the
    /// device allows.
    Rest,
}

impl Sms {
    /// The number as C takes it. A count must not become the rest.
    pub(crate) fn raw(self) -> Result<u32> {
        match self {
            Sms::Rest => Ok(sys::GCX_REST),
            Sms::Count(0) => Err(Error::of(
                sys::GCX_ERROR_INVALID_VALUE,
                "a count of 0 SMs was asked for; Sms::Rest takes what the others leave, and a lease \
                 or reservation that is dropped gives all up",
            )),
            Sms::Count(sys::GCX_REST) => Err(Error::of(
                sys::GCX_ERROR_INVALID_VALUE,
                "4294967295 is no count of SMs; Sms::Rest takes what the others leave",
            )),
            Sms::Count(count) => Ok(count),
        }
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

/// Collects what a lease is to be, from [`Device::lease`](crate::Device::lease) or
/// [`Reservation::lease`](crate::Reservation::lease): the rest, without waiting, if nothing else is said.
///
/// ```
/// use std::time::Duration;
///
/// let device = gcx::Device::new(0)?;
/// let decode = device
///     .lease()
///     .sm_count(32)
///     .name("decode") // in messages and lists
///     .min_sm_count(16) // will do, if 32 can't be had
///     .timeout(Duration::from_millis(50))
///     .acquire()?;
/// assert_eq!(decode.sm_count()?, 32);
/// # Ok::<(), gcx::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LeaseBuilder<'a> {
    of: Source<'a>,
    sms: Sms,
    name: Option<String>,
    least: Option<u32>,
    exclusive: u32,
    family: Option<Family>,
    flags: u32,
    timeout_ms: u32,
    cancel: Option<&'a Cancel>,
}

/// Whose SMs a lease is to have some of.
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

    fn new(of: Source<'a>) -> Self {
        LeaseBuilder {
            of,
            sms: Sms::Rest,
            name: None,
            least: None,
            exclusive: 0,
            family: None,
            flags: 0,
            timeout_ms: 0,
            cancel: None,
        }
    }

    /// How many SMs: a count, or [`Sms::Rest`].
    pub fn sm_count(mut self, sms: impl Into<Sms>) -> Self {
        self.sms = sms.into();
        self
    }

    /// So many SMs will do if those asked for can't be had. Without it no less than was asked for,
    /// and of the rest whatever there is.
    pub fn min_sm_count(mut self, sm_count: u32) -> Self {
        self.least = Some(sm_count);
        self
    }

    /// A name for messages and lists, of 63 bytes at most.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How its SMs are taken: [`Family::Fine`] or [`Family::MaxCluster`] instead of
    /// [`Family::Coscheduled`]. Others are an error of [`acquire`](Self::acquire).
    pub fn family(mut self, family: Family) -> Self {
        self.family = Some(family);
        self
    }

    /// Others that are shared may have its SMs too.
    pub fn shared(mut self) -> Self {
        self.flags |= sys::GCX_LEASE_SHARED;
        self
    }

    /// Insists on queues of its own, which drivers have from CUDA 13.1 on; older ones are refused. On
    /// those leases share the process's queues, see [`queue_info`](crate::queue_info).
    pub fn require_workqueues(mut self) -> Self {
        self.flags |= sys::GCX_LEASE_REQUIRE_WORKQUEUES;
        self
    }

    /// Of a [shared](Self::shared) lease: so many of its SMs are its alone.
    pub fn exclusive_sm_count(mut self, sm_count: u32) -> Self {
        self.exclusive = sm_count;
        self
    }

    /// How long to wait for the SMs, in whole milliseconds, rounded up. Those who wait are served in
    /// the order in which they came. [`Duration::MAX`], and all beyond 49 days, is for ever.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout_ms = milliseconds(timeout);
        self
    }

    /// Gives the wait up from another thread.
    pub fn cancel(mut self, cancel: &'a Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Acquires the SMs. What the lease really got is in [`Lease::info`].
    ///
    /// The first lease over a set of SMs makes a context of them, with the cost of one; later ones
    /// take microseconds.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::AlreadyAcquired`](crate::ErrorKind) others hold the SMs, or wait for them, and
    /// when the time was over still did: the message says who. `NotPermitted` the wait was
    /// [given up](Cancel::signal). `InvalidResourceConfiguration` the device has not so many SMs,
    /// whoever holds them. `NotReady` there are leases of another family, and which SMs the families
    /// hold isn't known: [`Device::map_sms`](crate::Device::map_sms) for both. `NotSupported`
    /// [`require_workqueues`](Self::require_workqueues) on a driver before CUDA 13.1. `InvalidValue` a count of 0, a family that has
    /// no leases or isn't the reservation's, a name that is too long, a least or exclusive count above the one
    /// asked for. Of a reservation also what [`Reservation::sms`](crate::Reservation::sms) says.
    pub fn acquire(&self) -> Result<Lease> {
        let name = name_of(self.name.as_deref(), "lease")?;
        let params = sys::gcx_lease_params {
            flags: self.flags,
            family: self.family.map_or(sys::GCX_SM_FAMILY_NONE, Into::into),
            min_sm_count: least(self.least)?,
            exclusive_sm_count: self.exclusive,
            timeout_ms: self.timeout_ms,
            cancel: self.cancel.map_or(ptr::null_mut(), Cancel::as_raw),
            name: name.as_ref().map_or(ptr::null(), |name| name.as_ptr()),
            ..sys::GCX_LEASE_PARAMS_INIT
        };
        let sm_count = self.sms.raw()?;
        Lease::with(|handle| match self.of {
            // SAFETY: what the struct points to is alive here; a handle is written.
            Source::Device(device) => unsafe {
                sys::gcx_lease_acquire(device, sm_count, &params, handle)
            },
            // SAFETY: as above; the reservation's handle is alive.
            Source::Reservation(reservation) => unsafe {
                sys::gcx_reservation_acquire_lease(reservation.as_raw(), sm_count, &params, handle)
            },
        })
    }
}

/// A name as C takes it; `of` says whose it is.
pub(crate) fn name_of(name: Option<&str>, of: &str) -> Result<Option<CString>> {
    name.map(CString::new).transpose().map_err(|_| {
        let message = format!("the {of}'s name has a zero byte in it");
        Error::of(sys::GCX_ERROR_INVALID_VALUE, &message)
    })
}

/// The least count as C takes it, where 0 is none: a least count of 0 must not become that.
pub(crate) fn least(sm_count: Option<u32>) -> Result<u32> {
    if sm_count == Some(0) {
        let message = "0 SMs that will do were asked for; min_sm_count is at least 1";
        return Err(Error::of(sys::GCX_ERROR_INVALID_VALUE, message));
    }
    Ok(sm_count.unwrap_or(0))
}

/// A time-out as C takes it.
pub(crate) fn milliseconds(timeout: Duration) -> u32 {
    let milliseconds = (timeout.as_nanos() + 999_999) / 1_000_000;
    u32::try_from(milliseconds).unwrap_or(sys::GCX_FOREVER)
}

/// What waits, and contexts that are made [ahead of time](crate::cache::prepare_with), are given up
/// with: one may be given to any number of them, and be signalled from any thread.
///
/// ```
/// use std::time::Duration;
///
/// let device = gcx::Device::new(0)?;
/// let all = gcx::Lease::acquire(&device, None)?;
/// let cancel = gcx::Cancel::new()?;
/// let ended = std::thread::scope(|scope| {
///     let waits = scope.spawn(|| device.lease().timeout(Duration::MAX).cancel(&cancel).acquire());
///     cancel.signal()?;
///     Ok::<_, gcx::Error>(waits.join().unwrap())
/// })?;
/// assert_eq!(ended.unwrap_err().kind(), gcx::ErrorKind::NotPermitted);
/// # drop(all);
/// # Ok::<(), gcx::Error>(())
/// ```
pub struct Cancel(sys::gcx_cancel);

// SAFETY: a handle names an object; any function may be called from any thread, also on the same
// object.
unsafe impl Send for Cancel {}
// SAFETY: as above.
unsafe impl Sync for Cancel {}

impl Drop for Cancel {
    fn drop(&mut self) {
        // SAFETY: the handle is ours, and is given up once; no wait with it goes on, for they borrow.
        unsafe { sys::gcx_cancel_destroy(self.0) };
    }
}

impl Cancel {
    /// One that was not signalled.
    ///
    /// # Errors
    ///
    /// What opening the driver says, see [`open_driver`](crate::open_driver).
    pub fn new() -> Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: a handle is written.
        check(unsafe { sys::gcx_cancel_create(&mut handle) })?;
        Ok(Cancel(handle))
    }

    /// Gives up all waits with it, for good: those that go on and those that begin later end with
    /// [`ErrorKind::NotPermitted`](crate::ErrorKind).
    ///
    /// # Errors
    ///
    /// None that is known.
    pub fn signal(&self) -> Result<()> {
        // SAFETY: the handle is alive.
        check(unsafe { sys::gcx_cancel_signal(self.0) })
    }

    /// The C API's handle. It stays this one's.
    #[must_use]
    pub fn as_raw(&self) -> sys::gcx_cancel {
        self.0
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Cancel")
    }
}
