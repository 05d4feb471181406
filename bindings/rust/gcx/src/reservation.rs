//! Reservations: exclusive use of SMs across the processes of a host.

use std::ffi::{CString, OsStr, OsString};
use std::fmt;
use std::os::raw::c_char;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Duration;

use crate::call::{address_of, c_text, described, handle, listed, written};
use crate::convert::bytes;
use crate::device::Device;
use crate::error::Result;
use crate::generated::{Family, LiveReservation, ReservationInfo};
use crate::lease::{min_sm_count, request_setters, Cancel, LeaseBuilder, Sms};
use crate::sys;

handle! {
    /// Exclusive use of some SMs across processes, from [`Reservation::acquire`],
    /// [`Device::reserve`] or [`Reservation::join`]; `docs/explanation/reservations.md` has the rules.
    ///
    /// No two live reservations of a device have an SM in common, if all processes use the same
    /// folder. They isolate only under MPS: without it, processes take turns on the whole device,
    /// see [`Device::mps`].
    ///
    /// ```no_run
    /// use std::process::Command;
    ///
    /// let reservation = gcx::Reservation::acquire(&gcx::Device::new(0)?, 24)?;
    /// let lease = reservation.lease().name("decode").acquire()?; // some of its SMs
    ///
    /// // The worker joins it: `gcx::Reservation::join(std::env::var_os("TOKEN").unwrap())`.
    /// let worker = Command::new("worker").env("TOKEN", reservation.token()?).spawn();
    /// # let _ = (lease, worker);
    /// # Ok::<(), gcx::Error>(())
    /// ```
    ///
    /// It lasts until its last process drops it or ends. A lease keeps it; a context of its
    /// [`sms`](Self::sms) doesn't: drop that first. Forked children and their programs have no part
    /// in it, unless they [join](Self::join) it or it was acquired with
    /// [`inherit`](ReservationBuilder::inherit).
    ///
    /// Tested on the simulated driver only so far.
    Reservation, gcx_reservation, gcx_reservation_release
}

impl Reservation {
    /// Acquires SMs of the device without waiting. Counts are rounded up: [`info`](Self::info)
    /// returns what it has. [`Device::reserve`] has all options.
    pub fn acquire(device: &Device, sms: impl Into<Sms>) -> Result<Self> {
        device.reserve().sm_count(sms).acquire()
    }

    /// Joins a reservation by its [`token`](Self::token), also in a forked child. Opens no driver.
    /// Fails with [`NotFound`](crate::ErrorKind) if it has ended.
    pub fn join(token: impl AsRef<OsStr>) -> Result<Self> {
        let token = c_text(token.as_ref().as_bytes(), "the token of a reservation")?;
        // SAFETY: the token ends with a zero byte; a handle is written.
        Reservation::created(|handle| unsafe { sys::gcx_reservation_join(token.as_ptr(), handle) })
    }

    /// Returns what another process [joins](Self::join) it by: the path of its file. Pass it in the
    /// environment or on the command line.
    pub fn token(&self) -> Result<OsString> {
        const ROOM: u32 = sys::GCX_MAX_RESERVATION_TOKEN;
        let start: [c_char; ROOM as usize] = [0; ROOM as usize];
        let token = written(start, |token| {
            // SAFETY: the handle is alive; the text has room for so many bytes.
            unsafe { sys::gcx_reservation_get_token(self.0, token.as_mut_ptr(), ROOM) }
        })?;
        Ok(bytes(&token))
    }

    /// Returns a builder of a [`Lease`](crate::Lease) of the reservation's SMs, which keeps the
    /// reservation. It can be resized within those SMs, together with other leases of the
    /// reservation.
    pub fn lease(&self) -> LeaseBuilder<'_> {
        LeaseBuilder::of_reservation(self)
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.info().map(|info| {
            let ReservationInfo { id, name, sm_count, device_sm_count, .. } = info;
            format!("{id:016x} {name:?}: {sm_count} of {device_sm_count} SMs")
        });
        described(out, "Reservation", known)
    }
}

