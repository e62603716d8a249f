//! [`Cap`]: cuts tool results that exceed the maximum size, preferably before the model first reads
//! them.

use crate::budget::Budget;
use crate::draft::Draft;
use crate::message::Message;
use crate::plan::Trigger;
use crate::policy::Stage;
use crate::truncate;

/// Cuts tool results to `Budget::max_result`, keeping head and tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// Only unsent results, which costs no cache.
    Arrivals,
    /// All results, once the request was refused as too long.
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
            let short = truncate::result_in_tokens(
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
