//! Reservations: SMs that no other process has.

use std::ffi::{CString, OsStr, OsString};
use std::fmt;
use std::os::raw::c_char;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Duration;

use crate::acquire::{least, milliseconds, name_of, Cancel, LeaseBuilder, Sms};
use crate::convert::bytes;
use crate::device::Device;
use crate::error::{check, Error, Result};
use crate::generated::{Family, ReservationInfo};
use crate::resource::SmResource;
use crate::sys;

/// SMs of a device that no other process has, from [`Reservation::acquire`], [`Device::reserve`] or [`Reservation::join`].
///
/// A [`Lease`](crate::Lease) is a process's own; a reservation is agreed on by the processes of a host. No two
/// live reservations of a device have an SM in common, as long as all take theirs in the same folder; programs
/// that take none are not bound by it. There is no daemon.
///
/// ```no_run
/// use std::process::Command;
///
/// let held = gcx::Reservation::acquire(&gcx::Device::new(0)?, 24)?;
/// let lease = held.lease().name("decode").acquire()?; // of its SMs alone
///
/// // Another process joins it: `gcx::Reservation::join(std::env::var_os("HELD").unwrap())`.
/// let worker = Command::new("worker").env("HELD", held.token()?).spawn();
/// # let _ = (lease, worker);
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// **What it isolates.** Under MPS the same atoms in two processes are the same SMs, and partitions of
/// two processes run side by side. Without MPS processes take turns on the whole device, and partitions
/// between them change nothing: a reservation is given all the same, [`Device::mps`] and the lists tell of it,
/// and the log has a warning.
///
/// **How long it lasts.** Until its last process has dropped it or has ended, however it ended. A lease
/// keeps it, a context of its [`sms`](Self::sms) doesn't: drop those first. A forked child has no part
/// in it, and what it starts neither, unless that [joins](Self::join) or
/// [`inherit`](crate::ReservationBuilder::inherit) was said.
///
/// **Where.** In the folder that was named, or else `GCX_RESERVATION_DIR` of the environment, or else the
/// user's own folder, `/dev/shm/gcx-UID`. One that was named, either way, is the user's own, of mode
/// 700, or a group's: of mode 2770 or 3770, and the process is in its group. It is never made. Reservations in
/// two folders know nothing of each other.
///
/// Tested on the simulated driver alone so far.
pub struct Reservation(sys::gcx_reservation);

// SAFETY: a handle names an object; any function may be called from any thread, also on the same
// object.
unsafe impl Send for Reservation {}
// SAFETY: as above.
unsafe impl Sync for Reservation {}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the handle is ours, and is given up once.
        unsafe { sys::gcx_reservation_release(self.0) };
    }
}

impl Reservation {
    /// Takes this many SMs of the device, or [`Sms::Rest`], without waiting for them. Counts are
    /// rounded up to what the device can give: [`info`](Self::info) tells what it got.
    /// [`Device::reserve`] has a name for it, a time-out and all else.
    ///
    /// # Errors
    ///
    /// As [`ReservationBuilder::acquire`](crate::ReservationBuilder::acquire).
    pub fn acquire(device: &Device, sms: impl Into<Sms>) -> Result<Self> {
        device.reserve().sm_count(sms).acquire()
    }

    /// Joins a reservation that another process, or this one, has, by its [`token`](Self::token): it lasts
    /// until all who joined have dropped it or ended. Opens no driver, and works in a forked child too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind) the reservation has ended, or was never there. `InvalidValue`
    /// it is no token. `NotPermitted` and `OperatingSystem` as of
    /// [`ReservationBuilder::acquire`](crate::ReservationBuilder::acquire).
    pub fn join(token: impl AsRef<OsStr>) -> Result<Self> {
        let token = CString::new(token.as_ref().as_bytes()).map_err(|_| {
            let message = "the token of a reservation has a zero byte in it";
            Error::of(sys::GCX_ERROR_INVALID_VALUE, message)
        })?;
        // SAFETY: the token ends with a zero byte; a handle is written.
        Reservation::with(|handle| unsafe { sys::gcx_reservation_join(token.as_ptr(), handle) })
    }

