//! What the crate costs above the C API: the same calls through both, by turns, as the ratio of the
//! shortest times. The raw calls are those of `gcx-sys`, which are C's own.
//!
//!     GCX_DRIVER=sim:h100@13.0 cargo run --release --bin overhead [MOST]
//!
//! With a number it fails if a ratio is above that.

use std::process::ExitCode;
use std::ptr;
use std::time::{Duration, Instant};

use gcx::{sys, Context, Device, Result, SmResource};

const BATCHES: usize = 4000;

fn main() -> Result<ExitCode> {
    let most: Option<f64> =
        std::env::args().nth(1).map(|text| text.parse().expect("a number: the most admitted"));
    let sms = Device::new(0)?.sms()?;
    let ([a, b], _) = sms.split_array([24, 32])?;
    let _kept = Context::new(&a)?.stream()?;

    let overlap = measured(
        "overlap of two resources, without the driver",
        500,
        || raw_overlap(a.as_raw(), b.as_raw()),
        || a.overlap(&b).expect("two resources of a device"),
    );
    let round = measured(
        "a kept context and its stream, made and given back",
        50,
        || raw_round(&b),
        || safe_round(&b),
    );
    let good = most.map_or(true, |most| overlap <= most && round <= most);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs both by turns, prints the shortest time of a call, and gives the ratio.
fn measured(what: &str, calls: u32, raw: impl Fn() -> u32, safe: impl Fn() -> u32) -> f64 {
    let (mut of_raw, mut of_safe) = (Duration::MAX, Duration::MAX);
    for turn in 0..BATCHES {
        // Each goes first as often as the other.
        if turn % 2 == 0 {
            of_raw = of_raw.min(batch(calls, &raw));
            of_safe = of_safe.min(batch(calls, &safe));
        } else {
            of_safe = of_safe.min(batch(calls, &safe));
            of_raw = of_raw.min(batch(calls, &raw));
        }
    }
    let each = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(calls);
    let ratio = of_safe.as_secs_f64() / of_raw.as_secs_f64();
    println!("{what}: C {:.1} ns, Rust {:.1} ns, ratio {ratio:.3}", each(of_raw), each(of_safe));
    ratio
}

/// Generic, so that the call is compiled into the loop as it is into a program.
fn batch(calls: u32, call: &impl Fn() -> u32) -> Duration {
    let begin = Instant::now();
    let mut sum = 0u32;
    for _ in 0..calls {
        sum = sum.wrapping_add(call());
    }
    let took = begin.elapsed();
    // SAFETY: it is a variable. What is read so has to have been computed.
    unsafe { ptr::read_volatile(&sum) };
    took
}

fn raw_overlap(a: &sys::gcx_resource, b: &sys::gcx_resource) -> u32 {
    let mut count = 0;
    // SAFETY: two values are read, and a number is written.
    let result = unsafe { sys::gcx_resource_get_overlap(a, b, &mut count) };
    assert_eq!(result, sys::GCX_SUCCESS);
    count
}

fn raw_round(sms: &SmResource) -> u32 {
    let (mut context, mut stream) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: one value is read; the handles are destroyed once.
    unsafe {
        let made = sys::gcx_context_create(sms.as_raw(), 1, ptr::null(), &mut context);
        assert_eq!(made, sys::GCX_SUCCESS);
        let made = sys::gcx_stream_create(context, ptr::null(), &mut stream);
        assert_eq!(made, sys::GCX_SUCCESS);
        assert_eq!(sys::gcx_stream_destroy(stream), sys::GCX_SUCCESS);
        assert_eq!(sys::gcx_context_destroy(context), sys::GCX_SUCCESS);
    }
    0
}

fn safe_round(sms: &SmResource) -> u32 {
    let stream = Context::new(sms).and_then(|context| context.stream());
    drop(stream.expect("the SMs are a device's"));
    0
}
