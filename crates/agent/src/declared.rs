//! [`DeclaredTools`]: the tools of the next request, and the size of everything but the view.

use std::sync::Arc;

use plimsoll_context::{Tokens, ToolSpec, Transcript};

use crate::setup::Setup;

/// The tools that requests currently declare.
#[derive(Debug, Default)]
pub(crate) struct DeclaredTools {
    pub(crate) specs: Arc<[ToolSpec]>,
    /// The size of a request without the view.
    pub(crate) overhead: Tokens,
    /// The size of the tools that are added once a plan has been applied.
    pub(crate) joins: Tokens,
    /// Whether those tools are declared already.
    pub(crate) has_joined: bool,
}

impl DeclaredTools {
    /// Returns the tools for a view. `planned` tells whether a plan has been applied to it.
    pub(crate) fn new(setup: &Setup, view: &Transcript, planned: bool) -> Self {
        let has_joined = planned || calls_joining(setup, view);
        let declared = setup.declared(has_joined);
        Self {
            specs: declared.map(|tool| tool.spec.clone()).collect(),
            overhead: setup.overhead_after(has_joined),
            joins: match has_joined {
                true => Tokens::ZERO,
                false => setup.weight_of(setup.joining()),
            },
            has_joined,
        }
    }
}

/// Checks whether the view contains a call of a tool that only a plan adds, for example from another
/// client. A provider may reject a request that contains a call of an undeclared tool.
fn calls_joining(setup: &Setup, view: &Transcript) -> bool {
    let joining: Vec<&str> = setup
        .joining()
        .map(|tool| tool.spec.name.as_str())
        .collect();
    !joining.is_empty()
        && view
            .items()
            .iter()
            .flat_map(|item| item.message.calls())
            .any(|call| joining.contains(&call.name.as_str()))
}
