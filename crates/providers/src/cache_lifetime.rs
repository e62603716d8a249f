//! How requests ask a server to keep the entries of its prompt cache longer than usual.

use std::borrow::Cow;
use std::time::Duration;

use plimsoll_agent::Request;
use plimsoll_context::CacheRetention;
use plimsoll_wire::openai_chat::CacheMarks;
use serde_json::{Map, Value};

use crate::client::Connection;
use crate::model_ref::ModelRef;
use crate::protocol::dialect_of;
use crate::vendor::Wire;

/// OpenAI's key for the longer lifetime, and its only value: one day.
const KEY: &str = "prompt_cache_retention";
const DAY: &str = "24h";

/// Anthropic's longer lifetime: one hour.
pub(crate) const MARKED: Duration = Duration::from_secs(3_600);

/// The way to ask a server for a longer cache lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheLifetime {
    /// The lifetime cannot be changed.
    Fixed,
    /// By a key of the request, if the model is known to accept it.
    ByKey,
    /// At each breakpoint, with one lifetime for all of them.
    ByMark,
    /// At each breakpoint, each with its own lifetime.
    ByEachMark,
}

/// Checks whether entries can be kept for this retention.
pub(crate) fn can_keep(
    connection: &Connection,
    retention: CacheRetention,
    lifetime: CacheLifetime,
) -> bool {
    match (retention, lifetime) {
        (CacheRetention::Usual, _)
        | (_, CacheLifetime::ByEachMark)
        | (CacheRetention::Long, CacheLifetime::ByMark) => true,
        (CacheRetention::Long, CacheLifetime::ByKey) => connection.facts.longer_lives.is_some(),
        _ => false,
    }
}

/// Checks whether requests set the longer lifetime of a model's cache at each breakpoint. This is
/// the case in Anthropic's own protocol, and at a gateway for models with Anthropic's cache marks.
pub(crate) fn keeps_by_mark(model: &ModelRef) -> bool {
    match model.vendor().wire {
        Wire::Messages => true,
        Wire::Chat => dialect_of(model).cache == CacheMarks::Parts,
        _ => false,
    }
}

/// Returns the extra keys of a request. Adds the key for a longer lifetime if the request wants one
/// and the server reads it from a key. A value set by the caller is kept.
pub(crate) fn extra_keys<'a>(
    connection: &'a Connection,
    request: &Request,
    lifetime: CacheLifetime,
) -> Cow<'a, Map<String, Value>> {
    let extra = &connection.extra;
    let retention = request.cache.retention;
    let wanted = retention == CacheRetention::Long && lifetime == CacheLifetime::ByKey;
    if !wanted || !can_keep(connection, retention, lifetime) || extra.contains_key(KEY) {
        return Cow::Borrowed(extra);
    }
    let mut extra = extra.clone();
    extra.insert(KEY.to_owned(), DAY.into());
    Cow::Owned(extra)
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Provider;
    use serde_json::json;

    use super::*;
    use crate::explain::question;
    use crate::{ModelClient, ModelClientBuilder, Secret};

    fn builder(model: &str) -> ModelClientBuilder {
        ModelClient::builder(model)
            .base_url("http://127.0.0.1:1/v1")
            .key(Secret::new("k"))
    }

    #[test]
    fn who_keeps_its_cache_longer() {
        for (model, head, long) in [
            ("anthropic/claude-opus-5", true, true),
            ("anthropic/claude-of-tomorrow", true, true),
            ("openai/gpt-5", false, true),
            ("openai/gpt-4o", false, false),
            ("openai-responses/gpt-5.2", false, true),
            ("openai-responses/gpt-5.6", false, false),
            ("openrouter/anthropic/claude-opus-5", false, true),
            ("openrouter/openai/gpt-5", false, false),
            ("groq/llama-3.3-70b", false, false),
            ("ollama/qwen3", false, false),
        ] {
            let provider = builder(model).build_with(&|_| None).unwrap();
            assert!(provider.keeps(CacheRetention::Usual), "{model}");
            assert_eq!(provider.keeps(CacheRetention::Head), head, "{model}");
            assert_eq!(provider.keeps(CacheRetention::Long), long, "{model}");
        }
    }

    #[test]
    fn a_day_is_asked_for_where_it_is_wanted_and_the_host_has_the_last_word() {
        let sent = |builder: ModelClientBuilder, retention| {
            let mut request = question();
            request.cache.retention = retention;
            let chat = builder.build_with(&|_| None).unwrap();
            chat.json(&request).get(KEY).cloned()
        };
        let gpt = || builder("openai/gpt-5");
        assert_eq!(sent(gpt(), CacheRetention::Usual), None);
        assert_eq!(sent(gpt(), CacheRetention::Long), Some(json!("24h")));
        let old = builder("openai/gpt-4o");
        assert_eq!(sent(old, CacheRetention::Long), None);
        let mut extra = Map::new();
        extra.insert(KEY.to_owned(), "in_memory".into());
        let own = gpt().extra(extra);
        assert_eq!(sent(own, CacheRetention::Long), Some(json!("in_memory")));
    }
}
