//! The operations of vectors on leases.

use gcx::{Device, Lease, Resize, Result, Sms};

use crate::objects::{Object, Objects};
use crate::operations::texts;
use crate::words::{family, flags, joined, list, number};

/// A count of SMs, `rest`, or `parked`.
fn sms(text: &str) -> Sms {
    match text {
        "rest" => Sms::Rest,
        "parked" => Sms::Parked,
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
