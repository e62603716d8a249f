//! The [`MessagesProfile`] of each model: a table by name, `data/claude.txt`, without prices and windows.
//! An unknown name gets the requirements of the newest models, which older models accept, too.

use std::sync::LazyLock;

use plimsoll_context::Tokens;
use serde::Deserialize;

use super::{EffortSupport, MessagesProfile, NoThinking, ThinkingStyle};

/// One family of models: a line of `data/claude.txt`, which explains it.
struct Family {
    prefix: &'static str,
    era: Era,
    max_output: u64,
    min_cacheable: u64,
    besides: Vec<&'static str>,
}

/// The generation of a model, with its thinking and settings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Era {
    /// No thinking.
    Plain,
    /// Thinking with a budget.
    Budget,
    /// Adaptive thinking, or still with a budget. No prefill any more.
    Adaptive,
    /// Like `Adaptive`, but without budgets and sampling settings.
    Fixed,
    /// Like `Fixed`, but thinking is bound to the messages before it, and tool use cannot be forced.
    Bound,
}

/// The requirements of the newest models, without their limits.
const NEWEST: Family = Family {
    prefix: "",
    era: Era::Bound,
    max_output: 0,
    min_cacheable: 1_024,
    besides: Vec::new(),
};

/// The parsed file. The tests exclude lines that cannot be parsed.
static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    let lines = include_str!("../../data/claude.txt").lines();
    lines.filter_map(Family::parse).collect()
});

/// Returns the profile of a model by its name.
pub(super) fn profile(name: &str) -> MessagesProfile {
    let name = name.to_ascii_lowercase().replace(['.', '_', '@'], "-");
    let Some((_, rest)) = name.split_once("claude-") else {
        return MessagesProfile::compatible();
    };
    let found = FAMILIES.iter().find(|family| begins(rest, family.prefix));
    match found {
        Some(family) => family.profile(),
        None => MessagesProfile {
            name: "claude".into(),
            max_output: None,
            later_system: true,
            no_thinking: NoThinking::Unknown,
            ..NEWEST.profile()
        },
    }
}

/// Returns `true` if a name begins with a prefix that ends at a dash: `opus-4-10` does not match
/// `opus-4-1`.
fn begins(name: &str, prefix: &str) -> bool {
    let rest = name.strip_prefix(prefix);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

impl Family {
    fn parse(line: &'static str) -> Option<Self> {
        let mut words = line.split_whitespace();
        Some(Self {
            prefix: words.next().filter(|prefix| !prefix.starts_with('#'))?,
            era: serde_json::from_value(words.next()?.into()).ok()?,
            max_output: words.next()?.parse().ok()?,
            min_cacheable: words.next()?.parse().ok()?,
            besides: words.collect(),
        })
    }

    fn profile(&self) -> MessagesProfile {
        let since = |era: Era| self.era >= era;
        let has_flag = |word| self.besides.contains(&word);
        MessagesProfile {
            name: format!("claude-{}", self.prefix),
            prefill: !since(Era::Adaptive),
            thinking: match self.era {
                Era::Plain => ThinkingStyle::None,
                Era::Budget => ThinkingStyle::Budget,
                Era::Adaptive => ThinkingStyle::Either,
                _ => ThinkingStyle::Adaptive,
            },
            effort: if since(Era::Adaptive) {
                EffortSupport::Supported
            } else if has_flag("effort-beside") {
                EffortSupport::Accepted
            } else {
                EffortSupport::Refused
            },
            unasked_thinking: self.era != Era::Budget,
            no_thinking: if has_flag("always-thinks") {
                NoThinking::Refused
            } else {
                NoThinking::Supported
            },
            both_samplers: has_flag("both-samplers"),
            temperature: !since(Era::Fixed),
            binds_prefix: since(Era::Bound),
            later_system: has_flag("later-system"),
            forced_tools: !since(Era::Bound),
            max_output: Some(self.max_output),
            default_output: MessagesProfile::compatible().default_output.min(
                match self.max_output {
                    0 => u64::MAX,
                    max => max,
                },
            ),
            min_cacheable: Tokens(self.min_cacheable),
            ..MessagesProfile::compatible()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_family() {
        let lines = include_str!("../../data/claude.txt").lines();
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let known = [
            "later-system",
            "effort-beside",
            "always-thinks",
            "both-samplers",
        ];
        for line in lines {
            let family = Family::parse(line);
            let besides = family.expect(line).besides;
            assert!(besides.iter().all(|word| known.contains(word)), "{line}");
        }
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        for (name, family) in [
            ("claude-opus-4-8", "claude-opus-4-8"),
            ("claude-opus-4.8", "claude-opus-4-8"),
            ("claude-opus-4-20250514", "claude-opus-4"),
            ("claude-opus-4-5-20251101", "claude-opus-4-5"),
            ("Claude-3-7-Sonnet-latest", "claude-3-7-sonnet"),
            (
                "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
                "claude-sonnet-4-5",
            ),
            ("claude-haiku-4-5@20251001", "claude-haiku-4-5"),
            ("claude-fable-5.1", "claude-fable-5-1"),
            ("claude-opus-9", "claude"),
            ("kimi-k3", "compatible"),
        ] {
            assert_eq!(MessagesProfile::of_model(name).name, family, "{name}");
        }
    }

    #[test]
    fn demands_came_one_after_the_other() {
        let of = MessagesProfile::of_model;
        assert_eq!(of("claude-3-5-haiku-latest").thinking, ThinkingStyle::None);
        assert!(of("claude-sonnet-4-5").prefill);
        assert!(!of("claude-sonnet-4-6").prefill);
        assert_eq!(of("claude-opus-4-6").thinking, ThinkingStyle::Either);
        assert_eq!(of("claude-opus-4-7").thinking, ThinkingStyle::Adaptive);
        assert!(of("claude-opus-5").forced_tools);
        assert!(!of("claude-opus-5-5").forced_tools);
        assert!(of("claude-opus-4-6").temperature);
        assert!(!of("claude-opus-4-7").temperature);
        assert!(!of("claude-opus-4-7").later_system);
        assert!(of("claude-opus-4-8").later_system);
        assert!(!of("claude-opus-5").binds_prefix);
        assert!(of("claude-opus-5-5").binds_prefix);
        assert_eq!(of("claude-opus-5").min_cacheable, Tokens(512));
        assert_eq!(of("claude-opus-4-6").min_cacheable, Tokens(4_096));
        assert_eq!(of("claude-3-opus").default_output, 4_096);
        assert!(of("claude-sonnet-4-20250514").both_samplers);
        assert!(!of("claude-sonnet-4-5").both_samplers);
        assert!(!of("claude-opus-4-1").both_samplers);
        assert_eq!(of("claude-opus-4-5").effort, EffortSupport::Accepted);
        assert_eq!(of("claude-fable-5").no_thinking, NoThinking::Refused);
        let unasked = |name: &str| of(name).unasked_thinking;
        assert!(!unasked("claude-haiku-4-5"));
        assert!(unasked("claude-opus-4-6"));
        assert_eq!(of("claude-opus-9").max_output, None);
    }

    #[test]
    fn a_shorter_name_never_hides_a_longer_one() {
        for (at, one) in FAMILIES.iter().enumerate() {
            for other in FAMILIES.iter().skip(at + 1) {
                assert!(
                    !begins(other.prefix, one.prefix),
                    "{} {}",
                    one.prefix,
                    other.prefix
                );
            }
        }
    }
}
