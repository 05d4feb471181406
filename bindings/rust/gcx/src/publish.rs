//! Leases that the user's other processes see, as `gcx top` shows them.
//!
//! A process that was told to, by [`start`] or by `GCX_PUBLISH` in the environment, publishes its
//! leases for other processes of the same user: nobody else can see them, and no process can change
//! what another has. A process that ends, however it ends, is seen no more. Reading opens no driver and
//! needs no GPU.
//!
//! ```no_run
//! gcx::publish::start(Some("serving"))?;
//! let decode = gcx::Device::new(0)?.lease().sm_count(32).name("decode").acquire()?;
//! for lease in gcx::publish::leases()? {
//!     println!("{:?} of {:?}: {:?} SMs", lease.name, lease.process_name, lease.sm_count);
//! }
//! gcx::publish::stop()?;
//! # Ok::<(), gcx::Error>(())
//! ```
//!
//! Names of other processes are any bytes, and may be made to spoil a terminal: so they are
//! [`OsString`]s, and `{:?}` escapes them.

use std::ffi::{CString, OsString};
use std::ptr;
use std::time::SystemTime;

use crate::error::{check, Error, Result};
use crate::live_context::listed;
use crate::request::Family;
use crate::sys;
use crate::told::{bytes, numbers, time};

/// From now on this process's leases are published, those that there are and those to come, up to 512
/// at a time, under a name of at most 63 bytes, or with `None` the program's. Of a process that
/// publishes already it changes the name. Opens the driver.
///
/// # Errors
///
/// [`ErrorKind::NotPermitted`](crate::ErrorKind) the folder is another user's, or others may enter it.
/// `OperatingSystem` the file can't be made: the disk is full, the folder read-only. `InvalidValue` the
/// name is too long, or has a zero byte.
pub fn start(name: Option<&str>) -> Result<()> {
    let name = name.map(CString::new).transpose().map_err(|_| {
        let message = "the process's name has a zero byte in it";
        Error::of(sys::GCX_ERROR_INVALID_VALUE, message)
    })?;
    let name = name.as_ref().map_or(ptr::null(), |name| name.as_ptr());
    // SAFETY: the name is NULL or ends with a zero byte, and is copied.
    check(unsafe { sys::gcx_publish_start(name) })
}

/// No longer. Nothing happens where nothing is published. Opens no driver.
///
/// # Errors
///
/// None that is known.
pub fn stop() -> Result<()> {
    // SAFETY: it takes nothing.
    check(unsafe { sys::gcx_publish_stop() })
}

/// A process that publishes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PublishedProcess {
    /// A random number, which tells it from all others.
    pub process: u64,
    /// When it began to publish.
    pub since: SystemTime,
    /// As the process itself sees it; other containers may not.
    pub pid: u32,
    /// Whether it is on the simulated driver: no GPU is involved.
    pub simulated: bool,
    /// Major and minor: (13, 0) is CUDA 13.0.
    pub driver_version: (u32, u32),
    /// Its devices.
    pub device_count: u32,
    /// Its leases.
    pub lease_count: u32,
    /// Leases beyond the 512, which [`leases`] doesn't tell.
    pub unlisted_count: u32,
    /// Any bytes.
    pub name: OsString,
}

