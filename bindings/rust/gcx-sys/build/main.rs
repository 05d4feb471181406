//! Builds gcx-sys: generates its Rust code, and links the C library or builds it. README.md says
//! what is tried, and in which order.

mod bundled;
mod compiler;
mod dlopen;
#[cfg(feature = "bindgen")]
mod generate;
mod link;

use std::path::{Path, PathBuf};
use std::{env, fs, process};

const KEPT: &str = "src/generated/bindings.rs";

fn main() {
    for file in ["build", KEPT, "vendor/include"] {
        println!("cargo:rerun-if-changed={file}");
    }
    let include = folder().join("vendor").join("include");
    println!("cargo:include={}", include.display());
    #[cfg(feature = "bindgen")]
    let bindings = generate::bindings(&include);
    #[cfg(not(feature = "bindgen"))]
    let bindings =
        fs::read_to_string(KEPT).expect("src/generated/bindings.rs is part of the package");
    write("bindings.rs", &bindings);
    if cfg!(feature = "dlopen") {
        write("dlopen.rs", &dlopen::functions(&bindings));
    } else if env::var_os("DOCS_RS").is_none() {
        link::library(&include);
    }
}

/// Ends the build with a message.
fn fail(message: &str) -> ! {
    eprintln!("gcx-sys: {message}");
    process::exit(1)
}

/// Returns a variable of the build's environment, for the target or for all:
/// `CXX_aarch64_unknown_linux_gnu`, `TARGET_CXX` (`HOST_CXX` where both are the same), `CXX`.
fn variable(name: &str) -> Option<String> {
    let target = required("TARGET");
    let kind = if target == required("HOST") { "HOST" } else { "TARGET" };
    let names = [
        format!("{name}_{target}"),
        format!("{name}_{}", target.replace('-', "_")),
        format!("{kind}_{name}"),
        name.to_owned(),
    ];
    for name in &names {
        println!("cargo:rerun-if-env-changed={name}");
    }
    names.iter().find_map(|name| env::var(name).ok())
}

/// Returns a variable that Cargo sets.
fn required(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| fail(&format!("{name}: {error}; Cargo sets it")))
}

/// Returns the folder of the package.
fn folder() -> PathBuf {
    PathBuf::from(required("CARGO_MANIFEST_DIR"))
}

fn write(name: &str, text: &str) {
    let file = Path::new(&required("OUT_DIR")).join(name);
    fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}
