//! Lists of what is alive: contexts and leases of this process, reservations of all.

use std::path::Path;
use std::ptr;

use crate::error::{Error, Result};
use crate::generated::{LiveContext, LiveLease, LiveReservation};
use crate::reservation::folder_path;
use crate::sys;

/// The green contexts with a context or stream, or that a lease or a graph's executable keeps, of all
/// devices; [`Device::live_contexts`](crate::Device::live_contexts) tells those of one.
///
/// # Errors
///
/// What opening the driver says.
pub fn live_contexts() -> Result<Vec<LiveContext>> {
    live_contexts_of(-1)
}

pub(crate) fn live_contexts_of(device: i32) -> Result<Vec<LiveContext>> {
    let found = listed(|list, room, count| {
        // SAFETY: `list` has room for `room` elements.
        unsafe { sys::gcx_context_list(device, list, room, count) }
    })?;
    found.iter().map(LiveContext::try_from).collect()
}

/// The leases of all devices; [`Device::leases`](crate::Device::leases) tells those of one. Those
/// that hold SMs come in the order in which they were acquired, then those that wait, the first
/// first.
///
/// ```
/// let decode = gcx::Device::new(0)?.lease().sm_count(32).name("decode").acquire()?;
/// for lease in gcx::leases()? {
///     println!("{}: {:?} SMs", lease.name, lease.sm_count);
/// }
/// # assert_eq!(gcx::leases()?[0].sms, decode.sms()?);
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// # Errors
///
/// What opening the driver says.
pub fn leases() -> Result<Vec<LiveLease>> {
    leases_of(-1)
}

pub(crate) fn leases_of(device: i32) -> Result<Vec<LiveLease>> {
    let found = listed(|list, room, count| {
        // SAFETY: `list` has room for `room` elements.
        unsafe { sys::gcx_lease_list(device, list, room, count) }
    })?;
    found.iter().map(LiveLease::try_from).collect()
}

/// The reservations of a folder, with `None` of that which [`Reservation`](crate::Reservation) tells of, by device: of each
/// those that have SMs in the order in which they were taken, then those that wait, the first first.
/// Opens no driver and needs no GPU. What can't be believed is left out, with a warning in the log;
/// what the dead left is removed, where this process may.
///
/// ```no_run
/// for reservation in gcx::reservations(None)? {
///     println!("{:?} of {:?}: {:?} SMs", reservation.name, reservation.process_name, reservation.sm_count);
/// }
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// Names are any bytes, and may be made to spoil a terminal: so they are [`OsString`](std::ffi::OsString)s, and `{:?}`
/// escapes them.
///
/// # Errors
///
/// [`ErrorKind::NotPermitted`](crate::ErrorKind) and `OperatingSystem` as of
/// [`ReservationBuilder::acquire`](crate::ReservationBuilder::acquire), but that the user's own folder, if it is missing, has
/// no reservations. `InvalidValue` the path is too long, or not absolute.
pub fn reservations(folder: Option<&Path>) -> Result<Vec<LiveReservation>> {
    let folder = folder.map(folder_path).transpose()?;
    let folder = folder.as_ref().map_or(ptr::null(), |folder| folder.as_ptr());
    let found = listed(|list: *mut sys::gcx_live_reservation, room, count| {
        // SAFETY: the path is NULL or ends with a zero byte; `list` has room for `room` elements.
        unsafe { sys::gcx_reservation_list(folder, list, room, count) }
    })?;
    Ok(found.iter().map(LiveReservation::from).collect())
}

/// All that a function of the C API lists, which is given a list, its room, and where to write how
/// many there are.
pub(crate) fn listed<T: Clone + Default>(
    read: impl Fn(*mut T, u32, *mut u32) -> sys::gcx_result,
) -> Result<Vec<T>> {
    let mut found: Vec<T> = Vec::new();
    let mut count = 0;
    loop {
        let room = u32::try_from(found.len()).unwrap_or(u32::MAX);
        let list = if found.is_empty() { ptr::null_mut() } else { found.as_mut_ptr() };
        let result = read(list, room, &mut count);
        if result == sys::GCX_SUCCESS {
            break;
        }
        if count <= room {
            return Err(Error::last(result));
        }
        // Others may make some meanwhile, so that it may not suffice the next time either.
        found.resize(count as usize, T::default());
    }
    found.truncate(count as usize);
    Ok(found)
}
