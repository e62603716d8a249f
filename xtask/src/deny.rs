//! Checks the dependencies: with cargo-deny bans, licences, sources, and advisories if their database
//! is reachable (`deny.toml` contains the rules); with cargo-shear that each of them is used.

use std::path::Path;

use crate::command::Job;
use crate::steps::Outcome;
use crate::tools;

/// Checks bans, licences, sources and advisories.
pub(crate) fn run(root: &Path) -> Outcome {
    tools::DENY.check(root, |deny| {
        Job::new(deny, root)
            .args(["check", "bans", "licenses", "sources"])
            .run()?;
        // Fetching the database fails fast if its host is not reachable.
        let reached = Job::new(deny, root).args(["fetch", "db"]).succeeds();
        if !reached {
            return Ok("advisories skipped: their database could not be fetched".to_owned());
        }
        Job::new(deny, root).args(["check", "advisories"]).run()?;
        Ok(String::new())
    })
}

/// Checks that every dependency is used, by the targets that its table is for.
pub(crate) fn unused(root: &Path) -> Outcome {
    tools::SHEAR.check(root, |shear| {
        let job = Job::new(shear, root).args(["--locked", "--deny-warnings"]);
        job.run().map(|()| String::new())
    })
}
