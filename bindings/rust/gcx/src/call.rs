//! How C functions are called: results become errors, written values are returned, handles get
//! owners.

use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::c_char;
use std::ptr;

use crate::error::{Error, Result};
use crate::sys;

/// Turns a result into Rust's.
#[inline]
pub(crate) fn check(result: sys::gcx_result) -> Result<()> {
    if result == sys::GCX_SUCCESS {
        Ok(())
    } else {
        Err(Error::last(result))
    }
}

/// Turns the result of a query into a bool: not ready is no error, and has no message.
pub(crate) fn finished(result: sys::gcx_result) -> Result<bool> {
    if result == sys::GCX_ERROR_NOT_READY {
        Ok(false)
    } else {
        check(result).map(|()| true)
    }
}

/// Returns what a function writes.
#[inline]
pub(crate) fn written<T>(mut value: T, write: impl FnOnce(&mut T) -> sys::gcx_result) -> Result<T> {
    check(write(&mut value))?;
    Ok(value)
}

/// Returns a struct that a function fills in, with Rust's types. `start` has its `struct_size`.
pub(crate) fn filled<R, T: for<'a> From<&'a R>>(
    start: R,
    fill: impl FnOnce(&mut R) -> sys::gcx_result,
) -> Result<T> {
    written(start, fill).map(|raw| T::from(&raw))
}

/// Returns all that a function lists, which takes a list, its room and where to write the count.
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
        // The list can grow between two calls.
        found.resize(count as usize, T::default());
    }
    found.truncate(count as usize);
    Ok(found)
}

/// Returns the SM numbers that a function writes. It is called once, since it may run a kernel.
pub(crate) fn sm_ids(
    read: impl FnOnce(*mut u32, u32, *mut u32) -> sys::gcx_result,
) -> Result<Vec<u32>> {
    let mut ids = vec![0; sys::GCX_MAX_SMS as usize];
    let count = written(0, |count| read(ids.as_mut_ptr(), sys::GCX_MAX_SMS, count))?;
    ids.truncate(count as usize);
    Ok(ids)
}

/// Returns a native handle. A function that returns NULL reports no result, so `why` asks another.
pub(crate) fn native<T, K>(native: *mut T, why: impl FnOnce() -> Result<K>) -> Result<*mut T> {
    if native.is_null() {
        return Err(why().err().unwrap_or_else(|| Error::last(sys::GCX_ERROR_UNKNOWN)));
    }
    Ok(native)
}

/// Returns values as C takes them, an array and its length, or the first error among them.
pub(crate) fn array<T>(values: impl Iterator<Item = Result<T>>) -> Result<(Vec<T>, u32)> {
    let values = values.collect::<Result<Vec<_>>>()?;
    let count = counted(values.len())?;
    Ok((values, count))
}

/// Returns the length of a slice as C takes it.
pub(crate) fn counted(length: usize) -> Result<u32> {
    u32::try_from(length)
        .map_err(|_| Error::of(sys::GCX_ERROR_INVALID_VALUE, "more elements than a u32 counts"))
}

/// Returns a string as C takes it; `what` names it in the error.
pub(crate) fn c_text(text: impl Into<Vec<u8>>, what: &str) -> Result<CString> {
    CString::new(text).map_err(|_| {
        let message = format!("{what} has a zero byte in it");
        Error::of(sys::GCX_ERROR_INVALID_VALUE, &message)
    })
}

/// Returns the address of an optional string, or NULL.
pub(crate) fn address_of(text: Option<&CString>) -> *const c_char {
    text.map_or(ptr::null(), |text| text.as_ptr())
}

/// Copies a C string, and replaces what isn't UTF-8.
///
/// # Safety
///
/// `text` is NULL or ends with a zero byte.
pub(crate) unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

/// Writes what is known of an object, or the name of the error that hides it.
pub(crate) fn described(
    out: &mut fmt::Formatter<'_>,
    name: &str,
    known: Result<String>,
) -> fmt::Result {
    match known {
        Ok(known) => write!(out, "{name}({known})"),
        Err(error) => write!(out, "{name}({})", error.name()),
    }
}

/// Declares an object that owns a C handle.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $raw:ident, $release:ident) => {
        $(#[$doc])*
        pub struct $name(sys::$raw);

        // SAFETY: a handle names an object of the library, whose functions may be called from any
        // thread, also concurrently on one object.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                // A failure can't be reported here; the library then keeps the object.
                // SAFETY: the handle is this object's, and is released once.
                unsafe { sys::$release(self.0) };
            }
        }

        impl $name {
            pub(crate) fn created(
                create: impl FnOnce(&mut sys::$raw) -> sys::gcx_result,
            ) -> Result<Self> {
                crate::call::written(std::ptr::null_mut(), create).map($name)
            }

            /// The C API's handle, which stays this object's.
            pub fn as_raw(&self) -> sys::$raw {
                self.0
            }
        }
    };
}
pub(crate) use handle;

/// Makes a struct a slice of the elements of one of its fields, a vector.
macro_rules! slice_of {
    ($name:ident, $field:ident: $element:ty) => {
        impl std::ops::Deref for $name {
            type Target = [$element];

            fn deref(&self) -> &[$element] {
                &self.$field
            }
        }

        impl IntoIterator for $name {
            type Item = $element;
            type IntoIter = std::vec::IntoIter<$element>;

            fn into_iter(self) -> Self::IntoIter {
                self.$field.into_iter()
            }
        }

        impl<'a> IntoIterator for &'a $name {
            type Item = &'a $element;
            type IntoIter = std::slice::Iter<'a, $element>;

            fn into_iter(self) -> Self::IntoIter {
                self.$field.iter()
            }
        }
    };
}
pub(crate) use slice_of;
