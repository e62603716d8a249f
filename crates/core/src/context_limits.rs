//! The limits of a view whose context is configured by its size.

use plimsoll_context::{ContextConfig, SettingFault, Tokens, ViewLimits};

/// Returns the limits of a configuration with a system prompt of `system` tokens, or a fault.
pub(crate) fn context_limits(
    config: &ContextConfig,
    line: ViewLimits,
    system: Tokens,
) -> Result<ViewLimits, SettingFault> {
    let window = line.window.unwrap_or(Tokens::MAX);
    no_room(config, system, window).map_or_else(|| Ok(config.line(line, system)), Err)
}

/// Returns a fault if the system prompt leaves no space in this window.
pub(crate) fn no_room(
    config: &ContextConfig,
    system: Tokens,
    window: Tokens,
) -> Option<SettingFault> {
    // If there is no space in its own maximum either, `faults` reports it.
    let is_good = config.faults().is_empty();
    let fires = config.thresholds(system, Some(window)).fires_above;
    let aside = config.system_prompt_tokens.max(system);
    let max = config.max_context_tokens.min(window);
    (is_good && fires == Tokens::ZERO).then(|| {
        let text = format!(
            "every request would be compacted: the system prompt takes {aside} of the {max} \
             tokens of context; raise max_context_tokens, or lower system_prompt_tokens or \
             the system prompt"
        );
        let sizes = &[
            "window",
            "context.max_context_tokens",
            "context.system_prompt_tokens",
        ];
        SettingFault::new(sizes, text)
    })
}
