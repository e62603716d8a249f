//! The span `execute_tool {name}` of an executed tool call.

use plimsoll_context::{Message, ToolCall, ToolResult};
use tracing::Span;
use tracing::field::Empty;

use super::contents::cut;
use super::{SpanContext, fail};

/// A tool call in progress.
pub(crate) struct ToolSpan {
    pub(crate) span: Span,
    contents: bool,
}

impl ToolSpan {
    pub(crate) fn begin(context: &SpanContext, call: &ToolCall) -> Self {
        let span = span!(
            "execute_tool",
            "internal",
            otel.name = %format_args!("execute_tool {}", call.name),
            gen_ai.tool.name = call.name.as_str(),
            gen_ai.tool.call.id = call.id.0.as_str(),
            "gen_ai.tool.type" = "function",
            gen_ai.conversation.id = context.session.as_ref().map(|session| session.as_str()),
            gen_ai.tool.call.arguments = Empty,
            gen_ai.tool.call.result = Empty,
        );
        let contents = context.contents && !span.is_disabled();
        if contents {
            span.record("gen_ai.tool.call.arguments", &*cut(&call.arguments));
        }
        Self { span, contents }
    }

    /// Records the result and, if the call failed, its `error.type`.
    pub(crate) fn end(self, result: &ToolResult, fault: Option<&'static str>) {
        if let Some(fault) = fault {
            fail(&self.span, fault);
        }
        if self.contents {
            let text = Message::ToolResult(result.clone()).text();
            self.span.record("gen_ai.tool.call.result", &*cut(&text));
        }
    }
}
