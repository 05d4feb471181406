//! Finds the C library to link, or has it built.

use std::env;
use std::path::{Path, PathBuf};

use crate::fail;

/// Tells cargo what to link: the library in `GCX_LIB_DIR`, else the one that pkg-config knows, else
/// the one that is built here.
pub fn library(include: &Path) {
    println!("cargo:rerun-if-env-changed=GCX_LIB_DIR");
    if let Some(folder) = env::var_os("GCX_LIB_DIR").map(PathBuf::from) {
        if !["libgcx.so", "libgcx.a"].iter().any(|name| folder.join(name).is_file()) {
            let folder = folder.display();
            fail(&format!("GCX_LIB_DIR: there is no libgcx.so and no libgcx.a in {folder}"));
        }
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=gcx");
        return;
    }
    let mut tried = Vec::new();
    if installed(&mut tried) || built(include, &mut tried) {
        return;
    }
    fail(&format!(
        "no gcx library to link:\n  {}\nInstall gcx, set GCX_LIB_DIR to the folder of libgcx.so, or \
         use the feature `bundled`, which builds it, or `dlopen`, which links nothing.",
        tried.join("\n  ")
    ));
}

#[cfg(feature = "pkg-config")]
fn installed(tried: &mut Vec<String>) -> bool {
    // Versions from 0.2 on have the ABI of libgcx.so.1, and newer ones declare all that older ones do.
    // Without -dev, which pkg-config takes for more than nothing.
    let least = concat!(
        env!("CARGO_PKG_VERSION_MAJOR"),
        ".",
        env!("CARGO_PKG_VERSION_MINOR"),
        ".",
        env!("CARGO_PKG_VERSION_PATCH"),
    );
    match pkg_config::Config::new().atleast_version(least).probe("gcx") {
        Ok(_) => true,
        Err(error) => {
            let said = error.to_string();
            let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("failed");
            tried.push(format!("pkg-config: {line}"));
            false
        }
    }
}

#[cfg(not(feature = "pkg-config"))]
fn installed(tried: &mut Vec<String>) -> bool {
    tried.push("pkg-config: the feature `pkg-config` is off".to_owned());
    false
}

#[cfg(feature = "bundled")]
fn built(include: &Path, _tried: &mut Vec<String>) -> bool {
    crate::bundled::library(include);
    true
}

#[cfg(not(feature = "bundled"))]
fn built(_include: &Path, tried: &mut Vec<String>) -> bool {
    tried.push("building it: the feature `bundled` is off".to_owned());
    false
}
