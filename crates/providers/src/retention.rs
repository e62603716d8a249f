//! How a server is asked to keep its prompt cache longer than usual, and which one can be. Anthropic's
//! own way is in `messages.rs`; what it costs is in the facts of a model.

use std::borrow::Cow;

use plimsoll_agent::Request;
use plimsoll_context::CacheRetention;
use serde_json::{Map, Value};

use crate::line::Line;

/// OpenAI's key for it, and the one longer life that there is: a day.
const KEY: &str = "prompt_cache_retention";
const DAY: &str = "24h";

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