/// Collects what a reservation is to be, from [`Device::reserve`]. By default it acquires the rest
/// without waiting.
///
/// ```no_run
/// use std::time::Duration;
///
/// let decode = gcx::Device::new(0)?
///     .reserve()
///     .sm_count(24)
///     .name("decode") // in messages and lists, also of other processes
///     .min_sm_count(16) // is acceptable if 24 aren't free
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
    min_sm_count: Option<u32>,
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
            min_sm_count: None,
            family: None,
            flags: 0,
            timeout_ms: 0,
            cancel: None,
            folder: None,
        }
    }

    request_setters!();

    /// Makes forked children and the programs that this process starts or becomes keep the
    /// reservation without joining it, until they end or close its descriptor: for launchers.
    pub fn inherit(mut self) -> Self {
        self.flags |= sys::GCX_RESERVATION_INHERIT;
        self
    }

    /// Sets the folder in which the processes agree, an absolute path of an existing folder. By
    /// default it is `GCX_RESERVATION_DIR` of the environment, or the user's private
    /// `/dev/shm/gcx-UID`.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Acquires the SMs from all processes that use the same folder; [`Reservation::info`] returns
    /// what the reservation has. Creates no context.
    ///
    /// # Errors
    ///
    /// - [`AlreadyAcquired`](crate::ErrorKind): other reservations have the SMs, or requests wait
    ///   for them, and there is no timeout. The message names them.
    /// - `Timeout`: the same, still after the timeout; or others had the folder locked all that
    ///   time.
    /// - `Cancelled`: the wait was [cancelled](Cancel::signal).
    /// - `UnsafeFolder`: the folder is another user's or open to too many.
    /// - `CorruptFile`: a file that a process keeps locked is invalid.
    /// - `OperatingSystem`: the folder is missing or can't be written.
    /// - `InvalidResourceConfiguration`: the device has fewer SMs than requested.
    /// - `NotSupported`: the device has no max-cluster family.
    /// - `InvalidValue`: a count, name, path or family is invalid.
    pub fn acquire(&self) -> Result<Reservation> {
        let name =
            self.name.as_deref().map(|name| c_text(name, "the reservation's name")).transpose()?;
        let folder = self.folder.as_deref().map(folder_path).transpose()?;
        let params = sys::gcx_reservation_params {
            flags: self.flags,
            family: self.family.map_or(sys::GCX_SM_FAMILY_NONE, Into::into),
            min_sm_count: min_sm_count(self.min_sm_count)?,
            timeout_ms: self.timeout_ms,
            cancel: self.cancel.map_or(ptr::null_mut(), Cancel::as_raw),
            name: address_of(name.as_ref()),
            folder: address_of(folder.as_ref()),
            ..sys::GCX_RESERVATION_PARAMS_INIT
        };
        let sm_count = self.sms.raw()?;
        Reservation::created(|handle| {
            // SAFETY: what the struct points to is alive; a handle is written.
            unsafe { sys::gcx_reservation_acquire(self.device, sm_count, &params, handle) }
        })
    }
}

fn folder_path(folder: &Path) -> Result<CString> {
    c_text(folder.as_os_str().as_bytes(), "the path of the folder of reservations")
}

/// Lists the reservations of all processes in a folder by device: in the order in which they were
/// acquired, then the waiting requests in order of arrival. `None` is the default folder, see
/// [`ReservationBuilder::folder`]. Opens no driver and needs no GPU.
///
/// Leaves corrupt files out, with a warning in the log, and removes those of dead processes. Names
/// are [`OsString`]s, since other processes can write any bytes; `{:?}` escapes them.
///
/// ```no_run
/// for reservation in gcx::reservations(None)? {
///     let (name, process) = (reservation.name, reservation.process_name);
///     println!("{name:?} of {process:?}: {:?} SMs", reservation.sm_count);
/// }
/// # Ok::<(), gcx::Error>(())
/// ```
pub fn reservations(folder: Option<&Path>) -> Result<Vec<LiveReservation>> {
    let folder = folder.map(folder_path).transpose()?;
    let found = listed(|list: *mut sys::gcx_live_reservation, room, count| {
        // SAFETY: the path is NULL or ends with a zero byte; `list` has room for `room` elements.
        unsafe { sys::gcx_reservation_list(address_of(folder.as_ref()), list, room, count) }
    })?;
    Ok(found.iter().map(LiveReservation::from).collect())
}
