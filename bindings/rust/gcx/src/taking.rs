//! Acquiring reservations.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Duration;

use crate::acquire::{least, milliseconds, name_of, Cancel, Sms};
use crate::error::{Error, Result};
use crate::generated::Family;
use crate::reservation::Reservation;
use crate::sys;

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
///     .take()?;
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
    /// [`Family::Coscheduled`]. Others are an error of [`take`](Self::take).
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
    pub fn take(&self) -> Result<Reservation> {
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