    pub(crate) fn with(
        make: impl FnOnce(*mut sys::gcx_reservation) -> sys::gcx_result,
    ) -> Result<Self> {
        let mut handle = ptr::null_mut();
        check(make(&mut handle))?;
        Ok(Reservation(handle))
    }

    /// The C API's handle. It stays this reservation's.
    #[must_use]
    pub fn as_raw(&self) -> sys::gcx_reservation {
        self.0
    }

    /// What another process [joins](Self::join) it by, to be given to it in its environment or on its
    /// command line. It is the path of the reservation's file, so that it works where that path leads to the
    /// same folder.
    ///
    /// # Errors
    ///
    /// None that is known, but in a forked child, which has no part in the reservation.
    pub fn token(&self) -> Result<OsString> {
        let mut token: [c_char; sys::GCX_MAX_RESERVATION_TOKEN as usize] =
            [0; sys::GCX_MAX_RESERVATION_TOKEN as usize];
        // SAFETY: the handle is alive; the text has room for so many bytes.
        check(unsafe {
            sys::gcx_reservation_get_token(
                self.0,
                token.as_mut_ptr(),
                sys::GCX_MAX_RESERVATION_TOKEN,
            )
        })?;
        Ok(bytes(&token))
    }

    /// What it has. Opens no driver.
    ///
    /// # Errors
    ///
    /// As [`token`](Self::token).
    pub fn info(&self) -> Result<ReservationInfo> {
        let mut info = sys::GCX_RESERVATION_INFO_INIT;
        // SAFETY: the handle is alive; the struct is filled in as far as its struct_size says.
        check(unsafe { sys::gcx_reservation_get_info(self.0, &mut info) })?;
        Ok(ReservationInfo::from(&info))
    }

    /// How many SMs it has.
    ///
    /// # Errors
    ///
    /// As [`token`](Self::token).
    pub fn sm_count(&self) -> Result<u32> {
        Ok(self.info()?.sm_count)
    }

    /// Its SMs, to be split and to make contexts of. They don't keep the reservation. Opens the driver.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoDevice`](crate::ErrorKind) no device of this process has the reservation's UUID.
    /// `InvalidResourceConfiguration` this process sees other atoms than the one that took the reservation.
    pub fn sms(&self) -> Result<SmResource> {
        let mut resource = sys::gcx_resource::default();
        // SAFETY: the handle is alive; a value is written.
        check(unsafe { sys::gcx_reservation_get_resource(self.0, &mut resource) })?;
        SmResource::from_raw(resource)
    }

    /// A builder of a [`Lease`](crate::Lease) out of the reservation's SMs alone, as
    /// [`Device::lease`] is of the device's: the rest of them, if nothing else is said.
    ///
    /// The lease's later changes are of those SMs too, together with leases of the same reservation alone. The
    /// lease keeps the reservation, which may be dropped before it. A lease that was acquired without a reservation
    /// may have the same SMs as a reservation, but never as another lease.
    pub fn lease(&self) -> LeaseBuilder<'_> {
        LeaseBuilder::of_reservation(self)
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Ok(info) => {
                let ReservationInfo { id, name, sm_count, device_sm_count, .. } = info;
                write!(out, "Reservation({id:016x} {name:?}: {sm_count} of {device_sm_count} SMs)")
            }
            Err(error) => write!(out, "Reservation({})", error.name()),
        }
    }
}

/// Collects what a reservation is to be, from [`Device::reserve`](crate::Device::reserve): the rest, without waiting,
/// if nothing else is said.
///
/// ```no_run
/// use std::time::Duration;
///
/// let decode = gcx::Device::new(0)?
///     .reserve()
///     .sm_count(24)
///     .name("decode") // in messages and lists, also other processes'
///     .min_sm_count(16) // will do, if 24 can't be had
///     .timeout(Duration::from_secs(60))
///     .acquire()?;
/// # Ok::<(), gcx::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ReservationBuilder<'a> {
    device: i32,
    sms: Sms,
    name: Option<String>,
    least: Option<u32>,
    family: Option<Family>,
    flags: u32,
    timeout_ms: u32,
    cancel: Option<&'a Cancel>,
    folder: Option<PathBuf>,
}

