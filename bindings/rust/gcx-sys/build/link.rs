//! Links the C library that is installed, or builds it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{bundled, fail, required, variable};

/// Links the library in `GCX_LIB_DIR`, or the one that pkg-config finds, or the one that is built
/// here.
pub fn library(include: &Path) {
    println!("cargo:rerun-if-env-changed=GCX_LIB_DIR");
    if let Some(folder) = env::var_os("GCX_LIB_DIR").map(PathBuf::from) {
        for name in ["libgcx.so", "libgcx.a"] {
            println!("cargo:rerun-if-changed={}", folder.join(name).display());
        }
        if folder.join("libgcx.so").is_file() {
            println!("cargo:rustc-link-search=native={}", folder.display());
            println!("cargo:rustc-link-lib=dylib=gcx");
        } else if folder.join("libgcx.a").is_file() {
            statically(&folder);
        } else {
            let folder = folder.display();
            fail(&format!("GCX_LIB_DIR: there is no libgcx.so and no libgcx.a in {folder}"));
        }
        return;
    }
    let reason = match installed() {
        Ok(()) => return,
        Err(reason) => reason,
    };
    if cfg!(feature = "bundled") {
        return bundled::library(include);
    }
    fail(&format!(
        "no gcx library to link:\n  pkg-config: {reason}\n  bundled: the feature `bundled` is off\n\
         Install gcx, set GCX_LIB_DIR to the folder of libgcx.so, or use the feature `bundled`, \
         which builds it, or `dlopen`, which links nothing."
    ));
}

/// Links libgcx.a in a folder, the C++ runtime, and the parts of libc that it needs.
pub fn statically(folder: &Path) {
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=static=gcx");
    let runtime = variable("CXXSTDLIB").unwrap_or_else(|| "stdc++".to_owned());
    for library in [runtime.as_str(), "m", "dl", "pthread"] {
        println!("cargo:rustc-link-lib=dylib={library}");
    }
}

/// Links the library that pkg-config finds, or returns why there is none.
fn installed() -> Result<(), String> {
    if !cfg!(feature = "pkg-config") {
        return Err("the feature `pkg-config` is off".to_owned());
    }
    // Newer versions have the same ABI and declare all that older ones do. The number lacks "-dev",
    // which pkg-config sorts after the release.
    let least = concat!(
        env!("CARGO_PKG_VERSION_MAJOR"),
        ".",
        env!("CARGO_PKG_VERSION_MINOR"),
        ".",
        env!("CARGO_PKG_VERSION_PATCH"),
    );
    for word in words(&asked_pkg_config(&format!("gcx >= {least}"))?) {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={library}");
        }
    }
    Ok(())
}

/// Returns what pkg-config says to link for a package. compiler.rs says why this doesn't use the
/// crate `pkg-config`.
fn asked_pkg_config(package: &str) -> Result<String, String> {
    for name in ["PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let chosen = variable("PKG_CONFIG");
    let cross = required("TARGET") != required("HOST");
    if cross && chosen.is_none() && variable("PKG_CONFIG_ALLOW_CROSS").is_none() {
        return Err("it may only know this machine's libraries; set PKG_CONFIG to one for the \
                    target, or PKG_CONFIG_ALLOW_CROSS=1 to use it"
            .to_owned());
    }
    let program = chosen.unwrap_or_else(|| "pkg-config".to_owned());
    let mut command = Command::new(&program);
    match command.args(["--print-errors", "--libs", package]).output() {
        Ok(done) if done.status.success() => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
            Err(line.to_owned())
        }
        Err(error) => Err(format!("{program} can't be run: {error}")),
    }
}

/// Splits a line into words; a backslash keeps the next character.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let last = words.last_mut().expect("there is one at least");
        match character {
            '\\' => last.extend(characters.next()),
            _ if character.is_whitespace() => words.push(String::new()),
            _ => last.push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
