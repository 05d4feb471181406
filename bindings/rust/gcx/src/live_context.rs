//! The green contexts that are in use.

use std::ptr;

use crate::error::{Error, Result};
use crate::resource::SmResource;
use crate::sys;

/// A green context in use, whoever in this process made it by gcx.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LiveContext {
    /// [`ContextInfo::id`](crate::ContextInfo), and that of streams.
    pub id: u64,
    /// The ordinal of the device.
    pub device: u32,
    /// How many SMs it has.
    pub sm_count: u32,
    /// Contexts that stand for it.
    pub handle_count: u32,
    /// Streams in it.
    pub stream_count: u32,
    /// Whether it is shared with no others.
    pub private: bool,
    /// Which SMs it has.
    pub sms: SmResource,
}

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
    found.iter().map(live_context).collect()
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

fn live_context(live: &sys::gcx_live_context) -> Result<LiveContext> {
    Ok(LiveContext {
        id: live.id,
        device: live.device.unsigned_abs(),
        sm_count: live.sm_count,
        handle_count: live.handle_count,
        stream_count: live.stream_count,
        private: live.flags & sys::GCX_CONTEXT_PRIVATE != 0,
        sms: SmResource::from_raw(live.resource)?,
    })
}