impl<'a> ReservationBuilder<'a> {
    pub(crate) fn new(device: i32) -> Self {
        ReservationBuilder {
            device,
            sms: Sms::Rest,
            name: None,
            least: None,
            family: None,
            flags: 0,
            timeout_ms: 0,
            cancel: None,
            folder: None,
        }
    }

    /// How many SMs: a count, or [`Sms::Rest`].
    pub fn sm_count(mut self, sms: impl Into<Sms>) -> Self {
        self.sms = sms.into();
        self
    }

    /// So many SMs will do if those asked for can't be had. Without it no less than was asked for,
    /// and of the rest the least that the device can give.
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

    /// Forked children and what exec starts, or this process becomes by exec, keep the reservation too,
    /// without joining it, until they end or close its descriptor: for launchers.
    pub fn inherit(mut self) -> Self {
        self.flags |= sys::GCX_RESERVATION_INHERIT;
        self
    }

    /// How long to wait for the SMs, in whole milliseconds, rounded up. Those who wait are served in
    /// the order in which they came, whatever their process. [`Duration::MAX`], and all beyond 49
    /// days, is for ever.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout_ms = milliseconds(timeout);
        self
    }

    /// Gives the wait up from another thread.
    pub fn cancel(mut self, cancel: &'a Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Where the processes agree: an absolute path, see [`Reservation`].
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Takes the SMs, from all processes that take theirs in the same folder. Makes no context. What
    /// the reservation really got is in [`Reservation::info`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::AlreadyAcquired`](crate::ErrorKind) others hold the SMs, or wait for them, and
    /// when the time was over still did: the message says who. `NotPermitted` the wait was
    /// [given up](Cancel::signal); the folder is another user's, or too many may enter it.
    /// `OperatingSystem` the folder isn't there, the disk is full, the folder read-only; a file there
    /// can't be believed; a process stopped in the middle of a change. `InvalidResourceConfiguration`
    /// the device has not so many SMs, whoever holds them. `NotSupported` the max-cluster family on a
    /// device that has none. `InvalidValue` a count of 0, a family that has no reservations, a name or path
    /// that is too long or has a zero byte, a path that is not absolute, a least count above the one
    /// asked for.
    pub fn acquire(&self) -> Result<Reservation> {
        let name = name_of(self.name.as_deref(), "reservation")?;
        let folder = self.folder.as_deref().map(folder_path).transpose()?;
        let params = sys::gcx_reservation_params {
            flags: self.flags,
            family: self.family.map_or(sys::GCX_SM_FAMILY_NONE, Into::into),
            min_sm_count: least(self.least)?,
            timeout_ms: self.timeout_ms,
            cancel: self.cancel.map_or(ptr::null_mut(), Cancel::as_raw),
            name: name.as_ref().map_or(ptr::null(), |name| name.as_ptr()),
            folder: folder.as_ref().map_or(ptr::null(), |folder| folder.as_ptr()),
            ..sys::GCX_RESERVATION_PARAMS_INIT
        };
        let sm_count = self.sms.raw()?;
        Reservation::with(|handle| {
            // SAFETY: what the struct points to is alive here; a handle is written.
            unsafe { sys::gcx_reservation_acquire(self.device, sm_count, &params, handle) }
        })
    }
}

pub(crate) fn folder_path(folder: &Path) -> Result<CString> {
    CString::new(folder.as_os_str().as_bytes()).map_err(|_| {
        let message = "the path of the folder of reservations has a zero byte in it";
        Error::of(sys::GCX_ERROR_INVALID_VALUE, message)
    })
}
