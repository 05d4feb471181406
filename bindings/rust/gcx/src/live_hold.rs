//! The holds of all processes.

use std::ffi::OsString;
use std::path::Path;
use std::ptr;
use std::time::SystemTime;

use crate::error::Result;
use crate::live_context::listed;
use crate::mps::{percentage, MpsState};
use crate::request::Family;
use crate::sys;
use crate::taking::folder_path;
use crate::told::{bytes, numbers, time};

/// A hold of any process, or a wait for one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LiveHold {
    /// A random number, which tells it from all others.
    pub id: u64,
    /// When it was taken, or the wait began.
    pub since: SystemTime,
    /// Of one that waits when it gives up; `None`: never.
    pub until: Option<SystemTime>,
    /// Of the process that took it while that keeps it, then of another one that does. 0: none is
    /// visible here.
    pub pid: u32,
    /// The number of the user whose file it is.
    pub user: u32,
    /// Whether it is of the simulated driver.
    pub simulated: bool,
    /// Whether it has nothing yet, and waits in [`HoldBuilder::take`](crate::HoldBuilder::take).
    pub waiting: bool,
    /// How its SMs are taken.
    pub family: Family,
    /// How many SMs it has; of one that waits those that it asked for, `None` of the rest.
    pub sm_count: Option<u32>,
    /// SMs of the device.
    pub device_sm_count: u32,
    /// Atoms of the family on that device.
    pub atom_count: u32,
    /// SMs of each atom but the last.
    pub atom_sm_count: u32,
    /// SMs of the last atom.
    pub last_atom_sm_count: u32,
    /// As the process saw it that took the hold.
    pub mps: MpsState,
    /// [`MpsInfo::thread_percentage`](crate::MpsInfo) of that process.
    pub mps_thread_percentage: Option<f32>,
    /// The [`id`](Self::id) of the hold that it is a part of, which may have ended; `None`: of the
    /// device.
    pub parent: Option<u64>,
    /// The numbers of the atoms that it has, ascending.
    pub atoms: Vec<u32>,
    /// The 16 bytes of the device.
    pub device_uuid: [u8; 16],
    /// Any bytes; empty if it was given none.
    pub name: OsString,
    /// Any bytes.
    pub process_name: OsString,
    /// Any bytes.
    pub device_name: OsString,
}

/// The holds of a folder, with `None` of that which [`Hold`](crate::Hold) tells of, by device: of each
/// those that have SMs in the order in which they were taken, then those that wait, the first first.
/// Opens no driver and needs no GPU. What can't be believed is left out, with a warning in the log;
/// what the dead left is removed, where this process may.
///
/// ```no_run
/// for hold in gcx::holds(None)? {
///     println!("{:?} of {:?}: {:?} SMs", hold.name, hold.process_name, hold.sm_count);
/// }
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// Names are any bytes, and may be made to spoil a terminal: so they are [`OsString`]s, and `{:?}`
/// escapes them.
///
/// # Errors
///
/// [`ErrorKind::NotPermitted`](crate::ErrorKind) and `OperatingSystem` as of
/// [`HoldBuilder::take`](crate::HoldBuilder::take), but that the user's own folder, if it is missing, has
/// no holds. `InvalidValue` the path is too long, or not absolute.
pub fn holds(folder: Option<&Path>) -> Result<Vec<LiveHold>> {
    let folder = folder.map(folder_path).transpose()?;
    let folder = folder.as_ref().map_or(ptr::null(), |folder| folder.as_ptr());
    let found = listed(|list: *mut sys::gcx_live_hold, room, count| {
        // SAFETY: the path is NULL or ends with a zero byte; `list` has room for `room` elements.
        unsafe { sys::gcx_hold_list(folder, list, room, count) }
    })?;
    Ok(found.iter().map(live_hold).collect())
}

fn live_hold(told: &sys::gcx_live_hold) -> LiveHold {
    let waiting = told.waits != 0;
    LiveHold {
        id: told.id,
        since: time(told.since_ms),
        until: if told.until_ms == 0 { None } else { Some(time(told.until_ms)) },
        pid: told.pid.unsigned_abs(),
        user: told.user,
        simulated: told.simulated != 0,
        waiting,
        family: Family::of(told.family).unwrap_or(Family::Foreign),
        sm_count: Some(told.sm_count).filter(|count| *count != sys::GCX_REST),
        device_sm_count: told.device_sm_count,
        atom_count: told.atom_count,
        atom_sm_count: told.atom_sm_count,
        last_atom_sm_count: told.last_atom_sm_count,
        mps: MpsState::of(told.mps),
        mps_thread_percentage: percentage(told.mps_thread_percentage),
        parent: Some(told.parent).filter(|id| *id != 0),
        atoms: numbers(&told.atoms),
        device_uuid: told.device_uuid,
        name: bytes(&told.name),
        process_name: bytes(&told.process_name),
        device_name: bytes(&told.device_name),
    }
}
