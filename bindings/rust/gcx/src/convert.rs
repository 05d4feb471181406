//! How the fields of C's structs become Rust's types.

use std::ffi::OsString;
use std::os::raw::c_char;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, SystemTime};

use crate::error::{Error, Result};
use crate::sys;

/// A time that is told in milliseconds since 1970. Another process may have written the number: one
/// that no clock holds is taken for the beginning.
pub(crate) fn time(milliseconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH
        .checked_add(Duration::from_millis(milliseconds))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The numbers whose bits are set.
pub(crate) fn numbers(words: &[u64]) -> Vec<u32> {
    (0..)
        .zip(words)
        .flat_map(|(word, bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| word * 64 + bit)
        })
        .collect()
}

/// The bytes before the first that is zero.
pub(crate) fn bytes(text: &[c_char]) -> OsString {
    let text = text.iter().take_while(|&&byte| byte != 0);
    OsString::from_vec(text.map(|byte| byte.to_ne_bytes()[0]).collect())
}

/// The text before the first byte that is zero; what isn't UTF-8 in it is replaced.
pub(crate) fn string(text: &[c_char]) -> String {
    bytes(text).to_string_lossy().into_owned()
}

/// A number, unless it is the one that stands for none.
pub(crate) fn some<T: Copy + PartialEq>(number: T, none: T) -> Option<T> {
    Some(number).filter(|number| *number != none)
}

/// 13010 is CUDA 13.1: (13, 1).
pub(crate) fn version(number: i32) -> (u32, u32) {
    let number = number.unsigned_abs();
    (number / 1000, number % 1000 / 10)
}

/// How C counts a slice's elements.
pub(crate) fn counted(length: usize) -> Result<u32> {
    u32::try_from(length)
        .map_err(|_| Error::of(sys::GCX_ERROR_INVALID_VALUE, "more elements than a u32 counts"))
}
