//! [`run_id`]: identifies one run of one session under one configuration.

/// The default id of a configuration.
pub const DEFAULT_CONFIG: &str = "default";

/// Returns the identifier of a run: `{session}.{config}.{N}`, such as `s1.default.3`. A `.` or `%` within a
/// part is written as `%2E` or `%25`. Therefore each text identifies one run, and each run has one
/// text. It is not meant as a file name.
///
/// ```
/// assert_eq!(plimsoll_agent::run_id("team.7", "50%", 3), "team%2E7.50%25.3");
/// ```
#[must_use]
pub fn run_id(session: &str, config: &str, n: u64) -> String {
    let escaped = |part: &str| part.replace('%', "%25").replace('.', "%2E");
    format!("{}.{}.{n}", escaped(session), escaped(config))
}
