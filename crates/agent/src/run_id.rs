//! [`RunId`]: identifies one run of one session under one configuration.
//!
//! Its text form can be parsed again whatever names the host has chosen. It is not meant as a file
//! name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The default id of a configuration.
pub const DEFAULT_CONFIG: &str = "default";

/// The identifier of a run: `{session}.{config}.{N}`, such as `s1.default.3`. A `.` or `%` within a
/// part is written as `%2E` or `%25`. Therefore each text identifies one run, and each run has one
/// text.
///
/// ```
/// use plimsoll_agent::RunId;
/// let id = RunId::new("team.7", "50%", 3);
/// assert_eq!(id.to_string(), "team%2E7.50%25.3");
/// assert_eq!(id.to_string().parse(), Ok(id));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct RunId {
    /// The session, by the host's name for it.
    pub session: String,
    /// The configuration, by the host's name for it.
    pub config: String,
    /// The run's number in its session, from 1.
    pub n: u64,
}

/// The error for a text that is not a run id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no run: a run id is `session.config.N`, with `.` and `%` within a name written as `%2E` and `%25`"
)]
pub struct BadRunId(
    /// The text.
    pub String,
);

impl RunId {
    /// Creates the id of a run.
    #[must_use]
    pub fn new(session: impl Into<String>, config: impl Into<String>, n: u64) -> Self {
        Self {
            session: session.into(),
            config: config.into(),
            n,
        }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped = |part: &str| part.replace('%', "%25").replace('.', "%2E");
        let (session, config) = (escaped(&self.session), escaped(&self.config));
        write!(f, "{session}.{config}.{}", self.n)
    }
}

impl FromStr for RunId {
    type Err = BadRunId;

    fn from_str(text: &str) -> Result<Self, BadRunId> {
        parse(text).ok_or_else(|| BadRunId(text.to_owned()))
    }
}

impl TryFrom<String> for RunId {
    type Error = BadRunId;
    fn try_from(text: String) -> Result<Self, BadRunId> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.to_string()
    }
}

/// Accepts only texts in the exact format of [`RunId`]'s `Display`, so that each run has one text.
fn parse(text: &str) -> Option<RunId> {
    let mut parts = text.split('.');
    let mut name = || Some(parts.next()?.replace("%2E", ".").replace("%25", "%"));
    let (session, config) = (name()?, name()?);
    let n = parts.next()?.parse().ok()?;
    let id = RunId { session, config, n };
    (id.to_string() == text).then_some(id)
}

#[cfg(test)]
mod tests {

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_it_writes_is_read() {
        let table = [
            ("s.default.1", Some(("s", "default", 1))),
            ("a%2Eb.c%25.7", Some(("a.b", "c%", 7))),
            ("..0", Some(("", "", 0))),
            (
                "é🦀.x y.18446744073709551615",
                Some(("é🦀", "x y", u64::MAX)),
            ),
            ("a%252E.c.1", Some(("a%2E", "c", 1))),
            ("", None),
            ("s.default", None),
            ("s.default.", None),
            ("s.default.1.2", None),
            ("s.default.01", None),
            ("s.default.+1", None),
            ("s.default.-1", None),
            ("s.default.18446744073709551616", None),
            ("s%.default.1", None),
            ("s%2e.default.1", None),
            ("s%41.default.1", None),
            ("s.default%2.1", None),
        ];
        for (text, parts) in table {
            let wanted = parts.map(|(session, config, n)| RunId::new(session, config, n));
            assert_eq!(text.parse().ok(), wanted, "{text}");
        }
        let said = "s.1".parse::<RunId>().unwrap_err().to_string();
        assert!(said.starts_with("`s.1` names no run: "), "{said}");
        assert!(serde_json::from_str::<RunId>("\"s.1\"").is_err());
    }

    /// Names that contain separators and escape sequences.
    fn name() -> impl Strategy<Value = String> {
        prop_oneof!["[.%2E5a]{0,8}", ".{0,12}"]
    }

    proptest! {
        #[test]
        fn any_names_come_back(session in name(), config in name(), n in any::<u64>()) {
            let id = RunId::new(session, config, n);
            let text = id.to_string();
            prop_assert_eq!(text.split('.').count(), 3);
            prop_assert_eq!(text.parse(), Ok(id.clone()));
            let json = serde_json::to_string(&id).unwrap();
            prop_assert_eq!(serde_json::from_str::<RunId>(&json).unwrap(), id);
        }

        #[test]
        fn different_runs_have_different_names(
            one in (name(), name(), 0_u64..3), other in (name(), name(), 0_u64..3),
        ) {
            let id = |(session, config, n): &(String, String, u64)| {
                RunId::new(session.as_str(), config.as_str(), *n).to_string()
            };
            prop_assert_eq!(id(&one) == id(&other), one == other);
        }

        #[test]
        fn whatever_is_read_is_written_the_same(text in "[.%2E5a0-9]{0,16}") {
            if let Ok(id) = text.parse::<RunId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
