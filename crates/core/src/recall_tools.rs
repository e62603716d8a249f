//! [`RecallTools`]: the tools with which a model recalls messages that were removed from its view.
//!
//! They only read, need no approval, and see the log of one
//! session. Their results are ordinary tool results and may be evicted too.

use std::sync::Arc;

use plimsoll_context::{Bytes, Part, Tokens, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::recall::{Hit, LogMessages, MessageKind, RecalledItem, TextExcerpt, matches, page};
use crate::store::{SessionId, SessionStore};
use crate::tool::{FnTool, Tool, ToolError, ToolOutput};

/// Default page size of a recalled text: about 2,700 tokens of English.
pub const RECALL_PAGE: Bytes = Bytes(8_000);
/// Maximum page size, even if the model asks for more: at least 8,000 tokens, as large as a tool
/// result may be.
pub const RECALL_PAGE_MAX: Bytes = Bytes(32_000);
/// Minimum page size, so that a search result fits.
const RECALL_PAGE_MIN: Bytes = Bytes(512);
/// Lower bound for the bytes of a token in English, code and tables of numbers.
const BYTES_PER_TOKEN: u64 = 2;
/// Default number of search results.
const HITS: usize = 5;
/// Maximum number of search results.
const HITS_MAX: usize = 20;

/// Creates the recall tools.
#[derive(Clone)]
pub struct RecallTools {
    store: Arc<dyn SessionStore>,
    session: SessionId,
    /// Read at the first call.
    messages: Arc<Mutex<LogMessages>>,
    /// Maximum page size.
    most: Bytes,
}

#[derive(Deserialize)]
struct RecallInput {
    #[serde(alias = "execution_id")]
    id: String,
    offset: Option<u64>,
    limit: Option<u64>,
    pattern: Option<String>,
}

#[derive(Deserialize)]
struct SearchInput {
    query: String,
    limit: Option<usize>,
}

impl RecallTools {
    /// Creates the tools for one session.
    #[must_use]
    pub fn new(store: Arc<dyn SessionStore>, session: SessionId) -> Self {
        Self {
            store,
            session,
            messages: Arc::default(),
            most: RECALL_PAGE_MAX,
        }
    }

    /// Limits pages to the maximum size of a tool result, even if the model asks for more. The
    /// policy then never has to shorten a page.
    #[must_use]
    pub fn for_results(mut self, max_result: Tokens) -> Self {
        let bytes = Bytes(max_result.0.saturating_mul(BYTES_PER_TOKEN));
        self.most = bytes.clamp(RECALL_PAGE_MIN, RECALL_PAGE_MAX);
        self
    }

    /// Creates `recall` and `recall_search`.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let recall = self.recall(
            "recall",
            "Brings back what was shortened or left out above, exactly, by its id (m12); a long \
             text in pages.",
            ("id", "Such as m12"),
        );
        let spec = spec(
            "recall_search",
            "Finds what was shortened or left out above by words in it, and says its ids.",
            json!({
                "type": "object",
                "properties": {
                    "query": { "type": "string", "description": "Words that it has" },
                    "limit": { "type": "integer", "description": "Results at most" }
                },
                "required": ["query"]
            }),
        );
        let from = self.clone();
        let look = move |input: SearchInput| from.clone().look(input);
        vec![recall, Arc::new(FnTool::new(spec, look).idempotent())]
    }

    /// Creates `get_tool_response(execution_id)`: `recall` under a name that some prompts and
    /// models use.
    #[must_use]
    pub fn get_tool_response(&self) -> Arc<dyn Tool> {
        self.recall(
            "get_tool_response",
            "Brings back a tool's whole response that was shortened or left out above, exactly; \
             a long one in pages.",
            ("execution_id", "The id that stands in its place"),
        )
    }

    /// Creates a tool that returns a message. `id` is the argument for its id, with a description.
    fn recall(&self, name: &str, description: &str, id: (&str, &str)) -> Arc<dyn Tool> {
        let (id, what) = id;
        let schema = json!({
            "type": "object",
            "properties": {
                id: { "type": "string", "description": what },
                "offset": { "type": "integer", "description": "First byte" },
                "limit": { "type": "integer", "description": "Bytes at most" },
                "pattern": { "type": "string", "description": "Only lines with this; may be a regex" }
            },
            "required": [id]
        });
        let from = self.clone();
        let bring = move |input: RecallInput| from.clone().bring(input);
        Arc::new(FnTool::new(spec(name, description, schema), bring).idempotent())
    }

    async fn bring(self, wanted: RecallInput) -> Result<ToolOutput, ToolError> {
        let mut messages = self.messages.lock().await;
        let recalled = messages.recall(&*self.store, &self.session, &wanted.id);
        let recalled = recalled.await.map_err(ToolError::new)?;
        drop(messages);
        let limit = wanted.limit.filter(|limit| *limit > 0);
        let limit = limit.map_or(RECALL_PAGE, Bytes).min(self.most);
        let offset = wanted.offset.unwrap_or(0);
        let pattern = wanted.pattern.filter(|pattern| !pattern.is_empty());
        // Reading and searching a text of many megabytes takes time.
        let work = tokio::task::spawn_blocking(move || {
            let text = recalled.text();
            let piece = match pattern {
                Some(pattern) => matches(&text, &pattern, limit),
                None => page(&text, offset, limit),
            };
            let piece = piece.map_err(ToolError)?;
            Ok(result(&recalled, piece))
        });
        work.await.map_err(ToolError::new)?
    }

    async fn look(self, input: SearchInput) -> Result<ToolOutput, ToolError> {
        let limit = input.limit.filter(|limit| *limit > 0);
        let limit = limit.map_or(HITS, |limit| limit.min(HITS_MAX));
        let mut messages = self.messages.lock().await;
        let hits = messages.search(&*self.store, &self.session, &input.query, limit);
        let hits = hits.await.map_err(ToolError::new)?;
        Ok(found(&hits, RECALL_PAGE.min(self.most)).into())
    }
}

