//! The hardware's queues, which the partitions of a process share.

use crate::error::{check, Result};
use crate::sys;

/// Where the number of connections comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueueSource {
    /// CUDA's own number, 8: the variable isn't set.
    Default,
    /// The environment's `CUDA_DEVICE_MAX_CONNECTIONS`.
    Environment,
}

/// What is known of the hardware's queues, from [`queue_info`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct QueueInfo {
    /// The connections that CUDA has or, if it hasn't started, would have; `None` if the variable
    /// holds something else than 1 to 32.
    pub connections: Option<u32>,
    /// Where that number comes from.
    pub source: QueueSource,
    /// Whether CUDA has started in the process, so that the number stays.
    pub started: bool,
    /// Not so if CUDA had started before gcx looked, and the process had set the variable anew:
    /// `connections` is what it holds now.
    pub certain: bool,
    /// Whether there is one connection, with which all partitions wait as soon as one stream does.
    pub too_few: bool,
}

/// How many queues the partitions of this process share. A stream holds one while the first thing in
/// it waits for something before it; while as many streams wait so as there are connections, every
/// other launch of the process waits, whatever SMs it has. Opens no driver.
///
/// ```
/// let info = gcx::queue_info()?;
/// if info.too_few {
///     eprintln!("all partitions wait as soon as one stream does");
/// }
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// # Errors
///
/// None that is known.
pub fn queue_info() -> Result<QueueInfo> {
    let mut info = sys::GCX_QUEUE_INFO_INIT;
    // SAFETY: the struct is filled in as far as its struct_size says.
    check(unsafe { sys::gcx_queue_get_info(&mut info) })?;
    Ok(QueueInfo {
        connections: if info.connections == 0 { None } else { Some(info.connections) },
        source: match info.source {
            sys::GCX_QUEUE_SOURCE_DEFAULT => QueueSource::Default,
            _ => QueueSource::Environment,
        },
        started: info.started != 0,
        certain: info.certain != 0,
        too_few: info.too_few != 0,
    })
}

/// Asks for so many connections, 1 to 32, before CUDA starts: sets `CUDA_DEVICE_MAX_CONNECTIONS` in
/// the process's environment, unless it holds as many or more. Processes that it starts inherit the
/// number. Opens no driver. CUDA reads the variable as it starts, and not later (measured on 13.0).
///
/// ```
/// // SAFETY: first of all in `main`: there is no other thread yet.
/// unsafe { gcx::request_connections(32) }?;
/// assert_eq!(gcx::queue_info()?.connections, Some(32));
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// # Safety
///
/// It changes the environment as `std::env::set_var` does: no other thread reads or writes that
/// meanwhile, be it in C.
///
/// # Errors
///
/// [`ErrorKind::NotPermitted`](crate::ErrorKind) CUDA has started with fewer, or it isn't certain with
/// how many: it is too late. `InvalidValue` 0, or more than 32.
pub unsafe fn request_connections(connections: u32) -> Result<()> {
    check(sys::gcx_queue_request_connections(connections))
}
