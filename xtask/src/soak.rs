//! `cargo xtask soak`: runs the property tests over random histories, in release mode and with many
//! more cases than in `ci`. Its figures are for BENCHMARKS.md.

use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::command::Job;
use crate::error::Error;
use crate::tools;

/// Number of cases per property. Other runs use the number in `.cargo/config.toml`.
const CASES: &str = "10000";

/// A filter for the property tests: those with `histories` or `properties` in their names or in the
/// names of their modules.
const PROPERTIES: &str = "test(histories) + test(properties)";

/// Runs the property tests, or every test whose name contains `filter`.
pub(crate) fn run(root: &Path, filter: Option<&str>) -> Result<(), Error> {
    let chosen = match filter {
        Some(part) => vec![part],
        None => vec!["-E", PROPERTIES],
    };
    let nextest = tools::NEXTEST.find(root)?;
    let start = Instant::now();
    Job::new(nextest, root)
        .args(["nextest", "run", "--workspace", "--release"])
        .args(["--profile", "soak"])
        .args(chosen)
        .env("PROPTEST_CASES", CASES)
        .env("PROPTEST_RNG_SEED", seed()?)
        .run()?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{CASES} cases of each property, {seconds:.0} s with the build");
    Ok(())
}

/// Returns a seed that differs on each run. It is printed, so that a failure can be reproduced.
fn seed() -> Result<String, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_err(|error| Error::Missing(format!("the clock is wrong: {error}")))?;
    Ok(now.as_secs().to_string())
}
