//! How a server is asked to keep its prompt cache longer than usual, and which one can be. Anthropic's
//! own way is in `messages.rs`; what it costs is in the facts of a model.

use std::borrow::Cow;
use std::time::Duration;

use plimsoll_agent::Request;
use plimsoll_context::CacheRetention;
use plimsoll_wire::openai_chat::CacheMarks;
use serde_json::{Map, Value};

use crate::builder::dialect_of;
use crate::line::Line;
use crate::model_ref::ModelRef;
use crate::vendor::Wire;

/// OpenAI's key for it, and the one longer life that there is: a day.
const KEY: &str = "prompt_cache_retention";
const DAY: &str = "24h";

/// The longer life that Anthropic has: an hour.
pub(crate) const MARKED: Duration = Duration::from_secs(3_600);

/// How a server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// It is not.
    Nothing,
    /// By a key of the request, where the model is known to take it.
    ByKey,
    /// At each breakpoint.
    ByMark,
}

/// Whether entries can be kept so long.
pub(crate) fn keeps(line: &Line, retention: CacheRetention, asks: Asks) -> bool {
    match (retention, asks) {
        (CacheRetention::Usual, _) | (CacheRetention::Long, Asks::ByMark) => true,
        (CacheRetention::Long, Asks::ByKey) => line.facts.longer_lives.is_some(),
        _ => false,
    }
}

/// Whether the longer life of a model's cache is asked for at each breakpoint: by Anthropic's own wire,
/// and by a gateway's to their models.
pub(crate) fn keeps_by_mark(model: &ModelRef) -> bool {
    match model.vendor().wire {
        Wire::Messages => true,
        Wire::Chat => dialect_of(model).cache == CacheMarks::Parts,
        _ => false,
    }
}

/// The further keys of a request, with that one among them where it is asked for; what the host says of
/// it goes before that.
pub(crate) fn kept<'a>(
    line: &'a Line,
    request: &Request,
    asks: Asks,
) -> Cow<'a, Map<String, Value>> {
    let retention = request.cache.retention;
    let wanted = retention == CacheRetention::Long && asks == Asks::ByKey;
    if !wanted || !keeps(line, retention, asks) || line.extra.contains_key(KEY) {
        return Cow::Borrowed(&line.extra);
    }
    let mut extra = line.extra.clone();
    extra.insert(KEY.to_owned(), DAY.into());
    Cow::Owned(extra)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll_core::Provider;
    use serde_json::json;

    use super::*;
    use crate::explain::question;
    use crate::{OpenAiChat, OpenAiChatBuilder, Secret};

    fn builder(model: &str) -> OpenAiChatBuilder {
        let builder = OpenAiChat::builder(model.parse().unwrap());
        builder
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
            let provider: Arc<dyn Provider> = builder(model).provider_with(&|_| None).unwrap();
            assert!(provider.keeps(CacheRetention::Usual), "{model}");
            assert_eq!(provider.keeps(CacheRetention::Head), head, "{model}");
            assert_eq!(provider.keeps(CacheRetention::Long), long, "{model}");
        }
    }

    #[test]
    fn a_day_is_asked_for_where_it_is_wanted_and_the_host_has_the_last_word() {
        let sent = |builder: OpenAiChatBuilder, retention| {
            let mut request = question();
            request.cache.retention = retention;
            let chat = builder.build_with(&|_| None).unwrap();
            let body = chat.rendered(&request).unwrap().body;
            let body: Value = serde_json::from_slice(&body).unwrap();
            body.get(KEY).cloned()
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
