//! What belongs to the process: published leases, connections, and partition counts. Each test
//! starts one.

mod common;

use std::ffi::OsStr;
use std::time::{Duration, SystemTime};

use common::{holds_in_a_child, in_process_with, with_folder};
use gcx::publish::{leases, processes, start, stop};
use gcx::{queue_info, request_connections, Device, ErrorKind, QueueSource};

#[test]
fn published_values_are_converted() {
    with_folder("published_values_are_converted", || {
        assert_eq!((processes().unwrap(), leases().unwrap()), (vec![], vec![]));
        let device = Device::new(0).unwrap();
        let name = "d\u{e9}code\u{1b}[2J"; // which would clear a terminal
        let decode = device.lease().sm_count(32).name(name).acquire().unwrap();
        start(Some("serving")).unwrap();
        let shared = device.lease().sm_count(24).shared().acquire().unwrap();

        let listed = processes().unwrap();
        assert_eq!(listed.len(), 1);
        let process = &listed[0];
        assert_eq!((process.pid, process.simulated), (std::process::id(), true));
        assert_eq!(process.name, OsStr::new("serving"));
        assert_eq!((process.device_count, process.lease_count), (1, 2));
        assert_eq!(process.driver_version, gcx::driver_info().unwrap().version);
        let age = SystemTime::now().duration_since(process.since).unwrap();
        assert!(age < Duration::from_secs(600));

        let listed = leases().unwrap();
        let (first, second) = (&listed[0], &listed[1]);
        assert_eq!((first.process, first.id), (process.process, decode.info().unwrap().id));
        assert_eq!((first.pid, first.simulated, first.device), (process.pid, true, 0));
        assert_eq!((first.shared, first.require_workqueues, first.waiting), (false, false, false));
        assert_eq!(first.name, OsStr::new(name));
        assert!(!format!("{:?}", first.name).contains('\u{1b}'));
        assert_eq!((first.sm_count, &first.exclusive_atoms), (Some(32), &vec![0, 1, 2, 3]));
        assert_eq!((second.shared, second.exclusive_atoms.len()), (true, 0));
        assert_eq!((second.sm_count, &second.shared_atoms), (Some(24), &vec![4, 5, 6]));
        assert_eq!((first.atom_count, first.atom_sm_count, first.last_atom_sm_count), (16, 8, 12));
        assert_eq!((first.device_sm_count, first.device_uuid), (132, device.uuid()));
        assert_eq!(first.device_name, OsStr::new(device.name()));

        // The child of a fork can read, and nothing else.
        assert!(holds_in_a_child(|| leases().unwrap().len() == 2 && start(None).is_err()));
        start(None).unwrap(); // the program's name
        assert_ne!(processes().unwrap()[0].name, OsStr::new("serving"));
        let refused = start(Some("a\0b")).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidValue);
        drop(shared);
        stop().unwrap();
        stop().unwrap();
        assert_eq!((processes().unwrap(), leases().unwrap()), (vec![], vec![]));
    });
}

const CONNECTIONS: &str = "CUDA_DEVICE_MAX_CONNECTIONS";

#[test]
fn connections_are_requested_before_the_start() {
    in_process_with(&[(CONNECTIONS, "4")], "connections_are_requested_before_the_start", || {
        let before = queue_info().unwrap();
        assert_eq!((before.connections, before.source), (Some(4), QueueSource::Environment));
        assert!(!before.started && before.certain && !before.too_few);
        // SAFETY: no other thread uses the environment.
        let request = |connections| unsafe { request_connections(connections) };
        assert_eq!(request(u32::MAX).unwrap_err().kind(), ErrorKind::InvalidValue);
        request(16).unwrap();
        assert_eq!(std::env::var(CONNECTIONS).as_deref(), Ok("16"));
        gcx::devices().unwrap();
        assert!(queue_info().unwrap().started);
        assert_eq!(request(32).unwrap_err().kind(), ErrorKind::TooLate);
    });
}

#[test]
fn connections_that_are_no_number_are_none() {
    in_process_with(&[(CONNECTIONS, "many")], "connections_that_are_no_number_are_none", || {
        assert_eq!(queue_info().unwrap().connections, None);
    });
}

#[test]
fn partition_counts_are_refused_after_the_start() {
    in_process_with(&[], "partition_counts_are_refused_after_the_start", || {
        gcx::devices().unwrap();
        let late = gcx::report_partition_counts().unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TooLate, "{late}");
    });
}
