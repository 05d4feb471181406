//! Leases: SMs that are somebody's, and what they are changed to.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr;

use crate::acquire::Sms;
use crate::device::Device;
use crate::error::{check, finished, Error, Result};
use crate::generated::LeaseInfo;
use crate::resource::SmResource;
use crate::stream::Stream;
use crate::sys;

/// SMs that nobody else has, from [`Lease::acquire`], [`Device::lease`] or
/// [`Reservation::lease`](crate::Reservation::lease).
///
/// No two leases of a process have an SM in common unless both are
/// [shared](crate::LeaseBuilder::shared), whoever made them, in whatever language. They grow, shrink and
/// change hands while their streams work. Plain contexts are not asked:
/// [`SplitOptions::exclude_leased`](crate::SplitOptions::exclude_leased) keeps clear of leases.
///
/// ```
/// use gcx::{Lease, Resize, Sms};
///
/// let device = gcx::Device::new(0)?;
/// let decode = Lease::acquire(&device, 32)?;
/// let prefill = Lease::acquire(&device, Sms::Rest)?;
/// let stream = decode.stream()?;
///
/// // One grows by what the other gives, in one operation; the host waits for nobody.
/// gcx::resize(&[(&decode, Sms::Count(64)), (&prefill, Sms::Rest)], Resize::default())?;
/// assert_eq!(stream.sm_count()?, 64);
/// let native = stream.native()?; // a CUstream of the 64 SMs: taken anew for each step
/// # let _ = native;
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// **Streams follow.** A [`Stream`] of a lease stands for the lease: [`Stream::native`], and every
/// function that takes the stream, uses a `CUstream` of the SMs that the lease has at that call,
/// behind all work of the `CUstream` before. A `CUstream` that was taken before a change still is a
/// live stream of the SMs which the lease had then, until its work is done: so take it anew for each
/// step, and submit nothing to it while another thread changes the lease. A stream that captures a
/// graph moves once the capture has ended; the graph stays on the SMs of its capture.
///
/// **SMs that change hands.** Their new holder's work waits on the device for the work that the
/// streams of gcx were given before the change and that runs on them, so that leases are disjoint in
/// time too. No host thread waits.
///
/// **Dropping it** gives its SMs up at once, and never waits: its work finishes, and the work of who
/// has them next waits for that. Its streams end with it, for they stand for it and don't keep it:
/// they answer [`ErrorKind::ContextDestroyed`](crate::ErrorKind) from then on.
///
/// Tested on the simulated driver and on an H200.
pub struct Lease(sys::gcx_lease);

// SAFETY: a handle names an object; any function may be called from any thread, also on the same
// object.
unsafe impl Send for Lease {}
// SAFETY: as above.
unsafe impl Sync for Lease {}

impl Drop for Lease {
    fn drop(&mut self) {
        // SAFETY: the handle is ours, and is given up once.
        unsafe { sys::gcx_lease_release(self.0) };
    }
}

impl Lease {
    /// Acquires this many SMs of the device, or [`Sms::Rest`], without waiting for them. Counts are
    /// rounded up to what the device can give: [`info`](Self::info) tells what it got.
    /// [`Device::lease`] has a name for it, a time-out and all else.
    ///
    /// # Errors
    ///
    /// As [`LeaseBuilder::acquire`](crate::LeaseBuilder::acquire).
    pub fn acquire(device: &Device, sms: impl Into<Sms>) -> Result<Self> {
        device.lease().sm_count(sms).acquire()
    }

    pub(crate) fn with(make: impl FnOnce(*mut sys::gcx_lease) -> sys::gcx_result) -> Result<Self> {
        let mut handle = ptr::null_mut();
        check(make(&mut handle))?;
        Ok(Lease(handle))
    }

    /// The C API's handle. It stays this lease's.
    #[must_use]
    pub fn as_raw(&self) -> sys::gcx_lease {
        self.0
    }

    /// What it has now.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ContextDestroyed`](crate::ErrorKind) the device was reset.
    pub fn info(&self) -> Result<LeaseInfo> {
        let mut info = sys::GCX_LEASE_INFO_INIT;
        // SAFETY: the handle is alive; the struct is filled in as far as its struct_size says.
        check(unsafe { sys::gcx_lease_get_info(self.0, &mut info) })?;
        Ok(LeaseInfo::from(&info))
    }

