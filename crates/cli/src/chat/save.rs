//! Saves a chat as a file: JSON in OpenAI's format, which most tools read, or Markdown. It contains
//! the current view; removed messages are only in the log.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll::context::Item;
use plimsoll::{Message, Session, SessionStore};

use crate::error::CliError;
use crate::terminal::text::fenced;
use crate::view::{openai, started};
use crate::write;

/// Writes a session's view to a new file. Returns the number of messages. An existing file is not
/// overwritten.
pub(super) async fn save(
    store: &dyn SessionStore,
    session: &Session,
    file: &Path,
) -> Result<usize, CliError> {
    let log = store.load(session.id()).await?;
    let (model, system) = started(&log);
    let text = if file.extension().is_some_and(|end| end == "md") {
        markdown(&model, session.view().transcript().items())
    } else {
        let chat = openai(&model, &system, session.view())?;
        serde_json::to_string_pretty(&chat)? + "\n"
    };
    write::create(file, &text, "; choose another name")?;
    Ok(session.view().transcript().items().len())
}

fn markdown(model: &str, items: &[Item]) -> String {
    let mut text = format!("# A chat with {model}\n");
    for item in items {
        let message = item.message.as_ref();
        let title = match message {
            Message::System { .. } => "System",
            Message::User { .. } => "You",
            Message::Notice { .. } => "Notice of the run",
            Message::Summary { .. } => "Summary of the conversation before",
            Message::Assistant { .. } => "Model",
            Message::ToolResult(_) => "Result",
        };
        let _ = write!(text, "\n## {title}\n");
        let said = match message {
            Message::Assistant { parts } => {
                let texts = parts.iter().filter_map(|part| part.as_text());
                texts.collect::<Vec<_>>().join("\n\n")
            }
            Message::ToolResult(_) => fenced(&message.text()),
            message => message.text(),
        };
        if !said.trim().is_empty() {
            let _ = write!(text, "\n{}\n", said.trim_end());
        }
        for call in message.calls() {
            let _ = write!(
                text,
                "\nCalls `{}`:\n\n{}\n",
                call.name,
                fenced(&call.arguments)
            );
        }
    }
    text
}
