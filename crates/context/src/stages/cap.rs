//! [`Cap`]: a result larger than one may be is cut to size, best before the model first sees it.
//! It never touches a result within the bound.

use crate::budget::Budget;
use crate::draft::Draft;
use crate::message::Message;
use crate::plan::Trigger;
use crate::rendition;
use crate::stage::Stage;

/// Cuts tool results to `Budget::max_result`, head and tail kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// Only results that no request has carried yet: it costs no cache.
    Arrivals,
    /// All of them, when the request was refused as too long anyway.
    All,
}

impl Stage for Cap {
    fn name(&self) -> &str {
        "cap"
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
        let from = match self {
            Self::Arrivals => draft.first_unsent(),
            Self::All if !draft.is_due(budget) => return,
            Self::All => 0,
        };
        for at in from..draft.items().len() {
            let Some((Message::ToolResult(result), weight)) = draft.current(at) else {
                continue;
            };
            if weight <= budget.max_result {
                continue;
            }
            let short = rendition::result_in_tokens(
                result,
                budget.max_result,
                draft.counter(),
                &draft.marker(at),
            );
            if let Some(short) = short {
                draft.shrink(at, short);
            }
        }
    }
}
