//! The operations of vectors on leases.

use gcx::{Device, Error, Lease, Resize, Result, Sms};

use crate::objects::{Object, Objects};
use crate::operations::texts;
use crate::words::{family, flags, joined, list, number};

/// A count of SMs, or `rest`.
fn sms(text: &str) -> Sms {
    match text {
        "rest" => Sms::Rest,
        count => Sms::Count(number(count)),
    }
}

/// A list of LEASE/COUNT.
fn sizes<'a>(objects: &'a Objects, text: &str) -> Vec<(&'a Lease, Sms)> {
    let split = |item: &str| {
        let (name, count) = item.split_once('/').expect("a size is LEASE/COUNT");
        (objects.lease(name), sms(count))
    };
    list(text).into_iter().map(split).collect()
}

fn resize_of(text: &str) -> Resize {
    flags(text).iter().fold(Resize::new(), |how, word| match *word {
        "at-once" => how.deferred(),
        _ => panic!("{word:?} is no flag of a change"),
    })
}

pub fn of_leases(objects: &mut Objects, operation: &str, inputs: &[&str]) -> Result<Vec<String>> {
    Ok(match operation {
        "lease" => {
            let lease = acquired(inputs)?;
            let sm_count = lease.sm_count()?;
            objects.add(inputs[6], Object::Lease(lease));
            texts([sm_count])
        }
        "resize" => {
            let sizes = sizes(objects, inputs[0]);
            gcx::resize(&sizes, resize_of(inputs[1]))?;
            let now = sizes.iter().map(|(lease, _)| lease.sm_count());
            vec![joined(now.collect::<Result<Vec<_>>>()?)]
        }
        "prepare" => {
            gcx::prepare(&sizes(objects, inputs[0]))?;
            Vec::new()
        }
        "hand-over" if inputs[0] == inputs[1] => return Err(to_itself(objects.lease(inputs[0]))),
        "hand-over" => {
            let from = match objects.take(inputs[0]) {
                Object::Lease(lease) => lease,
                _ => panic!("{} is no lease", inputs[0]),
            };
            let to = objects.lease(inputs[1]);
            let done = from.hand_over_with(to, resize_of(inputs[2]));
            let sm_count = to.sm_count();
            match done {
                Ok(()) => texts([sm_count?]),
                Err(refused) => {
                    objects.add(inputs[0], Object::Lease(refused.lease));
                    return Err(refused.error);
                }
            }
        }
        "held" => {
            let held = objects.lease(inputs[0]).sms()?;
            objects.add(inputs[1], Object::Sms(held));
            texts([held.sm_count()])
        }
        "alone" => texts([objects.lease(inputs[0]).info()?.exclusive_sm_count]),
        _ => {
            let live = match inputs[0] {
                "-1" => gcx::leases()?,
                device => Device::new(number(device))?.leases()?,
            };
            vec![joined(live.iter().map(|live| {
                let (sms, flags) = (live.sm_count.unwrap_or(0), u32::from(live.shared));
                format!("{sms}/{}/{flags}", live.stream_count)
            }))]
        }
    })
}

/// Returns the error of a lease that is handed over to itself, which Rust's types forbid: C reports
/// the one of a resize with a lease listed twice.
fn to_itself(lease: &Lease) -> Error {
    // SAFETY: the handle is alive; it is refused, so that it stays so.
    let result = unsafe { gcx::sys::gcx_lease_hand_over(lease.as_raw(), lease.as_raw(), 0) };
    let error = gcx::resize(&[(lease, Sms::Rest); 2], Resize::new()).unwrap_err();
    assert_eq!(result.0, error.result());
    error
}

fn acquired(inputs: &[&str]) -> Result<Lease> {
    let mut builder = Device::new(number(inputs[0]))?.lease().sm_count(sms(inputs[1]));
    if flags(inputs[2]).contains(&"shared") {
        builder = builder.shared();
    }
    if inputs[3] != "none" {
        builder = builder.family(family(inputs[3]));
    }
    // 0 is the builder's default.
    match number(inputs[4]) {
        0 => {}
        least => builder = builder.min_sm_count(least),
    }
    builder.exclusive_sm_count(number(inputs[5])).name(inputs[6]).acquire()
}
