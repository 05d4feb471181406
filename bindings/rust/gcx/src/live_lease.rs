//! The leases of this process.

use crate::error::{text, Result};
use crate::live_context::listed;
use crate::request::Family;
use crate::resource::SmResource;
use crate::sys;

/// A lease of this process, or a wait for one, whoever made it by gcx.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LiveLease {
    /// [`LeaseInfo::id`](crate::LeaseInfo).
    pub id: u64,
    /// Empty if it was given none.
    pub name: String,
    /// The ordinal of the device.
    pub device: u32,
    /// How its SMs are taken.
    pub family: Family,
    /// Whether others that are shared may have its SMs too.
    pub shared: bool,
    /// Whether it insists on queues of its own.
    pub own_queues: bool,
    /// Whether it has nothing yet, and waits in [`LeaseBuilder::acquire`](crate::LeaseBuilder).
    pub waiting: bool,
    /// How many SMs it has; of one that waits those that it asked for, `None` of the rest.
    pub sm_count: Option<u32>,
    /// Of these, those that are its alone.
    pub exclusive_sm_count: u32,
    /// Live streams of it.
    pub stream_count: u32,
    /// Which SMs it has; none if it waits.
    pub sms: SmResource,
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
    found.iter().map(live_lease).collect()
}

fn live_lease(live: &sys::gcx_live_lease) -> Result<LiveLease> {
    let waiting = live.waits != 0;
    Ok(LiveLease {
        id: live.id,
        // SAFETY: the name ends with a zero byte.
        name: unsafe { text(live.name.as_ptr()) },
        device: live.device.unsigned_abs(),
        family: Family::of(live.family).unwrap_or(Family::Foreign),
        shared: live.flags & sys::GCX_LEASE_SHARED != 0,
        own_queues: live.flags & sys::GCX_LEASE_OWN_QUEUES != 0,
        waiting,
        sm_count: Some(live.sm_count).filter(|count| *count != sys::GCX_REST),
        exclusive_sm_count: live.exclusive_sm_count,
        stream_count: live.stream_count,
        sms: SmResource::from_raw(live.resource)?,
    })
}
