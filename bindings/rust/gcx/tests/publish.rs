//! Leases that other processes of the user see.

mod common;

use std::ffi::OsStr;
use std::time::{Duration, SystemTime};

use common::holds_in_a_child;
use gcx::publish::{leases, processes, start, stop};
use gcx::{Device, ErrorKind};

/// Runs a test in a process whose folder of published leases nobody else uses.
fn with_folder(test: &str, body: impl FnOnce()) {
    common::with_folder("GCX_RESERVATION_DIR", &[("GCX_PUBLISH", "")], test, body);
}

#[test]
fn seen_by_others() {
    with_folder("seen_by_others", || {
        assert_eq!((processes().unwrap(), leases().unwrap()), (vec![], vec![]));
        stop().unwrap(); // nothing is published
        let device = Device::new(0).unwrap();
        let decode = device.lease().sm_count(32).name("d\u{e9}code\u{1b}[2J").acquire().unwrap();
        start(Some("serving")).unwrap();
        let shared = device.lease().sm_count(24).shared().acquire().unwrap();
        decode.resize(40).unwrap();

        let told = processes().unwrap();
        assert_eq!(told.len(), 1);
        let own = &told[0];
        assert_eq!(
            (own.pid, own.simulated, own.name.as_os_str()),
            (std::process::id(), true, OsStr::new("serving"))
        );
        assert_eq!((own.device_count, own.lease_count, own.unlisted_count), (1, 2, 0));
        assert_eq!(own.driver_version, gcx::driver_info().unwrap().version);
        let age = SystemTime::now().duration_since(own.since).unwrap();
        assert!(age < Duration::from_secs(600));

        let told = leases().unwrap();
        assert_eq!(told.len(), 2);
        let (first, second) = (&told[0], &told[1]);
        assert_eq!((first.process, first.id), (own.process, decode.info().unwrap().id));
        assert_eq!((first.sm_count, first.exclusive_sm_count, first.changes), (Some(40), 40, 1));
        assert_eq!((first.pid, first.simulated, first.device), (own.pid, true, 0));
        assert_eq!((first.shared, first.require_workqueues, first.waiting), (false, false, false));
        // What would clear a terminal is told as it is, and escaped where it is shown.
        assert_eq!(first.name, OsStr::new("d\u{e9}code\u{1b}[2J"));
        assert!(!format!("{:?}", first.name).contains('\u{1b}'));
        assert_eq!(first.exclusive_atoms, [0, 1, 2, 3, 7]); // around the shared ones
        assert_eq!((second.shared, &second.exclusive_atoms), (true, &vec![]));
        assert_eq!((second.sm_count, &second.shared_atoms), (Some(24), &vec![4, 5, 6]));
        assert_eq!((first.atom_count, first.atom_sm_count, first.last_atom_sm_count), (16, 8, 12));
        assert_eq!((first.device_sm_count, first.device_uuid), (132, device.uuid()));
        assert_eq!(
            (&*first.process_name, &*first.device_name),
            (OsStr::new("serving"), OsStr::new(device.name()))
        );

        // Another process sees them: the child of a fork can use nothing else of gcx.
        assert!(holds_in_a_child(|| leases().unwrap().len() == 2 && start(None).is_err()));

        start(None).unwrap(); // the program's name
        assert_ne!(processes().unwrap()[0].name, OsStr::new("serving"));
        drop(shared);
        assert_eq!(leases().unwrap().len(), 1);
        stop().unwrap();
        stop().unwrap();
        assert_eq!((processes().unwrap(), leases().unwrap()), (vec![], vec![]));
    });
}

#[test]
fn wrong_names() {
    with_folder("wrong_names", || {
        for name in ["a\0b".to_owned(), "x".repeat(64)] {
            let refused = start(Some(&name)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidValue, "{refused}");
        }
        assert_eq!(processes().unwrap(), vec![]);
        start(Some(&"x".repeat(63))).unwrap();
        assert_eq!(processes().unwrap()[0].name.len(), 63);
    });
}
