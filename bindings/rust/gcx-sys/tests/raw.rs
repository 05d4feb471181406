//! The raw functions reach the library, and the initializers set `struct_size`.

use std::ffi::CStr;
use std::{mem, ptr};

use gcx_sys::{
    gcx_context_create, gcx_context_destroy, gcx_device_get_count, gcx_device_get_info,
    gcx_device_get_resource, gcx_last_error_message, gcx_resource, gcx_resource_get_info,
    gcx_result_name, gcx_version, GCX_DEVICE_INFO_INIT, GCX_ERROR_INVALID_VALUE,
    GCX_RESOURCE_INFO_INIT, GCX_RESOURCE_SM, GCX_SUCCESS, GCX_VERSION,
};

#[test]
fn functions_reach_the_library() {
    let (mut count, mut context) = (0, ptr::null_mut());
    let mut info = GCX_DEVICE_INFO_INIT;
    let mut sms = gcx_resource::default();
    let mut of_sms = GCX_RESOURCE_INFO_INIT;
    // SAFETY: pointers are to live variables; the handle is destroyed once.
    unsafe {
        assert_eq!(gcx_version(), GCX_VERSION);
        assert_eq!(gcx_device_get_count(&mut count), GCX_SUCCESS);
        assert_eq!(gcx_device_get_info(0, &mut info), GCX_SUCCESS);
        assert_eq!(gcx_device_get_resource(0, GCX_RESOURCE_SM, &mut sms), GCX_SUCCESS);
        assert_eq!(gcx_resource_get_info(&sms, &mut of_sms), GCX_SUCCESS);
        assert_eq!(gcx_context_create(&sms, 1, ptr::null(), &mut context), GCX_SUCCESS);
        assert_eq!(gcx_context_destroy(context), GCX_SUCCESS);
    }
    assert_eq!((count, info.sm_count, of_sms.sm_count), (1, 132, 132));
}

#[test]
fn errors_have_a_message_and_a_name() {
    // SAFETY: NULL is an error; the strings are copied or live as long as the library.
    unsafe {
        assert_eq!(gcx_device_get_count(ptr::null_mut()), GCX_ERROR_INVALID_VALUE);
        let message = CStr::from_ptr(gcx_last_error_message()).to_str().unwrap();
        assert!(message.starts_with("gcx_device_get_count"), "{message}");
        let name = CStr::from_ptr(gcx_result_name(GCX_ERROR_INVALID_VALUE)).to_str().unwrap();
        assert_eq!(name, "GCX_ERROR_INVALID_VALUE");
    }
}

#[test]
fn initializers_set_struct_size() {
    let size = GCX_DEVICE_INFO_INIT.struct_size as usize;
    assert_eq!(size, mem::size_of_val(&GCX_DEVICE_INFO_INIT));
    let mut wrong = GCX_DEVICE_INFO_INIT;
    wrong.struct_size = 3;
    // SAFETY: a struct of another size is refused and not written to.
    assert_eq!(unsafe { gcx_device_get_info(0, &mut wrong) }, GCX_ERROR_INVALID_VALUE);
}
