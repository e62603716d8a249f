//! Tools of the provider's own on their way into a request: in the form of a wire, and judged by its
//! validator before any is sent. Which tools there are, `wire` knows.

use plimsoll_agent::Request;
use plimsoll_context::{HostedTool, Opaque};
use plimsoll_wire::Fault;

use crate::explain::question;

/// Tools as a wire passes them through.
pub(crate) fn hosted(tools: &[HostedTool], origin: &str) -> Vec<Opaque> {
    let tools = tools.iter().map(|tool| Opaque {
        origin: origin.to_owned(),
        data: tool.json(),
    });
    tools.collect()
}

/// What a validator finds wrong with tools, in a request that is otherwise good.
pub(crate) fn judged(
    tools: &[HostedTool],
    judge: impl Fn(&Request) -> Option<Vec<Fault>>,
) -> Vec<String> {
    let faults = tools.iter().flat_map(|tool| {
        let mut request = question();
        request.hosted_tools = [tool.clone()].into();
        let faults = judge(&request).unwrap_or_default();
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
