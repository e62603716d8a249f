//! [`reach`]: the extent to which OpenAI's Chat Completions supports a model of theirs, and whether a
//! model accepts a temperature, both judged by the name. The crate `mock` checks requests.
//!
//! Sources: OpenAI's refusals, word for word, in public reports: of tools beside an effort from GPT-5.4
//! on, of tools without `"none"` from GPT-5.5 on, of tools at all with GPT-6 Astra.

use serde::Serialize;

/// The extent to which Chat Completions supports a model of OpenAI's. The Responses API supports all
/// models fully.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Full support.
    Whole,
    /// Tools only if the request sets no effort. The model does not reason then.
    ToolsUnasked,
    /// Tools only if reasoning is turned off with `reasoning_effort: "none"`.
    ToolsAtNone,
    /// No tools, because the model always reasons.
    NoTools,
    /// No support. The model is only available in Responses.
    Nothing,
}

/// Parts of the names of models that are only available in Responses.
const RESPONSES_ONLY: [&str; 4] = ["-pro", "codex", "deep-research", "computer-use"];
/// Models that always reason.
const ALWAYS_THINKS: [&str; 3] = ["gpt-6-astra", "gpt-6.1-sol", "gpt-6.2"];
/// The version from which tools and reasoning cannot be combined.
const APART: (u64, u64) = (5, 4);
/// The model's `-latest` does not reason; those of later versions do.
const TALKS: &str = "gpt-5-chat";

/// Moonshot's models with a fixed temperature.
const FIXED: [&str; 4] = ["kimi-k2.5", "kimi-k2.6", "kimi-k2.7", "kimi-k3"];

/// Returns the extent to which Chat Completions supports a model.
#[must_use]
pub fn reach(model: &str) -> Reach {
    let name = plain(model);
    if !reasons(&name) && !name.starts_with("codex") && !name.starts_with("computer-use") {
        return Reach::Whole;
    }
    if RESPONSES_ONLY.iter().any(|part| name.contains(part)) {
        return Reach::Nothing;
    }
    let Some(version) = version(&name).filter(|_| !name.contains("-chat")) else {
        return Reach::Whole;
    };
    if ALWAYS_THINKS.iter().any(|one| name.starts_with(one)) {
        return Reach::NoTools;
    }
    match version.cmp(&APART) {
        std::cmp::Ordering::Less => Reach::Whole,
        std::cmp::Ordering::Equal => Reach::ToolsUnasked,
        std::cmp::Ordering::Greater => Reach::ToolsAtNone,
    }
}

/// Returns `true` if a model accepts this temperature with this effort. OpenAI's models accept only the
/// default while they reason, and so do Kimi's newer ones.
#[must_use]
pub fn takes_temperature(model: &str, effort: Option<&str>, temperature: f64) -> bool {
    let name = plain(model);
    let usual = (temperature - 1.0).abs() < f64::EPSILON;
    let fixed = FIXED.iter().any(|one| name.starts_with(one));
    let thinks = reasons(&name) && !name.starts_with(TALKS) && effort != Some("none");
    usual || !(fixed || thinks)
}

/// Returns `true` if a model of that name reasons, so that its reasoning counts as output: `o3`,
/// `gpt-5.6` and later ones, but not `gpt-4o`.
pub fn reasons(model: &str) -> bool {
    let name = plain(model);
    if name.starts_with("gpt-") {
        return version(&name).is_some_and(|(major, _)| major >= 5);
    }
    let version = name.strip_prefix('o').unwrap_or_default();
    version.starts_with(|one: char| one.is_ascii_digit())
}

/// Returns the version of a GPT: 5 and 4 for `gpt-5.4-mini`.
fn version(name: &str) -> Option<(u64, u64)> {
    let version = name.strip_prefix("gpt-")?;
    let number = |text: &str| {
        let digits = text.split(|one: char| !one.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse::<u64>().ok())
    };
    let major = number(version)?;
    let rest = version.trim_start_matches(|one: char| one.is_ascii_digit());
    let minor = rest.strip_prefix('.').and_then(number).unwrap_or(0);
    Some((major, minor))
}

/// Returns a model's name without the maker's prefix that gateways add, and without the additions of a
/// fine-tuned model: `ft:o4-mini:org::id`.
fn plain(model: &str) -> String {
    let name = model.to_ascii_lowercase();
    let name = name.rsplit_once('/').map_or(&*name, |(_, name)| name);
    let name = name.strip_prefix("ft:").unwrap_or(name);
    name.split(':').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_how_far_the_wire_goes() {
        for (name, goes) in [
            ("gpt-4o", Reach::Whole),
            ("gpt-4o-2024-08-06", Reach::Whole),
            ("gpt-oss-120b", Reach::Whole),
            ("o3", Reach::Whole),
            ("gpt-5", Reach::Whole),
            ("gpt-5-2025-08-07", Reach::Whole),
            ("gpt-5.2", Reach::Whole),
            ("gpt-5.3-chat-latest", Reach::Whole),
            ("grok-4", Reach::Whole),
            ("gpt-5.4-mini", Reach::ToolsUnasked),
            ("openai/gpt-5.4", Reach::ToolsUnasked),
            ("ft:gpt-5.4:my-project::id", Reach::ToolsUnasked),
            ("gpt-5.5-2026-04-23", Reach::ToolsAtNone),
            ("gpt-5.6-terra", Reach::ToolsAtNone),
            ("gpt-6-sol", Reach::ToolsAtNone),
            ("gpt-6-astra", Reach::NoTools),
            ("gpt-6.1-sol", Reach::NoTools),
            ("gpt-6.2-astra", Reach::NoTools),
            ("gpt-5-pro-2025-10-06", Reach::Nothing),
            ("o3-pro", Reach::Nothing),
            ("o4-mini-deep-research", Reach::Nothing),
            ("gpt-5.1-codex-max", Reach::Nothing),
            ("codex-mini-latest", Reach::Nothing),
            ("computer-use-preview", Reach::Nothing),
            ("", Reach::Whole),
            ("gpt-", Reach::Whole),
            ("gpt-99999999999999999999999", Reach::Whole),
        ] {
            assert_eq!(reach(name), goes, "{name}");
        }
    }

    #[test]
    fn what_thinks_takes_no_temperature() {
        for (name, effort, temperature, takes) in [
            ("gpt-4o", None, 0.7, true),
            ("gpt-5-chat-latest", None, 0.7, true),
            ("gpt-5", None, 0.7, false),
            ("gpt-5", None, 1.0, true),
            ("openai/o3", Some("low"), 0.0, false),
            ("gpt-5.6", Some("none"), 0.7, true),
            ("gpt-5.6", Some("high"), 0.7, false),
            ("gpt-oss-120b", None, 0.7, true),
            ("llama-3.3-70b", None, 0.7, true),
            ("kimi-k2.6", None, 0.6, false),
            ("moonshotai/kimi-k3", None, 1.0, true),
            ("moonshot-v1-8k", None, 0.6, true),
        ] {
            assert_eq!(
                takes_temperature(name, effort, temperature),
                takes,
                "{name}"
            );
        }
    }
}
