//! Opening the library at run time. Only with the feature `dlopen`, and the library's path in
//! `GCX_LIBRARY`. One test, since the library is opened once in a process.
#![cfg(feature = "dlopen")]

use std::env;
use std::ffi::CStr;
use std::ptr;

use gcx_sys::{
    gcx_context_native, gcx_driver_open, gcx_last_error_message, gcx_result_name,
    gcx_result_string, gcx_simulator_path, gcx_version, open, GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
    GCX_SUCCESS, GCX_VERSION,
};

fn text(of: *const std::os::raw::c_char) -> String {
    // SAFETY: the library's strings end with a zero byte.
    unsafe { CStr::from_ptr(of) }.to_str().unwrap().to_owned()
}

#[test]
fn library_is_opened_by_the_first_call() {
    let library = env::var_os("GCX_LIBRARY").expect("GCX_LIBRARY names the library");
    env::set_var("GCX_LIBRARY", "/nowhere/libgcx.so.1");
    let missing = GCX_ERROR_SHARED_OBJECT_INIT_FAILED;
    // SAFETY: only the functions that stand in for the library are called.
    unsafe {
        assert_eq!(gcx_driver_open(ptr::null()), missing);
        let message = text(gcx_last_error_message());
        assert!(message.contains("/nowhere/libgcx.so.1") && message.contains("GCX_LIBRARY"));
        assert_eq!(text(gcx_result_name(missing)), "GCX_ERROR_SHARED_OBJECT_INIT_FAILED");
        assert!(text(gcx_result_string(missing)).ends_with('.'));
        assert_eq!(gcx_version(), 0);
        assert!(gcx_simulator_path().is_null());
        assert!(gcx_context_native(ptr::null_mut()).is_null());
    }
    // Another library is refused.
    // SAFETY: libc is loaded already.
    let error = unsafe { open(Some("libc.so.6".as_ref())) }.unwrap_err().to_string();
    assert!(error.contains("libc.so.6 has no function gcx_"), "{error}");
    // SAFETY: the name is refused.
    assert!(unsafe { open(Some("a\0b".as_ref())) }.is_err());

    // Several threads open it at once.
    env::set_var("GCX_LIBRARY", &library);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            // SAFETY: it takes nothing.
            std::thread::spawn(|| unsafe { gcx_version() })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), GCX_VERSION);
    }
    // SAFETY: nothing is opened.
    unsafe { open(Some("/nowhere/it-is-open-already".as_ref())) }.unwrap();
    // SAFETY: the name ends with a zero byte.
    unsafe {
        assert_eq!(gcx_driver_open(b"sim:h100@13.0\0".as_ptr().cast()), GCX_SUCCESS);
        assert!(!text(gcx_simulator_path()).is_empty());
    }
}
