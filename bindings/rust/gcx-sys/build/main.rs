//! Builds gcx-sys: makes its Rust code, and links the C library or builds it. What is tried, and
//! in which order, is in README.md.

#[cfg(feature = "bindgen")]
mod anew;
#[cfg(feature = "bundled")]
mod bundled;
mod link;
mod loaded;

use std::path::{Path, PathBuf};
use std::{env, fs, process};

const KEPT: &str = "src/bindings.rs";

fn main() {
    for file in ["build", KEPT, "vendor/include"] {
        println!("cargo:rerun-if-changed={file}");
    }
    let include = folder().join("vendor").join("include");
    println!("cargo:include={}", include.display());
    #[cfg(feature = "bindgen")]
    let bindings = anew::bindings(&include);
    #[cfg(not(feature = "bindgen"))]
    let bindings = fs::read_to_string(KEPT).expect("src/bindings.rs is part of the package");
    write("bindings.rs", &bindings);
    if cfg!(feature = "dlopen") {
        write("loaded.rs", &loaded::functions(&bindings));
    } else if env::var_os("DOCS_RS").is_none() {
        link::library(&include);
    }
}

/// Ends the build with a message for the person who started it.
#[allow(dead_code)] // With `dlopen` there is little to fail.
fn fail(message: &str) -> ! {
    eprintln!("gcx-sys: {message}");
    process::exit(1)
}

/// The folder of the package.
fn folder() -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"))
}

fn write(name: &str, text: &str) {
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let file = Path::new(&out).join(name);
    fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}
