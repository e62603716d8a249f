//! Drives the compaction of yoagent as its agent loop does: results are capped on arrival, and its
//! default compaction runs before each request. Its budget is calibrated by the provider's reports,
//! and its target follows the growth of the session.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_context::{CallId, Message, Part, Tokens, ToolCall};
use plimsoll_replay::Compactor;
use serde_json::Value;
use yoagent::context::{
    CompactionStrategy, ContextConfig, ContextTracker, DefaultCompaction, total_tokens,
    truncate_tool_output,
};
use yoagent::types::{AgentMessage, Content, Message as Theirs, StopReason, Usage};

/// yoagent with the settings that it derives from the model's window.
pub struct Yoagent {
    config: ContextConfig,
    system: Vec<Arc<Message>>,
    messages: Vec<AgentMessage>,
    /// Each message as it was added. The index is its timestamp.
    originals: Vec<(AgentMessage, Arc<Message>)>,
    /// The tool name of each call.
    tools: HashMap<String, String>,
    /// The tokens of the last request.
    sent: u64,
    run: Run,
}

/// The agent loop's state for one run, from a prompt to its answer.
#[derive(Default)]
struct Run {
    tracker: ContextTracker,
    before: Option<usize>,
    growth: usize,
    samples: usize,
}

impl Yoagent {
    /// Creates the compactor for a model with this window.
    pub fn new(window: Tokens) -> Self {
        let window = u32::try_from(window.0).unwrap_or(u32::MAX);
        Self {
            config: ContextConfig::from_context_window(window),
            system: Vec::new(),
            messages: Vec::new(),
            originals: Vec::new(),
            tools: HashMap::new(),
            sent: 0,
            run: Run::default(),
        }
    }

    /// Converts a message to yoagent's form.
    fn theirs(&mut self, message: &Message) -> Theirs {
        let timestamp = self.originals.len() as u64;
        let content: Vec<Content> = message.parts().iter().map(content).collect();
        match message {
            Message::Assistant { .. } => {
                for call in message.calls() {
                    self.tools.insert(call.id.0.clone(), call.name.clone());
                }
                let stop = if message.calls().next().is_some() {
                    StopReason::ToolUse
                } else {
                    StopReason::Stop
                };
                Theirs::assistant(content, stop, "model", "provider", Usage::default())
                    .with_timestamp(timestamp)
            }
            Message::ToolResult(result) => Theirs::ToolResult {
                tool_call_id: result.call.0.clone(),
                tool_name: self.tools.get(&result.call.0).cloned().unwrap_or_default(),
                content: vec![Content::Text {
                    text: message.text(),
                }],
                is_error: result.is_error,
                timestamp,
            },
            _ => Theirs::User {
                content: vec![Content::Text {
                    text: message.text(),
                }],
                timestamp,
            },
        }
    }

    /// Converts a message of yoagent's context to our form. Returns the original one if it is
    /// unchanged.
    fn ours(&self, message: &AgentMessage) -> Option<Arc<Message>> {
        let theirs = message.as_llm()?;
        let (Theirs::User { timestamp, .. }
        | Theirs::Assistant { timestamp, .. }
        | Theirs::ToolResult { timestamp, .. }) = theirs;
        let original = usize::try_from(*timestamp)
            .ok()
            .and_then(|at| self.originals.get(at));
        if let Some((_, ours)) = original.filter(|(original, _)| original == message) {
            return Some(Arc::clone(ours));
        }
        Some(Arc::new(match theirs {
            Theirs::User { content, .. } => Message::user(text(content)),
            Theirs::Assistant { content, .. } => Message::Assistant {
                parts: content.iter().filter_map(part).collect(),
            },
            Theirs::ToolResult {
                tool_call_id,
                content,
                is_error,
                ..
            } => {
                let call = CallId(tool_call_id.clone());
                if *is_error {
                    Message::error_result(call, text(content))
                } else {
                    Message::result(call, text(content))
                }
            }
        }))
    }

    /// Returns the settings for this request, as the agent loop derives them.
    fn settings(&mut self, estimated: usize) -> ContextConfig {
        let run = &mut self.run;
        let overhead = run
            .tracker
            .estimate_context_tokens(&self.messages)
            .saturating_sub(estimated);
        if let Some(before) = run.before {
            run.samples += 1;
            run.growth += estimated.saturating_sub(before);
        }
        let growth = match run.samples {
            0 => 0.0,
            samples => run.growth as f64 / samples as f64,
        };
        let mut config = self.config.clone();
        if overhead > 0 {
            let floor = config.max_context_tokens / 10;
            config.max_context_tokens = config
                .max_context_tokens
                .saturating_sub(overhead)
                .max(floor);
            config.system_prompt_tokens = 0;
        }
        config.compact_target_ratio = config.effective_target_ratio(growth);
        config
    }
}

impl Compactor for Yoagent {
    fn push(&mut self, message: &Arc<Message>, tokens: Tokens) {
        if message.is_system() {
            self.system.push(Arc::clone(message));
            return;
        }
        let last = self.originals.last().map(|(_, last)| last);
        let is_answered = last.is_some_and(|last| {
            matches!(**last, Message::Assistant { .. }) && last.calls().next().is_none()
        });
        if message.is_user() && is_answered {
            self.run = Run::default();
        }
        let theirs = AgentMessage::Llm(self.theirs(message));
        self.originals.push((theirs.clone(), Arc::clone(message)));
        self.messages
            .push(if self.config.truncate_tool_output_on_append {
                truncate_tool_output(theirs, &self.config)
            } else {
                theirs
            });
        if matches!(**message, Message::Assistant { .. }) {
            let usage = Usage {
                input: self.sent,
                output: tokens.0,
                ..Usage::default()
            };
            self.run
                .tracker
                .record_usage(&usage, self.messages.len() - 1);
        }
    }

    fn request(&mut self) -> Vec<Arc<Message>> {
        let before = (self.messages.len(), total_tokens(&self.messages));
        let config = self.settings(before.1);
        self.messages = DefaultCompaction.compact(std::mem::take(&mut self.messages), &config);
        let after = (self.messages.len(), total_tokens(&self.messages));
        if after != before {
            self.run.tracker.reset();
        }
        self.run.before = Some(after.1);
        let ours = self
            .messages
            .iter()
            .filter_map(|message| self.ours(message));
        self.system.iter().cloned().chain(ours).collect()
    }

    fn sent(&mut self, tokens: Tokens) {
        self.sent = tokens.0;
    }
}

fn content(part: &Part) -> Content {
    match part {
        Part::Thinking(thinking) => Content::thinking(thinking.text.clone()),
        Part::ToolCall(call) => {
            let arguments = serde_json::from_str(&call.arguments);
            let arguments = arguments.unwrap_or_else(|_| Value::String(call.arguments.clone()));
            Content::tool_call(call.id.0.clone(), call.name.clone(), arguments)
        }
        Part::Text { text } => Content::Text { text: text.clone() },
        Part::Image(_) | Part::File(_) | Part::Opaque(_) => Content::Text {
            text: String::new(),
        },
    }
}

fn part(content: &Content) -> Option<Part> {
    Some(match content {
        Content::Text { text } => Part::text(text),
        Content::ToolCall {
            id,
            name,
            arguments,
            ..
        } => Part::ToolCall(ToolCall {
            id: CallId(id.clone()),
            name: name.clone(),
            arguments: arguments.to_string(),
            opaque: None,
        }),
        _ => return None,
    })
}

fn text(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|one| match one {
        Content::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
