//! Reservations: values, owners, waits and errors. Each test starts a process with a private
//! folder.

mod common;

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use common::{holds_in_a_child, with_folder};
use gcx::{reservations, Cancel, Device, ErrorKind, Family, Reservation, ReservationBuilder, Sms};

fn folder() -> PathBuf {
    env::var_os("GCX_RESERVATION_DIR").unwrap().into()
}

fn device() -> Device {
    Device::new(0).unwrap()
}

fn reserve(sms: impl Into<Sms>) -> ReservationBuilder<'static> {
    device().reserve().sm_count(sms)
}

fn kind<T: std::fmt::Debug>(of: gcx::Result<T>) -> ErrorKind {
    of.unwrap_err().kind()
}

#[test]
fn reservation_values_are_converted() {
    with_folder("reservation_values_are_converted", || {
        assert_eq!(reservations(None).unwrap(), []); // before there is a driver
        let name = "one\u{1b}[2J"; // which would clear a terminal
        let one = reserve(24).name(name).acquire().unwrap();
        let info = one.info().unwrap();
        assert_eq!((info.sm_count, info.device_sm_count, info.atoms.len()), (24, 132, 3));
        assert_eq!((info.joined, info.lost, info.inherit), (false, false, false));
        assert_eq!((info.family, info.device_uuid), (Family::Coscheduled, device().uuid()));
        assert_eq!((info.simulated, info.name.as_os_str()), (true, OsStr::new(name)));
        let debug = format!("{one:?}");
        assert!(debug.ends_with(" \"one\\u{1b}[2J\": 24 of 132 SMs)"), "{debug}");
        assert_eq!(one.sms().unwrap().sm_count(), 24);

        let live = reservations(None).unwrap();
        assert_eq!(live, reservations(Some(&folder())).unwrap());
        let first = &live[0];
        assert_eq!((first.id, first.since, &first.atoms), (info.id, info.since, &info.atoms));
        assert_eq!((first.pid, first.waiting, first.simulated), (std::process::id(), false, true));
        assert_eq!((first.sm_count, first.until, first.family), (Some(24), None, info.family));
        assert_eq!((first.atom_count, first.atom_sm_count, first.last_atom_sm_count), (16, 8, 12));
        assert_eq!((first.device_sm_count, first.device_uuid), (132, info.device_uuid));
        assert_eq!((&first.name, &*first.device_name), (&info.name, OsStr::new(device().name())));
        assert!(!first.process_name.is_empty());
        assert_eq!(first.parent, None);
        assert!(SystemTime::now().duration_since(first.since).unwrap() < Duration::from_secs(600));

        let refused = reserve(132).acquire().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyAcquired);
        assert!(refused.message().contains("of process "), "{refused}");
        drop(one);
        let fine = reserve(6).family(Family::Fine).min_sm_count(2).inherit().folder(folder());
        let two = fine.acquire().unwrap().info().unwrap();
        assert_eq!((two.family, two.inherit), (Family::Fine, true));
    });
}

#[test]
fn reservation_lasts_until_its_last_owner_drops_it() {
    with_folder("reservation_lasts_until_its_last_owner_drops_it", || {
        let count = || reservations(None).unwrap().len();
        let first = Reservation::acquire(&device(), 24).unwrap();
        let token = first.token().unwrap();
        assert!(PathBuf::from(&token).starts_with(folder()));
        let joined = Reservation::join(&token).unwrap();
        assert_eq!(joined.info().unwrap().id, first.info().unwrap().id);
        assert!(holds_in_a_child(|| {
            let again = Reservation::join(&token).unwrap();
            first.info().is_err() && again.info().unwrap().joined
        }));
        let lease = first.lease().sm_count(16).acquire().unwrap();
        assert!(lease.sms().unwrap().is_subset(&first.sms().unwrap()).unwrap());
        drop(first);
        drop(joined);
        assert_eq!(count(), 1); // the lease keeps it
        lease.resize(Sms::Rest).unwrap();
        assert_eq!(lease.sm_count().unwrap(), 24);
        drop(lease);
        assert_eq!(count(), 0);
        assert_eq!(kind(Reservation::join(&token)), ErrorKind::NotFound);
    });
}

#[test]
fn cancel_and_timeout_end_a_wait() {
    with_folder("cancel_and_timeout_end_a_wait", || {
        let _all = Reservation::acquire(&device(), None).unwrap();
        let late = reserve(8).timeout(Duration::from_micros(1)).acquire().unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Timeout);
        assert!(late.message().contains("timed out after 1 ms"), "{late}");
        let cancel = Cancel::new().unwrap();
        std::thread::scope(|scope| {
            let waits = reserve(Sms::Rest).name("waits").timeout(Duration::MAX).cancel(&cancel);
            let waits = scope.spawn(move || waits.acquire());
            while reservations(None).unwrap().len() != 2 {
                std::thread::yield_now();
            }
            let later = reserve(24).timeout(Duration::from_secs(60)).cancel(&cancel);
            let later = scope.spawn(move || later.acquire());
            while reservations(None).unwrap().len() != 3 {
                std::thread::yield_now();
            }
            let live = reservations(None).unwrap();
            let (first, second) = (&live[1], &live[2]);
            assert_eq!((first.waiting, first.sm_count, first.until), (true, None, None));
            assert_eq!((&*first.name, first.atoms.len()), (OsStr::new("waits"), 0));
            assert_eq!((second.waiting, second.sm_count), (true, Some(24)));
            assert!(second.until.unwrap() > SystemTime::now() + Duration::from_secs(30));
            cancel.signal().unwrap();
            for waiting in [waits, later] {
                assert_eq!(kind(waiting.join().unwrap()), ErrorKind::Cancelled);
            }
        });
        assert_eq!(kind(reserve(8).cancel(&cancel).acquire()), ErrorKind::Cancelled);
    });
}

#[test]
fn invalid_values_are_refused() {
    with_folder("invalid_values_are_refused", || {
        let named = reserve(8).name("a\0b");
        let in_folder = reserve(8).folder("/a\0b");
        for wrong in [reserve(0), reserve(u32::MAX), reserve(8).min_sm_count(0), named, in_folder] {
            assert_eq!(kind(wrong.acquire()), ErrorKind::InvalidValue, "{wrong:?}");
        }
        for token in ["x", "a\0b"] {
            assert_eq!(kind(Reservation::join(token)), ErrorKind::InvalidValue, "{token:?}");
        }
        for path in ["tmp", "/a\0b"] {
            assert_eq!(
                kind(reservations(Some(path.as_ref()))),
                ErrorKind::InvalidValue,
                "{path:?}"
            );
        }
    });
}
