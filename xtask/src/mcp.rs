//! `cargo xtask mcp`: runs the tests against the MCP project's own "everything" server, which npm
//! installs into the target directory. Not part of `ci`: it needs Node.js and the network.

use std::path::Path;

use crate::command::Job;
use crate::error::Error;
use crate::tools;

/// The server, at the version that the tests expect.
const PACKAGE: &str = "@modelcontextprotocol/server-everything";
const VERSION: &str = "2026.8.31";
/// The server's script within the package.
const SCRIPT: &str = "dist/index.js";
/// The variable with the script's path for the tests.
const VARIABLE: &str = "PLIMSOLL_TEST_MCP_EVERYTHING";

/// Installs the server if needed, and runs the tests over both transports.
pub(crate) fn run(root: &Path) -> Result<(), Error> {
    let folder = root.join("target/mcp").join(VERSION);
    let script = folder.join("node_modules").join(PACKAGE).join(SCRIPT);
    if !script.is_file() {
        std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        let package = format!("{PACKAGE}@{VERSION}");
        Job::new("npm", &folder)
            .args(["install", "--ignore-scripts", "--no-audit", "--no-fund"])
            .args([package])
            .run()?;
    }
    let nextest = tools::NEXTEST.find(root)?;
    Job::new(nextest, root)
        .args(["nextest", "run", "-p", "plimsoll-mcp", "--test", "mcp"])
        .args(["everything", "--no-capture"])
        .env(VARIABLE, &script)
        .run()
}
