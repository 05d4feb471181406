//! Reservations: SMs that no other process has. Every test starts a process of its own, with a folder of its
//! own.

mod common;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use gcx::{
    reservations, Cancel, Device, ErrorKind, Family, Lease, LiveReservation, Reservation,
    ReservationBuilder, Resize, Sms,
};

/// The folder that the environment names.
fn folder() -> PathBuf {
    env::var_os("GCX_RESERVATION_DIR").unwrap().into()
}

fn with_folder(test: &str, body: impl FnOnce()) {
    common::with_folder("GCX_RESERVATION_DIR", &[], test, || {
        body();
        assert_eq!(reservations(None).unwrap(), []);
        assert_eq!(fs::read_dir(folder()).unwrap().count(), 0);
    });
}

fn device() -> Device {
    Device::new(0).unwrap()
}

fn reserve(sms: impl Into<Sms>) -> ReservationBuilder<'static> {
    device().reserve().sm_count(sms)
}

/// The kind of the error that it ends with.
fn kind<T: std::fmt::Debug>(of: gcx::Result<T>) -> ErrorKind {
    of.unwrap_err().kind()
}

/// How many SMs the reservations of the test's folder have, ascending.
fn held_counts() -> Vec<Option<u32>> {
    let mut counts: Vec<_> = reservations(None).unwrap().iter().map(|live| live.sm_count).collect();
    counts.sort_unstable();
    counts
}

#[test]
fn nobody_else_has_them() {
    with_folder("nobody_else_has_them", || {
        assert_eq!(reservations(None).unwrap(), []); // before there is a driver
        let one = reserve(24).name("one\u{1b}[2J").acquire().unwrap();
        let info = one.info().unwrap();
        assert_eq!((info.sm_count, info.device_sm_count, info.atoms.len()), (24, 132, 3));
        assert_eq!(
            (info.joined, info.lost, info.inherit, info.simulated),
            (false, false, false, true)
        );
        assert_eq!((info.family, info.device_uuid), (Family::Coscheduled, device().uuid()));
        assert_eq!(info.name, OsStr::new("one\u{1b}[2J"));
        let debug = format!("{one:?}");
        assert!(debug.ends_with(" \"one\\u{1b}[2J\": 24 of 132 SMs)"), "{debug}");

        let two = Reservation::acquire(&device(), Sms::Rest).unwrap();
        assert_eq!(two.sm_count().unwrap(), 108);
        assert!(one.sms().unwrap().is_disjoint(&two.sms().unwrap()).unwrap());
        let refused = reserve(8).acquire().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyAcquired);
        assert!(refused.message().contains("of process "), "{refused}");
        assert_eq!(kind(reserve(140).acquire()), ErrorKind::InvalidResourceConfiguration);

        let live = reservations(None).unwrap();
        assert_eq!(live, reservations(Some(&folder())).unwrap());
        let first = live.iter().find(|live| live.id == info.id).unwrap();
        assert_eq!((first.since, &first.atoms), (info.since, &info.atoms));
        assert_eq!((first.pid, first.waiting, first.simulated), (std::process::id(), false, true));
        assert_eq!((first.sm_count, first.until, first.family), (Some(24), None, info.family));
        assert_eq!((first.atom_count, first.atom_sm_count, first.last_atom_sm_count), (16, 8, 12));
        assert_eq!((first.device_sm_count, first.device_uuid), (132, info.device_uuid));
        assert_eq!((&first.name, &*first.device_name), (&info.name, OsStr::new(device().name())));
        assert!(!first.process_name.is_empty());
        assert_eq!(first.parent, None);
        assert!(SystemTime::now().duration_since(first.since).unwrap() < Duration::from_secs(600));
        assert_eq!(held_counts(), [Some(24), Some(108)]);

        drop(one);
        assert_eq!(held_counts(), [Some(108)]);
        assert_eq!(reserve(48).min_sm_count(16).acquire().unwrap().sm_count().unwrap(), 24);
        let fine = reserve(6).family(Family::Fine);
        drop(two);
        assert_eq!(fine.acquire().unwrap().info().unwrap().family, Family::Fine);
    });
}

#[test]
fn those_that_wait() {
    with_folder("those_that_wait", || {
        let all = Reservation::acquire(&device(), None).unwrap();
        let start = Instant::now();
        let late = reserve(8).timeout(Duration::from_millis(30)).acquire().unwrap_err();
        assert_eq!(late.kind(), ErrorKind::AlreadyAcquired);
        assert!(late.message().contains("timed out after 30 ms"), "{late}");
        assert!(start.elapsed() >= Duration::from_millis(30));
        let cancel = Cancel::new().unwrap();
        std::thread::scope(|scope| {
            let waits = reserve(Sms::Rest).name("waits").timeout(Duration::MAX).cancel(&cancel);
            let given_up = scope.spawn(move || waits.acquire());
            while reservations(None).unwrap().len() != 2 {
                std::thread::yield_now();
            }
            // Later, and not served before it; it says when it gives up.
            let next = scope.spawn(|| reserve(24).timeout(Duration::from_secs(60)).acquire());
            while reservations(None).unwrap().len() != 3 {
                std::thread::yield_now();
            }
            let live = reservations(None).unwrap();
            let waiting = &live[1];
            assert_eq!((waiting.waiting, waiting.sm_count, waiting.until), (true, None, None));
            assert_eq!((&*waiting.name, &waiting.atoms), (OsStr::new("waits"), &vec![]));
            assert_eq!((live[2].waiting, live[2].sm_count), (true, Some(24)));
            assert!(live[2].until.unwrap() > SystemTime::now() + Duration::from_secs(30));
            cancel.signal().unwrap();
            assert_eq!(kind(given_up.join().unwrap()), ErrorKind::NotPermitted);
            drop(all);
            assert_eq!(next.join().unwrap().unwrap().sm_count().unwrap(), 24);
        });
        assert_eq!(kind(reserve(8).cancel(&cancel).acquire()), ErrorKind::NotPermitted);
    });
}

