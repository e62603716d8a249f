//! The provider's own tools in a request. `plimsoll-wire` knows the available tools.

use plimsoll_context::{HostedTool, Opaque};

use crate::client::ModelClient;
use crate::explain::question;
use crate::protocol::HostedTools;

/// Converts tools to opaque blocks of a protocol.
pub(crate) fn hosted(tools: &[HostedTool], origin: &str) -> Vec<Opaque> {
    let tools = tools.iter().map(|tool| Opaque {
        origin: origin.to_owned(),
        data: tool.json(),
    });
    tools.collect()
}

/// Returns a fault for each tool, because the protocol has no tools of the provider's own.
pub(crate) fn none_here(model: &str, tools: &[HostedTool]) -> Vec<String> {
    let faults = tools.iter().map(|tool| {
        let name = tool.name();
        format!(
            "`{name}` is asked for as a tool of the provider's own, and {model} has none here; leave \
             it out of hosted_tools"
        )
    });
    faults.collect()
}

/// Returns the faults of tools. Unknown tools come first; if there are none, the validator checks
/// each tool in an otherwise valid request.
pub(crate) fn faults(
    client: &ModelClient,
    hosted: &HostedTools,
    tools: &[HostedTool],
) -> Vec<String> {
    let unknown: Vec<String> = tools.iter().filter_map(hosted.fault).collect();
    if !unknown.is_empty() {
        return unknown;
    }
    let faults = tools.iter().flat_map(|tool| {
        let mut request = question();
        request.hosted_tools = [tool.clone()].into();
        let faults = client.protocol.validate(&client.rendered(&request).json());
        let name = tool.name().to_owned();
        faults.into_iter().map(move |fault| {
            format!(
                "`{name}` of hosted_tools would be refused: {} ({})",
                fault.words, fault.place
            )
        })
    });
    faults.collect()
}
