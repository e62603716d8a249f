//! The step that checks the dependency tree with cargo-deny: bans, licences, sources, and
//! advisories where their database can be had. What is allowed stands in `deny.toml`.

use std::path::Path;

use crate::command::Job;
use crate::error::Error;
use crate::steps::Outcome;
use crate::tools;

/// Runs the check. Where no cargo-deny can be had it is skipped, and said so; in CI that is
/// an error, because there nobody would read it.
pub(crate) fn run(root: &Path) -> Outcome {
    let deny = match tools::DENY.find(root) {
        Ok(deny) => deny,
        Err(Error::Missing(why)) if std::env::var_os("CI").is_none() => {
            return Ok(format!("SKIPPED: {why}"));
        }
        Err(error) => return Err(error),
    };
    Job::new(&deny, root)
        .args(["check", "bans", "licenses", "sources"])
        .run()?;
    // Fetching the database fails fast where its host cannot be reached.
    let reached = Job::new(&deny, root).args(["fetch", "db"]).succeeds();
    if !reached {
        return Ok("advisories skipped: their database could not be fetched".to_owned());
    }
    Job::new(&deny, root).args(["check", "advisories"]).run()?;
    Ok(String::new())
}