    /// How many SMs it has now.
    ///
    /// # Errors
    ///
    /// As [`info`](Self::info).
    pub fn sm_count(&self) -> Result<u32> {
        Ok(self.info()?.sm_count)
    }

    /// Which SMs it has now: a value, which doesn't change with the lease.
    ///
    /// # Errors
    ///
    /// As [`info`](Self::info).
    pub fn sms(&self) -> Result<SmResource> {
        let mut resource = sys::gcx_resource::default();
        // SAFETY: the handle is alive; a value is written.
        check(unsafe { sys::gcx_lease_get_resource(self.0, &mut resource) })?;
        SmResource::from_raw(resource)
    }

    /// A stream of it, of priority 0, that follows it.
    ///
    /// # Errors
    ///
    /// As [`info`](Self::info).
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with_priority(0)
    }

    /// The same with a priority. Lower is more urgent; it is clamped to
    /// [`Device::stream_priority_range`].
    ///
    /// # Errors
    ///
    /// As [`info`](Self::info).
    pub fn stream_with_priority(&self, priority: i32) -> Result<Stream> {
        Stream::of_lease(self, priority)
    }

    /// Gives it another size. Work in flight finishes where it runs; later work of its streams runs
    /// on the new SMs. Several leases at once: [`resize`].
    ///
    /// ```
    /// let lease = gcx::Lease::acquire(&gcx::Device::new(0)?, 24)?;
    /// let stream = lease.stream()?;
    /// lease.resize(64)?;
    /// assert_eq!(stream.sm_count()?, 64);
    /// # Ok::<(), gcx::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`resize`].
    pub fn resize(&self, sms: impl Into<Sms>) -> Result<()> {
        self.resize_with(sms, Resize::new())
    }

    /// The same with options.
    ///
    /// # Errors
    ///
    /// As [`resize`].
    pub fn resize_with(&self, sms: impl Into<Sms>, how: Resize) -> Result<()> {
        resize(&[(self, sms.into())], how)
    }

    /// Gives this lease up and all its SMs to another, past those who wait.
    ///
    /// ```
    /// let device = gcx::Device::new(0)?;
    /// let (old, new) = (gcx::Lease::acquire(&device, 24)?, gcx::Lease::acquire(&device, 32)?);
    /// old.hand_over(&new)?;
    /// assert_eq!(new.sm_count()?, 56);
    /// # Ok::<(), gcx::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`resize`]; the lease is given back with the error, as it was. A `?` that turns that
    /// into an [`Error`] drops the lease.
    pub fn hand_over(self, to: &Lease) -> std::result::Result<(), NotHandedOver> {
        self.hand_over_with(to, Resize::new())
    }

    /// The same with options.
    ///
    /// # Errors
    ///
    /// As [`hand_over`](Self::hand_over).
    pub fn hand_over_with(self, to: &Lease, how: Resize) -> std::result::Result<(), NotHandedOver> {
        let from = ManuallyDrop::new(self);
        // SAFETY: the handles are alive; the one that is ours isn't used again if this succeeds.
        check(unsafe { sys::gcx_lease_hand_over(from.0, to.0, how.flags) })
            .map_err(|error| NotHandedOver { lease: ManuallyDrop::into_inner(from), error })
    }

    /// Waits until the work of its streams has finished, on whatever SMs it was submitted. Blocks the
    /// calling thread. A stream that captures a graph is not waited for.
    ///
    /// # Errors
    ///
    /// Those of that work.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the handle is alive.
        check(unsafe { sys::gcx_lease_synchronize(self.0) })
    }

    /// Whether that work has finished. Never waits.
    ///
    /// # Errors
    ///
    /// As [`synchronize`](Self::synchronize).
    pub fn query(&self) -> Result<bool> {
        // SAFETY: the handle is alive.
        finished(unsafe { sys::gcx_lease_query(self.0) })
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Ok(info) => {
                let LeaseInfo { id, name, sm_count, device, .. } = info;
                write!(out, "Lease({id} {name:?}: {sm_count} SMs of device {device})")
            }
            Err(error) => write!(out, "Lease({})", error.name()),
        }
    }
}

