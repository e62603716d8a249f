//! The commands that a client offers in a session: some of the chat commands, and the user's prompt
//! templates.

use std::path::Path;

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, UnstructuredCommandInput,
};
use plimsoll::Part;

use crate::chat::parse::{COMMANDS, ChatLine, CommandArgument};
use crate::chat::templates::Templates;

/// The chat commands that are offered. Editors have their own counterparts of the others.
const OFFERED: [&str; 4] = ["compact", "context", "cost", "go"];

/// A parsed prompt.
pub(super) enum PromptCommand {
    /// A message for the model.
    Say(Vec<Part>),
    GoOn,
    Compact(Option<String>),
    Context,
    Cost,
}

/// The commands of one session.
pub(super) struct Commands(Templates);

impl Commands {
    pub(super) fn new(root: &Path) -> Self {
        Self(Templates::of(root))
    }

    /// Returns all commands, for the client to offer.
    pub(super) fn offered(&self) -> AvailableCommandsUpdate {
        let ours = COMMANDS
            .iter()
            .filter(|command| OFFERED.contains(&command.name));
        let ours = ours.map(|command| {
            let input = match command.takes {
                CommandArgument::Nothing(_) => None,
                CommandArgument::May(what, _) | CommandArgument::Must(what, _) => Some(input(what)),
            };
            AvailableCommand::new(command.name, command.does).input(input)
        });
        let written = self.0.names().into_iter().map(|name| {
            let does = format!("the prompt {name}.md");
            AvailableCommand::new(name, does).input(input("TEXT"))
        });
        AvailableCommandsUpdate::new(ours.chain(written).collect())
    }

    /// Parses a prompt. An unknown command is a message for the model.
    pub(super) fn parse_prompt(&self, parts: Vec<Part>) -> PromptCommand {
        let [Part::Text { text }] = parts.as_slice() else {
            return PromptCommand::Say(parts);
        };
        let line = text.trim();
        let Some(command) = line.strip_prefix('/') else {
            return PromptCommand::Say(parts);
        };
        let name = command.split_whitespace().next().unwrap_or_default();
        let is_ours = OFFERED.contains(&name);
        match self.0.order(line) {
            ChatLine::GoOn if is_ours => PromptCommand::GoOn,
            ChatLine::Compact(focus) if is_ours => PromptCommand::Compact(focus),
            ChatLine::Context if is_ours => PromptCommand::Context,
            ChatLine::Cost if is_ours => PromptCommand::Cost,
            ChatLine::Say(text) if self.0.names().iter().any(|written| written == name) => {
                PromptCommand::Say(vec![Part::text(text)])
            }
            _ => PromptCommand::Say(parts),
        }
    }
}

fn input(hint: &str) -> AvailableCommandInput {
    AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint))
}
