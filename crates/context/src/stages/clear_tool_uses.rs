//! [`ClearToolUses`]: the rules of Anthropic's context edit `clear_tool_uses_20250919`, for any
//! provider.

use std::collections::BTreeMap;

use crate::budget::Budget;
use crate::draft::Draft;
use crate::message::{Message, Part, ToolCall, ToolResult};
use crate::plan::Trigger;
use crate::policy::Stage;
use crate::stages::arguments::old_calls;
use crate::tokens::Tokens;

/// The text that replaces a cleared result.
pub const CLEARED: &str = "[tool result cleared]";
/// The arguments that replace those of a cleared call.
const CLEARED_INPUT: &str = "{}";

/// Replaces the oldest tool results by a placeholder once the view exceeds a trigger.
///
/// The names and defaults are those of the API. No message is removed, so the view may still be of
/// any size: the policy is not limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClearToolUses {
    /// The threshold above which results are cleared. Default 100,000 input tokens.
    pub trigger: ClearTrigger,
    /// The number of newest tool uses that keep their results. Default 3.
    pub keep: usize,
    /// The minimum number of freed tokens; below it, nothing is cleared. Default 0.
    pub clear_at_least: Tokens,
    /// The names of tools whose uses are never cleared.
    pub exclude_tools: Vec<String>,
    /// Whether the arguments of cleared uses are cleared too. Default `false`.
    pub clear_tool_inputs: bool,
}

/// A threshold of [`ClearToolUses`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClearTrigger {
    /// The request has more tokens than this, tools included.
    InputTokens(Tokens),
    /// The view has more tool results than this.
    ToolUses(usize),
}

/// A use of a tool whose result can be cleared.
struct Use {
    result: usize,
    call: usize,
    part: usize,
}

impl Default for ClearToolUses {
    fn default() -> Self {
        Self {
            trigger: ClearTrigger::InputTokens(Tokens(100_000)),
            keep: 3,
            clear_at_least: Tokens::ZERO,
            exclude_tools: Vec::new(),
            clear_tool_inputs: false,
        }
    }
}

impl Stage for ClearToolUses {
    fn name(&self) -> &str {
        "clear-tool-uses"
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
        let uses = uses(draft);
        let is_due = match self.trigger {
            ClearTrigger::InputTokens(tokens) => draft.tokens() + budget.overhead > tokens,
            ClearTrigger::ToolUses(count) => uses.len() > count,
        };
        if !is_due {
            return;
        }
        let old = uses.len().saturating_sub(self.keep);
        let cleared: Vec<(usize, Message)> =
            self.cleared(draft, uses.get(..old).unwrap_or_default());
        let frees = |(at, to): &(usize, Message)| {
            let now = draft.current(*at).map(|(_, weight)| weight);
            now.unwrap_or_default().minus(draft.counter().message(to))
        };
        if cleared.iter().map(frees).sum::<Tokens>() < self.clear_at_least {
            return;
        }
        for (at, to) in cleared {
            draft.shrink(at, to);
        }
    }
}

impl ClearToolUses {
    /// Returns the cleared forms of the messages of these uses.
    fn cleared(&self, draft: &Draft<'_>, uses: &[Use]) -> Vec<(usize, Message)> {
        let clearable = if self.clear_tool_inputs {
            old_calls(draft)
        } else {
            Vec::new()
        };
        let mut cleared: BTreeMap<usize, Message> = BTreeMap::new();
        for one in uses {
            let Some((Message::Assistant { parts }, _)) = draft.current(one.call) else {
                continue;
            };
            let Some(Part::ToolCall(call)) = parts.get(one.part) else {
                continue;
            };
            if self.exclude_tools.contains(&call.name) {
                continue;
            }
            if let Some((Message::ToolResult(result), _)) = draft.current(one.result) {
                let placeholder = Message::ToolResult(ToolResult {
                    call: result.call.clone(),
                    parts: vec![Part::text(CLEARED)],
                    is_error: result.is_error,
                });
                cleared.insert(one.result, placeholder);
            }
            if clearable.contains(&one.call) && is_object(&call.arguments) {
                let caller = cleared
                    .entry(one.call)
                    .or_insert_with(|| Message::Assistant {
                        parts: parts.clone(),
                    });
                if let Message::Assistant { parts } = caller
                    && let Some(part) = parts.get_mut(one.part)
                {
                    *part = Part::ToolCall(ToolCall {
                        arguments: CLEARED_INPUT.to_owned(),
                        ..call.clone()
                    });
                }
            }
        }
        cleared.into_iter().collect()
    }
}

/// Returns the tool uses that have results, oldest first.
fn uses(draft: &Draft<'_>) -> Vec<Use> {
    let mut uses = Vec::new();
    for exchange in draft.exchanges() {
        let call = exchange.at.start;
        for result in exchange.at.clone().skip(1) {
            let (Some((message, _)), Some((Message::ToolResult(answer), _))) =
                (draft.current(call), draft.current(result))
            else {
                continue;
            };
            let is_asked =
                |part: &Part| matches!(part, Part::ToolCall(call) if call.id == answer.call);
            if let Some(part) = message.parts().iter().position(is_asked) {
                uses.push(Use { result, call, part });
            }
        }
    }
    uses
}

fn is_object(json: &str) -> bool {
    json.trim_start().starts_with('{')
}
