//! What libraries of the process are told of partitions' SMs.

use crate::error::{check, Result};
use crate::sys;

/// From now on libraries of this process that ask CUDA for the device's number of SMs, while a green
/// context is current in the thread, are told that context's, so that they plan for SMs that they
/// have. Nothing is moved by it, and other threads are told what they were told before. A cuBLAS before
/// 13.10 is told the device's: with a partition's it computes wrong products.
///
/// It puts a library before libcuda for the rest of the process, so it comes first: before the first
/// call of gcx that opens the driver, and before anything else, as cudart or cudarc, loads
/// `libcuda.so.1`. Doing it twice does it once. It may start a child process for a moment.
///
/// ```no_run
/// gcx::report_partition_counts()?; // first in main
/// let parts = gcx::Device::new(0)?.partition([32])?;
/// parts[0].context().with_current(|| {
///     // A handle of cuBLAS 13.10 that is made here plans for 32 SMs, in any thread, for good.
/// })?;
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::NotPermitted`](crate::ErrorKind) libcuda.so.1 is loaded already. `FileNotFound`
/// libgcx-counts.so, which comes with an installed gcx, or the simulated driver that `GCX_DRIVER` names
/// isn't there: so a library that the crate built itself has none. `DriverNotFound` there is no driver
/// library, or it can't be loaded. `OperatingSystem` no file or pipe can be made.
pub fn report_partition_counts() -> Result<()> {
    // SAFETY: it takes nothing.
    check(unsafe { sys::gcx_driver_report_partition_counts() })
}

/// Whether [`report_partition_counts`] has succeeded in this process. Opens no driver.
///
/// # Errors
///
/// None that is known.
pub fn reports_partition_counts() -> Result<bool> {
    let mut reporting = 0;
    // SAFETY: a number is written.
    check(unsafe { sys::gcx_driver_reports_partition_counts(&mut reporting) })?;
    Ok(reporting != 0)
}
