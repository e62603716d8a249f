//! OpenAI Responses. Nothing is stored at the provider: each request contains the whole history.

use plimsoll_agent::{Request, ThinkingLevel};
use plimsoll_wire::openai_responses::{
    ORIGIN, ResponsesProfile, ResponsesStreamState, hosted_kinds, not_hosted,
};
use plimsoll_wire::{Effort, EncodedRequest, RenderInput, StreamDecoder};
use reqwest::Url;

use super::{HostedTools, MAX_TOOLS, Protocol, common_input, effort_of, hosted, rendered};
use crate::cache_lifetime::{CacheLifetime, extra_keys};
use crate::client::Connection;
use crate::model_ref::ModelRef;
use crate::models::ModelFacts;
use crate::rejected_reasoning::RejectionTexts;
use crate::thinking::{ThinkingOff, openai_efforts};

/// The endpoint below the base URL.
const PATH: &str = "responses";

/// The texts with which servers reject reasoning, in lower case.
pub(crate) const REJECTIONS: RejectionTexts = RejectionTexts {
    origin: ORIGIN,
    texts: &[
        "encrypted content",
        "encrypted_content",
        "items are not persisted when `store`",
        "of type 'reasoning' was provided without its required",
        "without its required 'reasoning' item",
    ],
};

/// Responses as a model accepts it.
#[derive(Debug)]
pub(crate) struct ResponsesProtocol {
    profile: ResponsesProfile,
    thinking_off: ThinkingOff,
}

impl ResponsesProtocol {
    pub(crate) fn new(model: &ModelRef, facts: &ModelFacts, profile: ResponsesProfile) -> Self {
        let lowest = profile.efforts.iter().min();
        Self {
            thinking_off: lowest.map_or_else(
                || ThinkingOff::by_facts(model, facts),
                |effort| ThinkingOff::Effort(*effort),
            ),
            profile,
        }
    }

    /// Returns the effort for a level. Returns `None` for `Off` if the model cannot be told not to
    /// reason.
    fn effort(&self, level: Option<ThinkingLevel>) -> Option<Effort> {
        match (level?, self.thinking_off) {
            (ThinkingLevel::Off, ThinkingOff::Effort(effort)) => Some(effort),
            (ThinkingLevel::Off, _) => None,
            (level, _) => Some(effort_of(level)),
        }
    }
}

impl Protocol for ResponsesProtocol {
    fn profile_name(&self) -> &str {
        &self.profile.name
    }

    fn takes_images(&self) -> bool {
        self.profile.images
    }

    fn url(&self, connection: &Connection) -> Url {
        connection.http.base.endpoint(PATH)
    }

    fn render(&self, connection: &Connection, request: &Request) -> EncodedRequest {
        let extra = extra_keys(connection, request, self.cache_lifetime());
        let input = RenderInput {
            hosted_tools: &hosted(&request.hosted_tools, ORIGIN),
            effort: self.effort(request.sampling.thinking),
            extra: Some(&extra),
            ..common_input(connection, request)
        };
        rendered(&input, request, &self.profile)
    }

    fn decoder(&self, _: &Request) -> Box<dyn StreamDecoder> {
        Box::new(ResponsesStreamState::new())
    }

    fn cache_lifetime(&self) -> CacheLifetime {
        if self.profile.cache_key {
            CacheLifetime::ByKey
        } else {
            CacheLifetime::Fixed
        }
    }

    fn thinking_off(&self) -> ThinkingOff {
        self.thinking_off
    }

    fn max_tools(&self) -> Option<usize> {
        Some(MAX_TOOLS)
    }

    fn sends_thinking_levels(&self) -> bool {
        !self.profile.efforts.is_empty()
    }

    fn hosted_tools(&self) -> Option<HostedTools> {
        Some(HostedTools {
            kinds: hosted_kinds(),
            fault: not_hosted,
        })
    }

    fn rejection_texts(&self) -> Option<RejectionTexts> {
        Some(REJECTIONS)
    }
}

/// The owner of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerOwner {
    /// The vendor.
    Vendors,
    /// Possibly someone else, with a compatible API.
    Another,
}

/// Returns the requirements of one of OpenAI's models. An unknown name gets the requirements of the
/// newest models.
#[must_use]
pub fn responses_profile(name: &str) -> ResponsesProfile {
    ModelRef::parse(&format!("openai-responses/{name}")).map_or_else(
        |_| ResponsesProfile::openai(),
        |model| profile_of(&model, ServerOwner::Vendors),
    )
}

/// Returns the requirements of a model, as far as its name shows them.
pub(crate) fn profile_of(model: &ModelRef, server: ServerOwner) -> ResponsesProfile {
    let family = openai_efforts(model.name());
    match (family, server) {
        (Some([]), _) => ResponsesProfile::plain(),
        (Some(efforts), _) => ResponsesProfile {
            efforts: efforts.to_vec(),
            ..ResponsesProfile::openai()
        },
        (None, ServerOwner::Vendors) => ResponsesProfile::openai(),
        (None, ServerOwner::Another) => ResponsesProfile::compatible(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::effort_of;
    use super::*;
    use plimsoll_agent::ThinkingLevel;
    use plimsoll_wire::openai_responses::ReasoningItems;

    #[test]
    fn a_level_becomes_what_the_family_accepts() {
        use ThinkingLevel::{High, Low, Medium, Minimal};
        let sent = |name: &str, level: ThinkingLevel| {
            let model = ModelRef::parse(&format!("openai-responses/{name}")).unwrap();
            let profile = profile_of(&model, ServerOwner::Vendors);
            effort_of(level).nearest(&profile.efforts).map(Effort::name)
        };
        for (name, [minimal, low, medium, high]) in [
            ("gpt-5-2025-08-07", ["minimal", "low", "medium", "high"]),
            ("gpt-5-codex", ["low", "low", "medium", "high"]),
            ("gpt-5-pro", ["high"; 4]),
            ("gpt-5.1", ["low", "low", "medium", "high"]),
            ("gpt-5.2-chat-latest", ["medium"; 4]),
            ("openai/gpt-5.4-pro", ["medium", "medium", "medium", "high"]),
            ("o4-mini", ["low", "low", "medium", "high"]),
            ("a-model-of-tomorrow", ["low", "low", "medium", "high"]),
        ] {
            let levels = [Minimal, Low, Medium, High].map(|level| sent(name, level));
            assert_eq!(levels, [minimal, low, medium, high].map(Some), "{name}");
        }
        for name in ["gpt-4.1", "ft:gpt-4o:mine", "gpt-5-chat-latest"] {
            assert_eq!(sent(name, High), None, "{name}");
        }
    }

    #[test]
    fn another_server_gives_its_reasoning_in_the_open() {
        let of = |name: &str, server| {
            let model = ModelRef::parse(&format!("openai-responses/{name}")).unwrap();
            profile_of(&model, server).reasoning
        };
        assert_eq!(of("qwen3", ServerOwner::Another), ReasoningItems::Plain);
        assert_eq!(of("gpt-5", ServerOwner::Another), ReasoningItems::Encrypted);
        assert_eq!(of("gpt-7", ServerOwner::Vendors), ReasoningItems::Encrypted);
        assert_eq!(of("gpt-4o", ServerOwner::Another), ReasoningItems::None);
    }
}
