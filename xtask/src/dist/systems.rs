//! The systems that Plimsoll is released for, with their names in each package registry.

/// A system that a binary is built for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct System {
    /// The Rust target triple.
    pub(crate) triple: &'static str,
    /// The platform tag of a Python wheel.
    pub(crate) wheel: &'static str,
    /// Node's `process.platform`.
    pub(crate) os: &'static str,
    /// Node's `process.arch`.
    pub(crate) cpu: &'static str,
    /// npm's name of the C library. Empty on systems that have only one.
    pub(crate) libc: &'static str,
    /// The oldest glibc that the binary has to run on. Empty if it does not use glibc.
    pub(crate) glibc: &'static str,
}

/// Every system, in the order in which documentation lists them.
pub(crate) const SYSTEMS: [System; 7] = [
    System {
        triple: "x86_64-unknown-linux-gnu",
        wheel: "manylinux_2_17_x86_64.manylinux2014_x86_64",
        os: "linux",
        cpu: "x64",
        libc: "glibc",
        glibc: "2.17",
    },
    System {
        triple: "aarch64-unknown-linux-gnu",
        wheel: "manylinux_2_17_aarch64.manylinux2014_aarch64",
        os: "linux",
        cpu: "arm64",
        libc: "glibc",
        glibc: "2.17",
    },
    System {
        triple: "x86_64-unknown-linux-musl",
        wheel: "musllinux_1_2_x86_64",
        os: "linux",
        cpu: "x64",
        libc: "musl",
        glibc: "",
    },
    System {
        triple: "aarch64-unknown-linux-musl",
        wheel: "musllinux_1_2_aarch64",
        os: "linux",
        cpu: "arm64",
        libc: "musl",
        glibc: "",
    },
    System {
        triple: "x86_64-apple-darwin",
        wheel: "macosx_10_12_x86_64",
        os: "darwin",
        cpu: "x64",
        libc: "",
        glibc: "",
    },
    System {
        triple: "aarch64-apple-darwin",
        wheel: "macosx_11_0_arm64",
        os: "darwin",
        cpu: "arm64",
        libc: "",
        glibc: "",
    },
    System {
        triple: "x86_64-pc-windows-msvc",
        wheel: "win_amd64",
        os: "win32",
        cpu: "x64",
        libc: "",
        glibc: "",
    },
];

impl System {
    /// Returns the system with this Rust name, or `None` if there are no releases for it.
    pub(crate) fn of(triple: &str) -> Option<&'static Self> {
        SYSTEMS.iter().find(|system| system.triple == triple)
    }

    /// Returns the name of the npm package with this system's binary.
    ///
    /// `packaging/npm/plimsoll.js` composes the same name at run time.
    pub(crate) fn npm_package(&self) -> String {
        let libc = match self.libc {
            "musl" => "-musl",
            _ => "",
        };
        format!("@plimsoll/{}-{}{libc}", self.os, self.cpu)
    }

    /// Returns the file name of the program.
    pub(crate) fn program(&self) -> &'static str {
        if self.os == "win32" {
            "plimsoll.exe"
        } else {
            "plimsoll"
        }
    }
}
