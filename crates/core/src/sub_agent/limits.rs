//! The limits of a sub-agent: the smaller ones of its own and those of its tool. The remaining
//! allowance is handled elsewhere.

use plimsoll_agent::{CountTokens, ExecutionLimits};

/// Returns the smaller limits of both. `given` decides on the action at a limit.
pub(crate) fn tighter(own: &ExecutionLimits, given: &ExecutionLimits) -> ExecutionLimits {
    let mut per_tool = own.max_calls_per_tool.clone();
    for (tool, calls) in &given.max_calls_per_tool {
        let least = per_tool.get(tool).map_or(*calls, |own| *own.min(calls));
        per_tool.insert(tool.clone(), least);
    }
    ExecutionLimits {
        max_turns: own.max_turns.min(given.max_turns),
        max_total_tokens: least(own.max_total_tokens, given.max_total_tokens),
        // Counting all processed tokens is the stricter rule.
        count_tokens: match (own.count_tokens, given.count_tokens) {
            (CountTokens::Growth, CountTokens::Growth) => CountTokens::Growth,
            _ if own.max_total_tokens.is_none() => given.count_tokens,
            _ if given.max_total_tokens.is_none() => own.count_tokens,
            _ => CountTokens::Processed,
        },
        max_duration: least(own.max_duration, given.max_duration),
        max_cost: least(own.max_cost, given.max_cost),
        max_tool_calls: least(own.max_tool_calls, given.max_tool_calls),
        max_calls_per_tool: per_tool,
        max_identical_tool_calls: least(
            own.max_identical_tool_calls,
            given.max_identical_tool_calls,
        ),
        // `None` is less than any number.
        tool_call_history_size: own.tool_call_history_size.max(given.tool_call_history_size),
        max_memory: least(own.max_memory, given.max_memory),
        at_limit: given.at_limit,
    }
}

fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_context::Tokens;

    #[test]
    fn the_tighter_of_both_holds() {
        let own = ExecutionLimits {
            max_tool_calls: Some(3),
            max_calls_per_tool: [("a".to_owned(), 2), ("b".to_owned(), 9)].into(),
            count_tokens: CountTokens::Growth,
            max_total_tokens: Some(Tokens(5)),
            ..ExecutionLimits::turns(10)
        };
        let given = ExecutionLimits {
            max_calls_per_tool: [("b".to_owned(), 1), ("c".to_owned(), 4)].into(),
            ..ExecutionLimits::turns(20)
        };
        let both = tighter(&own, &given);
        assert_eq!((both.max_turns, both.max_tool_calls), (10, Some(3)));
        assert_eq!(both.count_tokens, CountTokens::Growth);
        let calls = both.max_calls_per_tool;
        assert_eq!((calls["a"], calls["b"], calls["c"]), (2, 1, 4));
        let counted = tighter(&own, &ExecutionLimits::default());
        assert_eq!(counted.count_tokens, CountTokens::Processed);
        assert_eq!(counted.max_total_tokens, Some(Tokens(5)));
    }
}
