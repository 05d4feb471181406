//! Published leases, which other processes of the same user can list, as `gcx top` does.
//!
//! A process publishes its leases after [`start`], or if `GCX_PUBLISH` is in its environment, until
//! it ends. Reading opens no driver and needs no GPU. Names are [`OsString`](std::ffi::OsString)s,
//! since other processes can write any bytes; `{:?}` escapes them.
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

use crate::call::{address_of, c_text, check, listed};
use crate::error::Result;
use crate::sys;

#[doc(no_inline)]
pub use crate::generated::{PublishedLease, PublishedProcess};

/// Publishes this process's present and later leases, up to 512 at a time, under a name of at most
/// 63 bytes; `None` is the program's. Changes the name if it publishes already. Opens the driver.
///
/// Fails with [`UnsafeFolder`](crate::ErrorKind) if the folder is another user's or open to others,
/// and with `OperatingSystem` if the file can't be written.
pub fn start(name: Option<&str>) -> Result<()> {
    let name = name.map(|name| c_text(name, "the process's name")).transpose()?;
    // SAFETY: the name is NULL or ends with a zero byte, and is copied.
    check(unsafe { sys::gcx_publish_start(address_of(name.as_ref())) })
}

/// Stops publishing, if this process does. Opens no driver.
pub fn stop() -> Result<()> {
    // SAFETY: it takes nothing.
    check(unsafe { sys::gcx_publish_stop() })
}

/// Lists the processes that publish, also this one. If the folder is missing, the list is empty.
pub fn processes() -> Result<Vec<PublishedProcess>> {
    let found = listed(|list, room, count| {
        // SAFETY: `list` has room for `room` elements.
        unsafe { sys::gcx_published_process_list(list, room, count) }
    })?;
    Ok(found.iter().map(PublishedProcess::from).collect())
}

/// Lists the leases of these processes: of each in the order in which they were acquired, then the
/// waiting requests in order of arrival.
pub fn leases() -> Result<Vec<PublishedLease>> {
    let found = listed(|list, room, count| {
        // SAFETY: `list` has room for `room` elements.
        unsafe { sys::gcx_published_lease_list(list, room, count) }
    })?;
    Ok(found.iter().map(PublishedLease::from).collect())
}
