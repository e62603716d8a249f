//! [`ChatLine`]: parses a line of a chat: a message or a command. All commands are in one table.

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

/// A command, as shown in the help.
pub(crate) struct SlashCommand {
    pub(crate) command: Command,
    pub(crate) name: &'static str,
    /// The placeholder of the argument, in brackets if it is optional. Empty if there is none.
    argument: &'static str,
    pub(crate) does: &'static str,
}

/// Declares the commands, in the order of the help.
macro_rules! commands {
    ($($variant:ident $name:literal $argument:literal $does:literal;)*) => {
        /// The name of a command.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Command {
            $($variant,)*
        }

        /// All commands.
        pub(crate) static COMMANDS: &[SlashCommand] = &[
            $(SlashCommand {
                command: Command::$variant,
                name: $name,
                argument: $argument,
                does: $does,
            },)*
        ];
    };
}

commands! {
    Help "help" "" "show this help";
    Later "later" "TEXT" "send TEXT after the answer of the current run";
    Go "go" "" "continue the last run";
    Compact "compact" "[FOCUS]" "compact the context; a summary keeps FOCUS";
    Context "context" "" "show what fills the context window";
    Diff "diff" "" "show the files that the session changed";
    Cost "cost" "" "show the tokens and the cost of the session";
    Pin "pin" "RULE" "pin RULE: it is never evicted or shortened";
    Undo "undo" "" "undo the last run; offers to restore its files";
    Fork "fork" "[NAME]" "continue in a copy of this session";
    Model "model" "[PROVIDER/NAME]" "switch to another model, or show the current one";
    New "new" "" "start a new session; this one is kept";
    Quit "quit" "" "exit, as Ctrl-D does";
}

impl SlashCommand {
    /// Finds a command by its name.
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        COMMANDS.iter().find(|command| command.name == name)
    }

    /// Returns the line of the help.
    pub(crate) fn help(&self) -> String {
        format!("  {:<24} {}", self.usage(), self.does)
    }

    /// Returns the placeholder of its argument, if it takes one.
    pub(crate) fn argument(&self) -> Option<&'static str> {
        let argument = self.argument.trim_matches(['[', ']']);
        (!argument.is_empty()).then_some(argument)
    }

    /// Returns the command with its argument, as the user types it.
    fn usage(&self) -> String {
        format!("/{} {}", self.name, self.argument)
            .trim_end()
            .to_owned()
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
        let Some(command) = SlashCommand::of(name) else {
            return Self::Unknown(unknown(name));
        };
        let text = text.trim();
        let is_required = !command.argument.is_empty() && !command.argument.starts_with('[');
        if text.is_empty() && is_required {
            let (what, usage) = (command.argument, command.usage());
            return Self::Unknown(format!("/{name} needs {what}, as in {usage}"));
        }
        if !text.is_empty() && command.argument().is_none() {
            return Self::Unknown(format!(
                "/{name} takes no argument; to send this line to the model, write //{rest}"
            ));
        }
        Self::Command(command.command, text.to_owned())
    }
}

fn unknown(name: &str) -> String {
    let near = nearest(name, COMMANDS.iter().map(|command| command.name));
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
        for command in COMMANDS {
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
        for command in COMMANDS {
            let text = command.argument().map_or("", |_| " x");
            let line = format!("/{}{text}", command.name);
            assert!(
                !matches!(ChatLine::of(&line), ChatLine::Unknown(_)),
                "{line}"
            );
            let bare = ChatLine::of(&format!("/{}", command.name));
            let needs = command.argument() == Some(command.argument);
            assert_eq!(
                matches!(bare, ChatLine::Unknown(_)),
                needs,
                "{}",
                command.name
            );
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
