//! What other libraries of the process are told of partitions' SMs. Every test starts a process of its
//! own, for what is done is done for good.

mod common;

use std::os::raw::c_int;
use std::path::Path;

use common::{alone_with, function_of};
use gcx::{report_partition_counts, reports_partition_counts, Context, Device};

/// Runs a test in a process whose loader finds the simulated driver as libcuda.so.1.
fn with_driver(test: &str, body: impl FnOnce()) {
    let driver = std::env::var("GCX_DRIVER").unwrap_or_else(|_| "sim:h100@13.0".to_owned());
    let simulator = gcx::simulator_path().unwrap();
    let libcuda = Path::new(&simulator).with_file_name("libcuda");
    let libraries = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let libraries = format!("{}:{libraries}", libcuda.display());
    alone_with(&[("GCX_DRIVER", &driver), ("LD_LIBRARY_PATH", &libraries)], test, body);
}

/// The SMs of device 0 as any other library of the process is told them.
fn told() -> c_int {
    const MULTIPROCESSOR_COUNT: c_int = 16;
    let mut count = -1;
    // SAFETY: the type is that of cuda.h.
    let get: extern "C" fn(*mut c_int, c_int, c_int) -> c_int =
        unsafe { function_of("libcuda.so.1", "cuDeviceGetAttribute") };
    assert_eq!(get(&mut count, MULTIPROCESSOR_COUNT, 0), 0);
    count
}

#[test]
fn those_of_the_current_partition() {
    with_driver("those_of_the_current_partition", || {
        assert!(!reports_partition_counts().unwrap());
        report_partition_counts().unwrap();
        report_partition_counts().unwrap(); // once is enough
        assert!(reports_partition_counts().unwrap());
        let device = Device::new(0).unwrap();
        let contexts: Vec<Context> = device
            .partition([24, 64])
            .unwrap()
            .iter()
            .map(|part| Context::new(part.sms()).unwrap())
            .collect();
        assert_eq!(told(), 132);
        let inner = contexts[0].with_current(|| {
            let other = std::thread::spawn(told).join().unwrap(); // of a thread, as what is current
            (told(), contexts[1].with_current(told).unwrap(), told(), other)
        });
        assert_eq!(inner.unwrap(), (24, 64, 24, 132));
        assert_eq!((told(), device.sm_count()), (132, 132));
    });
}
