//! The hardware's queues, which the partitions of a process share.

use crate::error::{check, Result};
use crate::generated::QueueInfo;
use crate::sys;

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
    Ok(QueueInfo::from(&info))
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
