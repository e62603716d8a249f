//! [`RequestExplanation`]: the requests that would be sent for a model. Includes an example that is
//! rendered like every request. This module sends nothing.

mod sample;

use plimsoll_agent::{Request, ThinkingLevel};
use serde::Serialize;
use serde_json::Value;

use crate::api_key::Variables;
use crate::builder::ModelClientBuilder;
use crate::client::ModelClient;
use crate::error::ProviderError;
use crate::vendor::WindowReport;

/// The requests that would be sent for a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestExplanation {
    /// The protocol of its servers.
    pub wire: &'static str,
    /// The address of the server, without any key.
    pub address: String,
    /// The variable that contains the key. `None` if no key is sent.
    pub key_from: Option<String>,
    /// The name of the dialect or profile of the requests.
    pub profile: String,
    /// The way in which its server reports the context window.
    pub window_from: &'static str,
    /// The kinds of the provider's own tools.
    pub hosted_tools: Vec<&'static str>,
    /// An example.
    pub sample: Sample,
}

/// An example: a question, with a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// The request.
    pub request: Value,
    /// The names of the parts of the example that the request leaves out.
    pub left_out: Vec<String>,
}

impl ModelClientBuilder {
    /// Explains the requests that would be sent, with these variables as the environment, and with
    /// this thinking level in the example. Sends nothing.
    ///
    /// # Errors
    /// A [`ProviderError`] if a setting is missing or wrong.
    pub fn explain(
        self,
        variables: Variables<'_>,
        thinking: Option<ThinkingLevel>,
    ) -> Result<RequestExplanation, ProviderError> {
        Ok(explained(&self.build_with(variables)?, thinking))
    }
}

/// Creates a short request.
#[cfg(test)]
pub(crate) fn question() -> Request {
    sample::question(None)
}

#[cfg(test)]
pub(crate) fn question_at(level: ThinkingLevel) -> Request {
    sample::question(Some(level))
}

fn explained(client: &ModelClient, thinking: Option<ThinkingLevel>) -> RequestExplanation {
    let ModelClient {
        connection,
        protocol,
        ..
    } = client;
    let hosted = protocol.hosted_tools();
    RequestExplanation {
        wire: client.wire.label(),
        address: connection.http.base.to_string(),
        key_from: connection.key_from.clone(),
        profile: protocol.profile_name().to_owned(),
        window_from: window_from(connection.tells),
        hosted_tools: hosted.map(|tools| tools.kinds).unwrap_or_default(),
        sample: sampled(client, &sample::question(thinking)),
    }
}

/// Renders the example.
fn sampled(client: &ModelClient, request: &Request) -> Sample {
    let notes = client.rendered(request).notes.into_iter();
    Sample {
        left_out: notes.map(|note| format!("{:?}", note.what)).collect(),
        request: client.json(request),
    }
}

fn window_from(tells: WindowReport) -> &'static str {
    match tells {
        WindowReport::Nothing => "not reported; learned from a refusal",
        WindowReport::Models => "its list of models",
        WindowReport::Props => "/props, the window of one slot",
        WindowReport::Ollama => "/api/ps, once the model is loaded",
        WindowReport::LmStudio => "/api/v0/models, once the model is loaded",
        WindowReport::LikeAnthropic => "the model's own entry, or /props",
        WindowReport::Anthropic | WindowReport::Google => "the model's own entry",
        WindowReport::Perhaps => "its list of models or /props, if it has them",
    }
}

#[cfg(test)]
mod tests;
