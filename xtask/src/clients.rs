//! `cargo xtask clients`: records the requests of real clients to a strict mock server;
//! `crates/foreign/tests/foreign/clients.rs` checks them.
//!
//! Needs Python, Node.js and, for the newest clients, npm's registry. Not part of `ci`: the clients
//! are large, and change every week.

use std::path::Path;

use crate::command::Job;
use crate::error::Error;
use crate::tools;

/// The clients, as npm packages. Always the newest versions, because users run these.
const PACKAGES: [&str; 4] = [
    "@anthropic-ai/claude-code",
    "@openai/codex",
    "opencode-ai",
    "@mariozechner/pi-coding-agent",
];

/// Installs the clients, records their requests (only of clients with `part` in their names, if
/// given) and checks all recorded requests.
pub(crate) fn run(root: &Path, part: Option<&str>) -> Result<(), Error> {
    let folder = tools::target(root).join("clients");
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    Job::new("npm", &folder)
        .args(["install", "--no-audit", "--no-fund", "--prefix", "."])
        .args(PACKAGES.map(|package| format!("{package}@latest")))
        .run()?;
    Job::cargo(root)
        .args(["build", "--package", "plimsoll-mock"])
        .run()?;
    let mock = format!("debug/plimsoll-mock{}", std::env::consts::EXE_SUFFIX);
    Job::new(tools::python(root)?, &root.join("clients"))
        .args(["-B", "record.py"])
        .args([tools::target(root).join(mock)])
        .args([folder.join("node_modules"), folder.join("requests")])
        .args(part)
        .run()?;
    let nextest = tools::NEXTEST.find(root)?;
    Job::new(nextest, root)
        .args(["nextest", "run", "-p", "plimsoll-foreign"])
        .args(["clients::", "--no-capture"])
        .run()
}