/// This test once more in another process, which joins the reservation. Its output, once it has.
fn joining(token: OsString) -> (Child, String) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["another_process_joins", "--exact", "--nocapture"])
        .env("HELD", token)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let said = lines.map(Result::unwrap).find(|line| line.contains("joined")).unwrap();
    (child, said)
}

#[test]
fn another_process_joins() {
    with_folder("another_process_joins", || {
        if let Some(token) = env::var_os("HELD") {
            let held = Reservation::join(token).unwrap();
            let info = held.info().unwrap();
            assert!(info.joined && !info.inherit);
            let lease = held.lease().acquire().unwrap();
            println!("\njoined {:016x} {} {:?}", info.id, lease.sm_count().unwrap(), info.name);
            std::thread::sleep(Duration::from_secs(60)); // it is killed meanwhile
            std::process::abort();
        }
        let held = reserve(24).name("shared").acquire().unwrap();
        let token = held.token().unwrap();
        assert!(PathBuf::from(&token).starts_with(folder()));
        let (mut child, said) = joining(token.clone());
        let id = held.info().unwrap().id;
        assert_eq!(said, format!("joined {id:016x} 24 \"shared\""));
        drop(held);
        assert_eq!(held_counts(), [Some(24)]); // the other one keeps it
        let again = Reservation::join(&token).unwrap();
        assert_eq!((again.info().unwrap().id, again.sm_count().unwrap()), (id, 24));
        assert_eq!(kind(reserve(120).acquire()), ErrorKind::AlreadyAcquired);
        drop(again);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(reserve(Sms::Rest).acquire().unwrap().sm_count().unwrap(), 132);
        assert_eq!(kind(Reservation::join(&token)), ErrorKind::NotFound);
    });
}

/// What `gcx exec` tells its command about the SMs of this reservation.
fn plan_around(outer: &LiveReservation, token: &OsStr) -> String {
    let uuid: Vec<_> = outer.device_uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let atoms: Vec<_> = outer.atoms.iter().map(u32::to_string).collect();
    format!(
        "gcx-exec-1 driver=/x shim=/x device={} family=coscheduled sms={} of={} atoms={} token={}",
        uuid.concat(),
        outer.sm_count.unwrap(),
        outer.atom_count,
        atoms.join(","),
        token.to_str().unwrap(),
    )
}

/// In the process that `plan_around` is for.
fn take_a_part() {
    // By this path, as a process in a partition opens the driver that is behind its stub.
    let driver = format!("/./.{}", gcx::simulator_path().unwrap());
    // SAFETY: it is the simulated driver.
    unsafe { gcx::open_driver(&driver) }.unwrap();
    let part = reserve(16).name("part").acquire().unwrap();
    let live = reservations(None).unwrap();
    let outer = live.iter().find(|live| live.name == OsStr::new("around")).unwrap();
    let inner = live.iter().find(|live| live.name == OsStr::new("part")).unwrap();
    assert_eq!((outer.parent, inner.parent), (None, Some(outer.id)));
    assert_eq!(inner.id, part.info().unwrap().id);
    assert!(inner.atoms.iter().all(|atom| outer.atoms.contains(atom)));
}

#[test]
fn reservation_inside_another_has_a_parent() {
    if env::var_os("GCX_EXEC_PLAN").is_some() {
        return take_a_part();
    }
    with_folder("reservation_inside_another_has_a_parent", || {
        let outer = reserve(24).name("around").acquire().unwrap();
        let plan = plan_around(&reservations(None).unwrap()[0], &outer.token().unwrap());
        let machine = env::var("GCX_DRIVER").unwrap();
        let done = Command::new(env::current_exe().unwrap())
            .args(["reservation_inside_another_has_a_parent", "--exact", "--nocapture"])
            .env("GCX_EXEC_PLAN", plan)
            .env("GCX_SIM", machine.strip_prefix("sim:").unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr) + String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}");
        assert_eq!(held_counts(), [Some(24)]);
    });
}

#[test]
fn leases_of_a_reservation() {
    with_folder("leases_of_a_reservation", || {
        let held = reserve(32).acquire().unwrap();
        let lease = held.lease().sm_count(16).name("of it").acquire().unwrap();
        assert!(lease.sms().unwrap().is_subset(&held.sms().unwrap()).unwrap());
        let rest = held.lease().acquire().unwrap();
        assert_eq!((lease.sm_count().unwrap(), rest.sm_count().unwrap()), (16, 16));
        gcx::resize(&[(&lease, Sms::Rest), (&rest, Sms::Count(8))], Resize::new()).unwrap();
        assert_eq!((lease.sm_count().unwrap(), rest.sm_count().unwrap()), (24, 8));

        drop((held, rest));
        assert_eq!(held_by(&lease), 24); // the lease keeps it
        lease.resize(32).unwrap();
        assert_eq!(held_by(&lease), 32);
        drop(lease);
        assert_eq!(held_counts(), []);
    });
}

/// How many SMs the lease has, of the only reservation that there is.
fn held_by(lease: &Lease) -> u32 {
    assert_eq!(held_counts(), [Some(32)]);
    assert_eq!(lease.stream().unwrap().sm_ids().unwrap().len(), lease.sm_count().unwrap() as usize);
    lease.sm_count().unwrap()
}

#[test]
fn wrong_words() {
    with_folder("wrong_words", || {
        let builders =
            [reserve(0), reserve(u32::MAX), reserve(8).name("a\0b"), reserve(8).folder("/a\0b")];
        for wrong in builders {
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
