//! Settings without a meaning that the settings of one run may bring, too.

use plimsoll_agent::{Sampling, Setup};
use plimsoll_context::{SettingFault, Tokens};

use crate::error::Error;
use crate::parts::Parts;
use crate::timed_filter::timed_filters;

/// Fills in the hooks and the input filters of a setup, and checks the settings that a single run can
/// change as well.
///
/// # Errors
/// If there are faults, these included.
pub(crate) fn complete(
    setup: &mut Setup,
    parts: &Parts,
    mut faults: Vec<SettingFault>,
) -> Result<(), Error> {
    setup.hooks = parts.hooks.points();
    setup.input_filters = timed_filters(parts, &setup.limits);
    faults.extend(setup.limits.faults());
    faults.extend(parts.hooks.faults());
    let mut fault = |bad: bool, settings: &'static [&'static str], text: String| {
        if bad {
            faults.push(SettingFault::new(settings, text));
        }
    };
    if setup.limits.max_cost.is_some() {
        let is_unpriced = setup.sheet.is_none();
        fault(is_unpriced, &["max_cost"], unpriced(parts.provider.model()));
        if let Some(model) = parts.unpriced_summarizer(setup) {
            let text = format!(
                "max_cost requires the prices of `{model}`, which writes the summaries; set summarizer_prices"
            );
            fault(true, &["max_cost"], text);
        }
    }
    fault(
        setup.config_id.is_empty(),
        &["config_id"],
        "config_id is empty; name it, or leave it out".into(),
    );
    let temperature = setup.sampling.temperature.unwrap_or_default();
    fault(
        !(0.0..=Sampling::MAX_TEMPERATURE).contains(&temperature),
        &["temperature"],
        format!("temperature is {temperature}; choose a number from 0 to 2"),
    );
    let texts = parts.provider.hosted_tool_faults(&setup.hosted_tools);
    let texts = texts.into_iter();
    faults.extend(texts.map(|text| SettingFault::new(&["hosted_tools"], text)));
    faults.extend(SettingFault::zeros([
        (&["max_tokens"], setup.max_output == Some(Tokens::ZERO)),
        (
            &["retry.max_attempts"],
            parts.settings.retry.max_attempts == 0,
        ),
    ]));
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Error::Build(faults))
    }
}

/// Returns the fault of a limit on money for a model without prices.
fn unpriced(model: &str) -> String {
    let (vendor, name) = model
        .split_once('/')
        .unwrap_or(("openai-compatible", model));
    format!(
        "max_cost requires the prices of `{model}`, which are unknown; write them into the \
         configuration, in dollars for a million tokens: [models.{vendor}.\"{name}\"] with `input = …` and `output = …`; in Rust, set `prices`"
    )
}
