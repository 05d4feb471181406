//! Builds the C++ of the library, which is part of the package, into a static library.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::fail;

/// The folders of src/ that make the library; the others are the simulated driver and the command.
const FOLDERS: [&str; 5] = ["base", "driver", "core", "probe", "api"];

/// What the library has of exec/, whose other files are those of `gcx exec`.
const OF_EXEC: [&str; 2] = ["counting.cpp", "facade.cpp"];

const SOURCES_OF_UNIT: usize = 12;

/// Builds libgcx.a and has it linked. It needs a compiler for C++20 and cuda.h; nothing of CUDA is
/// linked, since gcx opens the driver itself.
pub fn library(include: &Path) {
    let source = crate::folder().join("vendor").join("src");
    println!("cargo:rerun-if-changed=vendor/src");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++20")
        .include(include)
        .include(&source)
        .include(cuda_include())
        .flag("-fvisibility=hidden")
        .flag_if_supported("-Wno-missing-field-initializers")
        // GCC 12 sees overlaps in std::string's own code that aren't there (GCC bug 105651).
        .flag_if_supported("-Wno-restrict")
        .files(units(&source));
    build.compile("gcx");
    println!("cargo:rustc-link-lib=dylib=dl");
    println!("cargo:rustc-link-lib=dylib=pthread");
}

/// Files that include some sources each: most of a compiler's time goes into their headers.
fn units(source: &Path) -> Vec<PathBuf> {
    let mut sources: Vec<PathBuf> =
        FOLDERS.iter().flat_map(|folder| sources(&source.join(folder))).collect();
    sources.extend(OF_EXEC.iter().map(|file| source.join("exec").join(file)));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let unit = |(number, sources): (usize, &[PathBuf])| {
        let path = out.join(format!("unit{number}.cpp"));
        let lines = sources.iter().map(|source| format!("#include \"{}\"\n", source.display()));
        if let Err(error) = fs::write(&path, lines.collect::<String>()) {
            fail(&format!("{}: {error}", path.display()));
        }
        path
    };
    sources.chunks(SOURCES_OF_UNIT).enumerate().map(unit).collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|error| {
            let folder = folder.display();
            fail(&format!("{folder}: {error}; the C++ sources are part of the package"))
        })
        .map(|entry| entry.expect("a folder can be read").path())
        .filter(|path| path.extension().map_or(false, |extension| extension == "cpp"))
        .collect();
    found.sort();
    found
}

/// The folder of cuda.h, looked for where the library's own build looks for it.
fn cuda_include() -> PathBuf {
    let mut looked = Vec::new();
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
        if let Some(toolkit) = env::var_os(name) {
            looked.push(Path::new(&toolkit).join("include"));
        }
    }
    looked.push(PathBuf::from("/usr/local/cuda/include"));
    looked.push(PathBuf::from("/usr/include"));
    println!("cargo:rerun-if-env-changed=VIRTUAL_ENV");
    if let Some(environment) = env::var_os("VIRTUAL_ENV") {
        looked.extend(python_package(Path::new(&environment)));
    }
    match looked.iter().find(|folder| folder.join("cuda.h").is_file()) {
        Some(folder) => folder.clone(),
        None => fail(&format!(
            "no cuda.h found, which building gcx needs; looked in {looked:?}. Set CUDA_HOME to a CUDA \
             Toolkit of 12.4 or newer, or install the Python package nvidia-cuda-runtime into an \
             active virtual environment"
        )),
    }
}

/// Where the Python package nvidia-cuda-runtime keeps the headers in a virtual environment: in
/// nvidia/cu13/include, before CUDA 13 in nvidia/cuda_runtime/include.
fn python_package(environment: &Path) -> Vec<PathBuf> {
    let folders = |parent: PathBuf| {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut found: Vec<PathBuf> = folders(environment.join("lib"))
        .into_iter()
        .flat_map(|python| folders(python.join("site-packages").join("nvidia")))
        .map(|package| package.join("include"))
        .collect();
    found.sort();
    found.reverse();
    found
}
