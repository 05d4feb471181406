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
//! [`OsString`](std::ffi::OsString)s, and `{:?}` escapes them.

use std::ffi::CString;
use std::ptr;

use crate::error::{check, Error, Result};
use crate::live::listed;
use crate::sys;

#[doc(no_inline)]
pub use crate::generated::{PublishedLease, PublishedProcess};

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
    Ok(found.iter().map(PublishedProcess::from).collect())
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
    Ok(found.iter().map(PublishedLease::from).collect())
}
