//! The scenario that docs/reference/languages.md shows in each language: 108 and 24 SMs, verified to be disjoint.
//!
//!     GCX_DRIVER=sim:h100@13.0 cargo run --example scenario

use std::process::ExitCode;

fn scenario() -> Result<(), Box<dyn std::error::Error>> {
    let device = gcx::Device::new(0)?;
    // A part's stream().native() is the CUstream for cudarc and other CUDA code.
    let parts = device.partition([108, 24])?;
    let proof = gcx::verify(&parts)?; // a kernel notes where it runs
    for (i, group) in proof.groups().iter().enumerate() {
        let sms: Vec<String> = group.seen.iter().map(u32::to_string).collect();
        println!("partition {i} runs on {} SMs: {}", sms.len(), sms.join(" "));
    }
    if !proof.is_ok() {
        return Err(proof.to_string().into());
    }
    println!("no SM is in both");

    match device.partition([140]) {
        Err(error) if error.kind() == gcx::ErrorKind::InvalidResourceConfiguration => {
            println!("140 SMs: {error}");
        }
        Err(other) => return Err(other.into()),
        Ok(_) => return Err("140 SMs were given".into()),
    }
    Ok(()) // contexts and streams are given back as their owners go
}

fn main() -> ExitCode {
    match scenario() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
