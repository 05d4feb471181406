//! The driver, what it has, and what is set before it starts.

use crate::call::{c_text, check, filled, text};
use crate::error::{Error, Result};
use crate::generated::{DriverInfo, QueueInfo};
use crate::sys;

/// Chooses the driver library and opens it, before any other call does:
///
/// - `""`: the one that is open; else the one that `GCX_DRIVER` names; else the system's;
/// - `"sim:h100@13.0"` and the like: the simulated driver, which needs no GPU;
/// - anything else: the path or name of a library.
///
/// Optional: the first function that needs the driver opens it as with `""`. Fails with
/// [`DriverAlreadyOpen`](crate::ErrorKind) if another driver is open, `DriverNotFound` or
/// `FileNotFound` if there is none, `NotSupported` if it is older than CUDA 12.4.
///
/// ```
/// // SAFETY: the simulated driver is part of gcx.
/// unsafe { gcx::open_driver("sim:h100@13.0") }?;
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// # Safety
///
/// The library is a CUDA driver: its initialization runs, and its functions are called as cuda.h
/// declares them. The safe functions open the one that the environment names, which is trusted as
/// the rest of what starts a process.
pub unsafe fn open_driver(driver: &str) -> Result<()> {
    let driver = c_text(driver, "the driver's name")?;
    check(sys::gcx_driver_open(driver.as_ptr()))
}

/// Returns information about the open driver.
///
/// ```
/// let driver = gcx::driver_info()?;
/// let own_queues = driver.capabilities.contains(&gcx::Capability::Workqueues);
/// assert_eq!(own_queues, driver.version >= (13, 1));
/// # Ok::<(), gcx::Error>(())
/// ```
pub fn driver_info() -> Result<DriverInfo> {
    // SAFETY: C fills in the struct.
    filled(sys::GCX_DRIVER_INFO_INIT, |info| unsafe { sys::gcx_driver_get_info(info) })
}

/// Returns the path of the simulated driver that `"sim:"` opens. Opens no driver; fails with
/// [`FileNotFound`](crate::ErrorKind) if it isn't installed.
pub fn simulator_path() -> Result<String> {
    // SAFETY: the string is the thread's until its next call, and is copied below.
    let path = unsafe { sys::gcx_simulator_path() };
    if path.is_null() {
        return Err(Error::last(sys::GCX_ERROR_FILE_NOT_FOUND));
    }
    // SAFETY: as above.
    Ok(unsafe { text(path) })
}

/// Returns the version of the C library: major, minor and patch. Opens no driver.
pub fn library_version() -> (u32, u32, u32) {
    // SAFETY: it takes nothing.
    let number = unsafe { sys::gcx_version() };
    (number / 10000, number / 100 % 100, number % 100)
}

/// Returns how many of the hardware's queues the partitions of this process share. Opens no driver.
///
/// ```
/// let info = gcx::queue_info()?;
/// if info.too_few {
///     eprintln!("all partitions wait as soon as one stream does");
/// }
/// # Ok::<(), gcx::Error>(())
/// ```
pub fn queue_info() -> Result<QueueInfo> {
    // SAFETY: C fills in the struct.
    filled(sys::GCX_QUEUE_INFO_INIT, |info| unsafe { sys::gcx_queue_get_info(info) })
}

/// Sets `CUDA_DEVICE_MAX_CONNECTIONS` in the environment, unless it is as large already: 1 to 32,
/// before CUDA starts. Opens no driver; fails with [`TooLate`](crate::ErrorKind) if CUDA has
/// started with fewer.
///
/// ```
/// // SAFETY: first in `main`: there is no other thread yet.
/// unsafe { gcx::request_connections(32) }?;
/// assert_eq!(gcx::queue_info()?.connections, Some(32));
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// # Safety
///
/// No other thread reads or writes the environment during the call, as for `std::env::set_var`.
pub unsafe fn request_connections(connections: u32) -> Result<()> {
    check(sys::gcx_queue_request_connections(connections))
}

/// Makes libraries of this process that ask CUDA for the SM count see that of the green context
/// that is current in their thread, see `docs/explanation/counts.md`.
///
/// Call it first in `main`: it fails with [`TooLate`](crate::ErrorKind) once `libcuda.so.1` is
/// loaded, and with `FileNotFound` without the libgcx-counts.so of an installed gcx.
///
/// ```no_run
/// gcx::report_partition_counts()?; // first in main
/// let parts = gcx::Device::new(0)?.partition([32])?;
/// parts[0].context().with_current(|| {
///     // A handle of cuBLAS 13.10 that is created here plans for 32 SMs permanently.
/// })?;
/// # Ok::<(), gcx::Error>(())
/// ```
pub fn report_partition_counts() -> Result<()> {
    // SAFETY: it takes nothing.
    check(unsafe { sys::gcx_driver_report_partition_counts() })
}
