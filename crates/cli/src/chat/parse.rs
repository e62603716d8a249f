//! [`ChatLine`]: parses a line of a chat: a message or a [`Command`].

use clap::ValueEnum;
use plimsoll::context::nearest;

/// A parsed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChatLine {
    /// An empty line.
    Nothing,
    /// A message for the model.
    Say(String),
    /// A command with its argument, which is empty if there is none.
    Command(Command, String),
    /// An unknown command, with an error message.
    Unknown(String),
}

/// A command. Its name and its help are shown to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Command {
    /// show this help
    Help,
    /// send TEXT after the answer of the current run
    Later,
    /// continue the last run
    Go,
    /// compact the context; a summary keeps FOCUS
    Compact,
    /// show what fills the context window
    Context,
    /// show the files that the session changed
    Diff,
    /// show the tokens and the cost of the session
    Cost,
    /// pin RULE: it is never evicted or shortened
    Pin,
    /// undo the last run; offers to restore its files
    Undo,
    /// continue in a copy of this session
    Fork,
    /// switch to another model, or show the current one
    Model,
    /// start a new session; this one is kept
    New,
    /// exit, as Ctrl-D does
    Quit,
}

impl Command {
    /// Returns all commands, in the order of the help.
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// Returns the name, without the slash.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Describes what it does.
    pub(crate) fn does(self) -> String {
        let value = self.to_possible_value();
        let help = value.and_then(|value| value.get_help().map(ToString::to_string));
        help.unwrap_or_default()
    }

    /// Returns the placeholder of its argument, in brackets if it is optional. Empty if there is none.
    fn placeholder(self) -> &'static str {
        match self {
            Self::Later => "TEXT",
            Self::Compact => "[FOCUS]",
            Self::Pin => "RULE",
            Self::Fork => "[NAME]",
            Self::Model => "[PROVIDER/NAME]",
            _ => "",
        }
    }

    /// Returns the placeholder of its argument without brackets, if it takes one.
    pub(crate) fn argument(self) -> Option<&'static str> {
        let argument = self.placeholder().trim_matches(['[', ']']);
        (!argument.is_empty()).then_some(argument)
    }

    /// Returns the line of the help.
    pub(crate) fn help(self) -> String {
        format!("  {:<24} {}", self.usage(), self.does())
    }

    /// Returns the command with its argument, as the user types it.
    fn usage(self) -> String {
        let usage = format!("/{} {}", self.name(), self.placeholder());
        usage.trim_end().to_owned()
    }
}

impl ChatLine {
    /// Parses a line. `//` begins a message that starts with one slash.
    pub(crate) fn of(line: &str) -> Self {
        let line = line.trim();
        if line.is_empty() {
            return Self::Nothing;
        }
        let Some(rest) = line.strip_prefix('/') else {
            return Self::Say(line.to_owned());
        };
        if rest.starts_with('/') {
            return Self::Say(rest.to_owned());
        }
        let (name, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let Ok(command) = Command::from_str(name, false) else {
            return Self::Unknown(unknown(name));
        };
        let text = text.trim();
        let what = command.placeholder();
        if text.is_empty() && !what.is_empty() && !what.starts_with('[') {
            let usage = command.usage();
            return Self::Unknown(format!("/{name} needs {what}, as in {usage}"));
        }
        if !text.is_empty() && command.argument().is_none() {
            return Self::Unknown(format!(
                "/{name} takes no argument; to send this line to the model, write //{rest}"
            ));
        }
        Self::Command(command, text.to_owned())
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<String> = Command::all().iter().map(|of| of.name()).collect();
    let near = nearest(name, names.iter().map(String::as_str));
    let hint = near.map_or_else(String::new, |near| format!("did you mean /{near}? "));
    format!(
        "there is no command /{name}; {hint}/help lists all commands, and //{name} sends the line \
         to the model"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_fits_a_terminal_of_80_columns() {
        for command in Command::all() {
            let line = command.help();
            assert!(line.chars().count() < 80, "{line}");
        }
    }

    #[test]
    fn a_line_is_said_or_is_a_command() {
        let command = |of, text: &str| ChatLine::Command(of, text.to_owned());
        for (line, order) in [
            ("", ChatLine::Nothing),
            ("  \t", ChatLine::Nothing),
            ("Port it.", ChatLine::Say("Port it.".into())),
            (
                " what does /help do?",
                ChatLine::Say("what does /help do?".into()),
            ),
            ("//usr is full", ChatLine::Say("/usr is full".into())),
            ("/help", command(Command::Help, "")),
            ("/compact", command(Command::Compact, "")),
            (
                "/compact  the file names ",
                command(Command::Compact, "the file names"),
            ),
            (
                "/later\tand the tests",
                command(Command::Later, "and the tests"),
            ),
            ("/pin a b.md", command(Command::Pin, "a b.md")),
            (
                "/model openai/gpt-5",
                command(Command::Model, "openai/gpt-5"),
            ),
            ("/quit", command(Command::Quit, "")),
        ] {
            assert_eq!(ChatLine::of(line), order, "{line}");
        }
    }

    #[test]
    fn every_command_of_the_help_is_one() {
        for command in Command::all() {
            let name = command.name();
            let text = command.argument().map_or("", |_| " x");
            let line = format!("/{name}{text}");
            assert!(
                !matches!(ChatLine::of(&line), ChatLine::Unknown(_)),
                "{line}"
            );
            let bare = ChatLine::of(&format!("/{name}"));
            let needs = command.argument() == Some(command.placeholder());
            assert_eq!(matches!(bare, ChatLine::Unknown(_)), needs, "{name}");
        }
    }

    #[test]
    fn what_is_no_command_is_told_the_nearest() {
        for (line, says) in [
            ("/contxt", "did you mean /context?"),
            ("/quti", "did you mean /quit?"),
            ("/exit", "did you mean /quit?"),
            ("/usr/bin is empty", "//usr/bin sends the line"),
            ("/pin", "/pin needs RULE"),
            ("/undo it", "/undo takes no argument"),
            ("/", "there is no command /"),
        ] {
            let ChatLine::Unknown(text) = ChatLine::of(line) else {
                panic!("{line}");
            };
            assert!(text.contains(says), "{text}");
        }
        let ChatLine::Unknown(text) = ChatLine::of("/frobnicate") else {
            panic!();
        };
        assert!(!text.contains("did you mean"), "{text}");
    }
}
