//! Tools of the provider's own on their way into a request: in the form of a wire, and judged by its
//! validator before any is sent. Which tools there are, `wire` knows.

use plimsoll_agent::{Failure, Request};
use plimsoll_context::{HostedTool, Opaque};
use plimsoll_wire::Fault;
use serde_json::Value;

use crate::explain::question;

/// Tools as a wire passes them through.
pub(crate) fn hosted(tools: &[HostedTool], origin: &str) -> Vec<Opaque> {
    let tools = tools.iter().map(|tool| Opaque {
        origin: origin.to_owned(),
        data: tool.json(),
    });
    tools.collect()
}

/// What is wrong with tools: those that no provider of this wire runs, by `not_hosted`; else what
/// its validator finds in a request that is otherwise good, as `body` renders it.
pub(crate) fn judged(
    tools: &[HostedTool],
    not_hosted: impl Fn(&HostedTool) -> Option<String>,
    body: impl Fn(&Request) -> Result<Vec<u8>, Failure>,
    validate: impl Fn(&Value) -> Vec<Fault>,
) -> Vec<String> {
    let strange: Vec<String> = tools.iter().filter_map(not_hosted).collect();
    if !strange.is_empty() {
        return strange;
    }
    let judge = |request: &Request| {
        let body = serde_json::from_slice(&body(request).ok()?).ok()?;
        Some(validate(&body))
    };
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
