//! The [`MessagesProfile`] of each model: a table by name, without prices and windows. An unknown
//! name gets the requirements of the newest models, which older models accept, too.

use plimsoll_context::Tokens;

use super::profile::{EffortSupport, MessagesProfile, NoThinking, ThinkingStyle};

/// One family of models.
struct Family {
    /// The prefix of its model names, in lower case, after `claude-`, with dashes for dots.
    prefix: &'static str,
    era: Era,
    /// The maximum number of tokens of a reply.
    max_output: u64,
    /// The minimum number of tokens that can be cached.
    min_cacheable: u64,
}

/// The generation of a model, with its thinking and settings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

const fn family(prefix: &'static str, era: Era, max_output: u64, min_cacheable: u64) -> Family {
    Family {
        prefix,
        era,
        max_output,
        min_cacheable,
    }
}

/// The families. If one name begins with another, the longer one comes first. Sources disagree about
/// some minima; the values of a price sheet take precedence.
const FAMILIES: [Family; 32] = [
    family("3-7-sonnet", Era::Budget, 64_000, 1_024),
    family("3-5-haiku", Era::Plain, 8_192, 2_048),
    family("3-5-sonnet", Era::Plain, 8_192, 1_024),
    family("3-haiku", Era::Plain, 4_096, 2_048),
    family("3-opus", Era::Plain, 4_096, 1_024),
    family("3-sonnet", Era::Plain, 4_096, 1_024),
    family("opus-4-1", Era::Budget, 32_000, 1_024),
    family("opus-4-5", Era::Budget, 64_000, 4_096),
    family("opus-4-6", Era::Adaptive, 128_000, 4_096),
    family("opus-4-7", Era::Fixed, 128_000, 2_048),
    family("opus-4-8", Era::Fixed, 128_000, 1_024),
    family("opus-4-0", Era::Budget, 32_000, 1_024),
    family("opus-4", Era::Budget, 32_000, 1_024),
    family("sonnet-4-6", Era::Adaptive, 128_000, 1_024),
    family("sonnet-4-7", Era::Fixed, 128_000, 1_024),
    family("sonnet-4-5", Era::Budget, 64_000, 1_024),
    family("sonnet-4", Era::Budget, 64_000, 1_024),
    family("haiku-4-5", Era::Budget, 64_000, 4_096),
    family("haiku-4", Era::Budget, 64_000, 4_096),
    family("opus-5-5", Era::Bound, 128_000, 512),
    family("sonnet-5-5", Era::Bound, 128_000, 512),
    family("haiku-5-5", Era::Bound, 128_000, 512),
    family("opus-5", Era::Fixed, 128_000, 512),
    family("sonnet-5", Era::Fixed, 128_000, 1_024),
    family("haiku-5", Era::Fixed, 64_000, 1_024),
    family("fable-5-1", Era::Bound, 128_000, 512),
    family("fable-5-2", Era::Bound, 128_000, 512),
    family("fable-5", Era::Fixed, 128_000, 512),
    family("mythos-preview", Era::Fixed, 128_000, 2_048),
    family("mythos-5-1", Era::Bound, 128_000, 512),
    family("mythos-5-2", Era::Bound, 128_000, 512),
    family("mythos-5", Era::Fixed, 128_000, 512),
];

/// The families that accept system messages between others.
const LATER_SYSTEM: [&str; 12] = [
    "opus-4-8",
    "opus-5",
    "opus-5-5",
    "sonnet-5",
    "sonnet-5-5",
    "haiku-5-5",
    "fable-5",
    "fable-5-1",
    "fable-5-2",
    "mythos-5",
    "mythos-5-1",
    "mythos-5-2",
];

/// The families that accept an effort together with a budget.
const EFFORT_BESIDE: [&str; 1] = ["opus-4-5"];

/// The families that cannot turn thinking off.
const ALWAYS_THINK: [&str; 4] = ["opus-5-5", "fable-5", "fable-5-1", "fable-5-2"];

/// The families that accept a temperature and `top_p` together. Since Opus 4.1, none does.
const BOTH_SAMPLERS: [&str; 9] = [
    "3-7-sonnet",
    "3-5-haiku",
    "3-5-sonnet",
    "3-haiku",
    "3-opus",
    "3-sonnet",
    "opus-4-0",
    "opus-4",
    "sonnet-4",
];

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
            ..family("", Era::Bound, 0, 1_024).profile()
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
    fn profile(&self) -> MessagesProfile {
        let since = |era: Era| self.era >= era;
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
            } else if EFFORT_BESIDE.contains(&self.prefix) {
                EffortSupport::Accepted
            } else {
                EffortSupport::Refused
            },
            unasked_thinking: self.era != Era::Budget,
            no_thinking: match ALWAYS_THINK.contains(&self.prefix) {
                true => NoThinking::Refused,
                false => NoThinking::Supported,
            },
            both_samplers: BOTH_SAMPLERS.contains(&self.prefix),
            temperature: !since(Era::Fixed),
            binds_prefix: since(Era::Bound),
            later_system: LATER_SYSTEM.contains(&self.prefix),
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
