//! Checks the dependency tree with cargo-deny: bans, licences, sources, and advisories if their
//! database is reachable. `deny.toml` contains the rules.

use std::path::Path;

use crate::command::Job;
use crate::error::Error;
use crate::steps::Outcome;
use crate::tools;

/// Runs the check. If cargo-deny is not available, the check is skipped with a note; in CI that is
/// an error, because nobody would read the note.
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
    // Fetching the database fails fast if its host is not reachable.
    let reached = Job::new(&deny, root).args(["fetch", "db"]).succeeds();
    if !reached {
        return Ok("advisories skipped: their database could not be fetched".to_owned());
    }
    Job::new(&deny, root).args(["check", "advisories"]).run()?;
    Ok(String::new())
}
