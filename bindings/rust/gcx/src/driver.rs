//! The driver, and the versions of the library.

use std::ffi::CString;

use crate::convert::version;
use crate::error::{check, text, Error, Result};
use crate::generated::{Capability, DriverInfo};
use crate::sys;

/// Chooses the driver library, before anything opened another, and opens it:
///
/// - `""`: the one that is open; else what the environment's `GCX_DRIVER` names; else the system's;
/// - `"sim:h100@13.0"` and the like: the simulated driver, which needs no GPU;
/// - anything else: a path or name of a library.
///
/// Calling it is optional: the first function that needs the driver opens it as with `""`.
///
/// ```
/// // SAFETY: the simulated driver is part of gcx.
/// unsafe { gcx::open_driver("sim:h100@13.0") }?;
/// # Ok::<(), gcx::Error>(())
/// ```
///
/// # Safety
///
/// What is opened is a CUDA driver. As for `Library::new` of the crate `libloading`, no type can tell:
/// the library's initialization runs whatever code is in it, and its functions are called as cuda.h
/// declares them. The safe functions open what the environment names, which is as trusted as the rest
/// of what starts a process.
///
/// # Errors
///
/// [`ErrorKind::AlreadyAcquired`](crate::ErrorKind) another driver is open, for the rest of the
/// process; `DriverNotFound` there is no driver library; `FileNotFound` the simulated one isn't
/// there; `NotSupported` the driver is older than CUDA 12.4; `NoDevice` it has no device.
pub unsafe fn open_driver(driver: &str) -> Result<()> {
    let driver = CString::new(driver).map_err(|_| {
        let message = "the driver's name has a zero byte in it";
        Error::of(sys::GCX_ERROR_INVALID_VALUE, message)
    })?;
    check(sys::gcx_driver_open(driver.as_ptr()))
}

/// The open driver.
///
/// # Errors
///
/// As [`open_driver`].
pub fn driver_info() -> Result<DriverInfo> {
    let mut info = sys::GCX_DRIVER_INFO_INIT;
    // SAFETY: the struct is filled in as far as its struct_size says.
    check(unsafe { sys::gcx_driver_get_info(&mut info) })?;
    Ok(DriverInfo::from(&info))
}

impl Capability {
    /// Whether the open driver has it, and from which version on one does.
    ///
    /// ```
    /// use gcx::Capability;
    ///
    /// let info = Capability::Workqueues.info()?;
    /// assert_eq!(info.required_version, (13, 1));
    /// # Ok::<(), gcx::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`open_driver`].
    pub fn info(self) -> Result<CapabilityInfo> {
        let mut info = sys::GCX_CAPABILITY_INFO_INIT;
        // SAFETY: the struct is filled in as far as its struct_size says.
        check(unsafe { sys::gcx_capability_get_info(self.into(), &mut info) })?;
        Ok(CapabilityInfo {
            available: info.available != 0,
            required_version: version(info.required_version),
            // SAFETY: the name ends with a zero byte.
            name: unsafe { text(info.name) },
        })
    }
}

/// What is known of a [`Capability`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CapabilityInfo {
    /// Whether the open driver has it.
    pub available: bool,
    /// The version that has it, major and minor.
    pub required_version: (u32, u32),
    /// In words.
    pub name: String,
}

/// The path of the simulated driver that `"sim:"` opens, for programs that start others on it. Opens
/// no driver.
///
/// # Errors
///
/// [`ErrorKind::FileNotFound`](crate::ErrorKind) it isn't installed; the message says where it was
/// looked for.
pub fn simulator_path() -> Result<String> {
    // SAFETY: the string is the thread's until its next call, and is copied at once.
    let path = unsafe { sys::gcx_simulator_path() };
    if path.is_null() {
        return Err(Error::last(sys::GCX_ERROR_FILE_NOT_FOUND));
    }
    // SAFETY: as above.
    Ok(unsafe { text(path) })
}

/// The version of the C library that runs: major, minor and patch. Opens no driver.
#[must_use]
pub fn library_version() -> (u32, u32, u32) {
    // SAFETY: it takes nothing.
    let number = unsafe { sys::gcx_version() };
    (number / 10000, number / 100 % 100, number % 100)
}