/// A lease that could not be handed over, and why.
#[derive(Debug)]
pub struct NotHandedOver {
    /// The lease, as it was.
    pub lease: Lease,
    /// Why it could not be handed over.
    pub error: Error,
}

impl fmt::Display for NotHandedOver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(out)
    }
}

impl std::error::Error for NotHandedOver {}

impl From<NotHandedOver> for Error {
    fn from(not_handed_over: NotHandedOver) -> Self {
        not_handed_over.error
    }
}

/// How leases are changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use]
pub struct Resize {
    flags: u32,
}

impl Resize {
    /// Later work waits on the device for the former holders' on SMs that are new.
    pub fn new() -> Self {
        Self::default()
    }

    /// A lease whose new SMs contain its old ones doesn't wait: its streams stay on the old SMs until
    /// all new ones are free, and move when they are used after that. A lease that loses SMs moves
    /// now, as without this.
    pub fn deferred(mut self) -> Self {
        self.flags |= sys::GCX_RESIZE_DEFERRED;
        self
    }
}

/// Gives leases other sizes, all in one operation or none: one can grow by what another gives.
///
/// Work in flight finishes where it runs; later work of their streams runs on the new SMs, behind
/// what was before in its stream. Takes microseconds where contexts of the new sets are kept, see
/// [`prepare`], and else the time to make them, which holds up no other lease.
///
/// # Errors
///
/// [`ErrorKind::AlreadyAcquired`](crate::ErrorKind) the SMs that the leases have and those that are
/// free don't suffice, or others wait for them: the message says who. `InvalidResourceConfiguration`
/// the leases are of two devices, families or reservations, the device or reservation has not so many SMs, or it is less than a
/// shared lease's [`exclusive_sm_count`](crate::LeaseBuilder::exclusive_sm_count). `InvalidValue` there are
/// none, a lease is there twice, or a count is 0. `ContextDestroyed` the device was reset.
pub fn resize(sizes: &[(&Lease, Sms)], how: Resize) -> Result<()> {
    let (sizes, count) = raw_sizes(sizes)?;
    // SAFETY: the handles are alive; the array has `count` elements.
    check(unsafe { sys::gcx_lease_resize(sizes.as_ptr(), count, how.flags) })
}

/// Makes the contexts that [`resize`] with these sizes would need, and changes nothing: for a thread
/// that makes ahead of time what is to be changed in microseconds later, one call for each layout.
/// Before there are
/// leases it is [`cache::prepare_with`](crate::cache::prepare_with).
///
/// ```
/// use gcx::{Lease, Resize, Sms};
///
/// let device = gcx::Device::new(0)?;
/// let (decode, prefill) = (Lease::acquire(&device, 32)?, Lease::acquire(&device, Sms::Rest)?);
/// let layout = [(&decode, Sms::Count(64)), (&prefill, Sms::Rest)];
/// gcx::prepare(&layout)?;
/// let made = gcx::cache_stats()?.misses;
/// gcx::resize(&layout, Resize::new())?;
/// assert_eq!(gcx::cache_stats()?.misses, made);
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// # Errors
///
/// As [`resize`]; [`ErrorKind::InvalidValue`](crate::ErrorKind) also that the limits are too small to
/// keep them, see [`cache::prepare`](crate::cache::prepare()).
pub fn prepare(sizes: &[(&Lease, Sms)]) -> Result<()> {
    let (sizes, count) = raw_sizes(sizes)?;
    // SAFETY: the handles are alive; the array has `count` elements.
    check(unsafe { sys::gcx_lease_prepare(sizes.as_ptr(), count) })
}

/// The sizes as C takes them, and how many they are.
fn raw_sizes(sizes: &[(&Lease, Sms)]) -> Result<(Vec<sys::gcx_lease_size>, u32)> {
    let raw = sizes
        .iter()
        .map(|(lease, sms)| {
            Ok(sys::gcx_lease_size { lease: lease.0, sm_count: sms.raw()?, reserved: 0 })
        })
        .collect::<Result<Vec<_>>>()?;
    let count = u32::try_from(raw.len())
        .map_err(|_| Error::of(sys::GCX_ERROR_INVALID_VALUE, "more leases than a u32 counts"))?;
    Ok((raw, count))
}