fn spec(name: &str, description: &str, schema: Value) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema,
    }
}

/// Returns the result for the model: one line in brackets, followed by the text. The last page also
/// contains the images and files.
fn result(recalled: &RecalledItem, piece: TextExcerpt) -> ToolOutput {
    let name = name(recalled.kind, recalled.tool.as_deref());
    let mut text = format!("[{}, {name}: {}]\n", recalled.id, piece.note);
    text.push_str(&piece.text);
    let mut parts = vec![Part::text(text)];
    if piece.is_last {
        let rest = recalled.message.parts().iter();
        let rest = rest.filter(|part| matches!(part, Part::Image(_) | Part::File(_)));
        parts.extend(rest.cloned());
    }
    ToolOutput { parts }
}

fn found(hits: &[Hit], page: Bytes) -> String {
    let Some(most) = hits.iter().map(|hit| hit.terms).max() else {
        return "[nothing that left has any of these words; try others, or their beginnings]"
            .to_owned();
    };
    let mut text = String::new();
    let limit = usize::try_from(page.0).unwrap_or(usize::MAX);
    for hit in hits {
        let few = if hit.terms < most {
            ", fewer of the words"
        } else {
            ""
        };
        let name = name(hit.kind, hit.tool.as_deref());
        // On one line, so that each hit is readable even if the result is shortened.
        let snippet = hit.snippet.split_whitespace().collect::<Vec<_>>().join(" ");
        let row = format!(
            "{}, {name}, {} bytes{few}, at offset {}: {snippet}\n",
            hit.id, hit.bytes, hit.offset
        );
        if text.len() + row.len() > limit && !text.is_empty() {
            break;
        }
        text.push_str(&row);
    }
    text.push_str("[recall brings one back: its id, and offset or pattern for a part of it]");
    text
}

fn name(kind: MessageKind, tool: Option<&str>) -> String {
    match tool {
        Some(tool) => format!("result of {tool}"),
        None => kind.to_string(),
    }
}
