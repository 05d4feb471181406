//! The hardware's queues: asked for before CUDA starts, so that every test starts a process.

mod common;

use common::alone_with;
use gcx::{queue_info, request_connections, ErrorKind, QueueSource};

const NAME: &str = "CUDA_DEVICE_MAX_CONNECTIONS";

#[test]
fn asked_for_in_time() {
    alone_with(&[(NAME, "4")], "asked_for_in_time", || {
        let before = queue_info().unwrap();
        assert_eq!((before.connections, before.source), (Some(4), QueueSource::Environment));
        assert!(!before.started && before.certain && !before.too_few);
        for wrong in [0, 33, u32::MAX] {
            // SAFETY: no other thread uses the environment.
            let refused = unsafe { request_connections(wrong) }.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidValue);
        }
        // SAFETY: as above.
        unsafe { request_connections(16) }.unwrap();
        assert_eq!(queue_info().unwrap().connections, Some(16));
        assert_eq!(std::env::var(NAME).as_deref(), Ok("16"));
        // As many or more are left alone.
        // SAFETY: as above.
        unsafe { request_connections(8) }.unwrap();
        assert_eq!(queue_info().unwrap().connections, Some(16));

        gcx::devices().unwrap();
        let started = queue_info().unwrap();
        assert!(started.started && started.certain);
        assert_eq!(started.connections, Some(16));
        // SAFETY: as above.
        let late = unsafe { request_connections(32) }.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::NotPermitted, "{late}");
        // SAFETY: as above.
        unsafe { request_connections(16) }.unwrap();
    });
}

#[test]
fn what_no_number_is() {
    alone_with(&[(NAME, "many")], "what_no_number_is", || {
        let info = queue_info().unwrap();
        assert_eq!((info.connections, info.source), (None, QueueSource::Environment));
    });
}