/// A lease of a process that publishes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub struct PublishedLease {
    /// [`PublishedProcess::process`].
    pub process: u64,
    /// [`LeaseInfo::id`](crate::LeaseInfo) in that process.
    pub id: u64,
    /// How often its SMs have changed.
    pub changes: u64,
    /// [`PublishedProcess::pid`].
    pub pid: u32,
    /// Whether it is on the simulated driver.
    pub simulated: bool,
    /// The ordinal of the device in that process; [`device_uuid`](Self::device_uuid) tells the same one
    /// in others.
    pub device: u32,
    /// How its SMs are taken.
    pub family: Family,
    /// Whether others that are shared may have its SMs too.
    pub shared: bool,
    /// Whether it insists on queues of its own.
    pub own_queues: bool,
    /// Whether it has nothing yet, and waits.
    pub waiting: bool,
    /// How many SMs it has; of one that waits those that it asked for, `None` of the rest.
    pub sm_count: Option<u32>,
    /// Of these, those that are its alone.
    pub exclusive_sm_count: u32,
    /// Live streams of it.
    pub stream_count: u32,
    /// SMs of the device.
    pub device_sm_count: u32,
    /// Atoms of the family on that device.
    pub atom_count: u32,
    /// SMs of each atom but the last.
    pub atom_sm_count: u32,
    /// SMs of the last atom.
    pub last_atom_sm_count: u32,
    /// The numbers of the atoms that are its alone, ascending.
    pub exclusive_atoms: Vec<u32>,
    /// And of those that others may have too.
    pub shared_atoms: Vec<u32>,
    /// The 16 bytes of the device.
    pub device_uuid: [u8; 16],
    /// Any bytes; empty if it was given none.
    pub name: OsString,
    /// Any bytes.
    pub process_name: OsString,
    /// Any bytes.
    pub device_name: OsString,
}

/// The processes that publish, this one among them if it does. Opens no driver.
///
/// # Errors
///
/// [`ErrorKind::NotPermitted`](crate::ErrorKind) and `OperatingSystem` as of [`start`]; but a folder
/// that isn't there has no processes.
pub fn processes() -> Result<Vec<PublishedProcess>> {
    let found = listed(|list, room, count| {
        // SAFETY: `list` has room for `room` elements.
        unsafe { sys::gcx_published_process_list(list, room, count) }
    })?;
    Ok(found.iter().map(process).collect())
}

/// The leases of the processes that publish: of each process those that hold SMs in the order in which
/// they were acquired, then those that wait, the first first. Opens no driver.
///
/// # Errors
///
/// As [`processes`].
pub fn leases() -> Result<Vec<PublishedLease>> {
    let found = listed(|list, room, count| {
        // SAFETY: `list` has room for `room` elements.
        unsafe { sys::gcx_published_lease_list(list, room, count) }
    })?;
    Ok(found.iter().map(lease).collect())
}

fn process(told: &sys::gcx_published_process) -> PublishedProcess {
    let version = told.driver_version.unsigned_abs();
    PublishedProcess {
        process: told.process,
        since: time(told.since_ms),
        pid: told.pid.unsigned_abs(),
        simulated: told.simulated != 0,
        driver_version: (version / 1000, version % 1000 / 10),
        device_count: told.device_count,
        lease_count: told.lease_count,
        unlisted_count: told.unlisted_count,
        name: bytes(&told.name),
    }
}

fn lease(told: &sys::gcx_published_lease) -> PublishedLease {
    let waiting = told.waits != 0;
    PublishedLease {
        process: told.process,
        id: told.id,
        changes: told.changes,
        pid: told.pid.unsigned_abs(),
        simulated: told.simulated != 0,
        device: told.device.unsigned_abs(),
        family: Family::of(told.family).unwrap_or(Family::Foreign),
        shared: told.flags & sys::GCX_LEASE_SHARED != 0,
        own_queues: told.flags & sys::GCX_LEASE_OWN_QUEUES != 0,
        waiting,
        sm_count: Some(told.sm_count).filter(|count| *count != sys::GCX_REST),
        exclusive_sm_count: told.exclusive_sm_count,
        stream_count: told.stream_count,
        device_sm_count: told.device_sm_count,
        atom_count: told.atom_count,
        atom_sm_count: told.atom_sm_count,
        last_atom_sm_count: told.last_atom_sm_count,
        exclusive_atoms: numbers(&told.exclusive_atoms),
        shared_atoms: numbers(&told.shared_atoms),
        device_uuid: told.device_uuid,
        name: bytes(&told.name),
        process_name: bytes(&told.process_name),
        device_name: bytes(&told.device_name),
    }
}
