//! [`ChatLine`]: parses a line of a chat: a message or a command.

use std::path::PathBuf;

use CommandArgument::{May, Must, Nothing};

/// A parsed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChatLine {
    /// An empty line.
    Nothing,
    /// A message for the model.
    Say(String),
    Help,
    Compact(Option<String>),
    Context,
    Undo,
    Fork(Option<String>),
    Model(Option<String>),
    Save(PathBuf),
    Diff,
    Cost,
    Pins,
    Pin(String),
    Session(Option<String>),
    Sessions(Option<String>),
    New,
    /// A message for the current run.
    Steer(String),
    /// A message for after the run's answer.
    Later(String),
    Stop,
    GoOn,
    Quit,
    /// An unknown command, with an error message.
    Unknown(String),
}

/// A command, as shown in the help.
pub(crate) struct SlashCommand {
    pub(crate) name: &'static str,
    pub(crate) takes: CommandArgument,
    pub(crate) does: &'static str,
}

/// The argument of a command, with its placeholder and the order that it makes.
pub(crate) enum CommandArgument {
    Nothing(ChatLine),
    May(&'static str, fn(Option<String>) -> ChatLine),
    Must(&'static str, fn(String) -> ChatLine),
}

/// All commands, in the order of the help.
pub(crate) static COMMANDS: [SlashCommand; 19] = [
    command("help", Nothing(ChatLine::Help), "show this help"),
    command(
        "steer",
        Must("TEXT", ChatLine::Steer),
        "send TEXT to the current run, as a plain line does",
    ),
    command(
        "later",
        Must("TEXT", ChatLine::Later),
        "send TEXT after the answer of the current run",
    ),
    command(
        "stop",
        Nothing(ChatLine::Stop),
        "stop the current run, as Ctrl-C does",
    ),
    command("go", Nothing(ChatLine::GoOn), "continue the last run"),
    command(
        "compact",
        May("FOCUS", ChatLine::Compact),
        "compact the context; a summary keeps FOCUS",
    ),
    command(
        "context",
        Nothing(ChatLine::Context),
        "show what fills the context window",
    ),
    command(
        "diff",
        Nothing(ChatLine::Diff),
        "show the files that the session changed",
    ),
    command(
        "cost",
        Nothing(ChatLine::Cost),
        "show the tokens and the cost of the session",
    ),
    command("pins", Nothing(ChatLine::Pins), "list the pinned rules"),
    command(
        "pin",
        Must("RULE", ChatLine::Pin),
        "pin RULE: it is never evicted or shortened",
    ),
    command(
        "undo",
        Nothing(ChatLine::Undo),
        "undo the last run; offers to restore its files",
    ),
    command(
        "fork",
        May("NAME", ChatLine::Fork),
        "continue in a copy of this session",
    ),
    command(
        "model",
        May("PROVIDER/NAME", ChatLine::Model),
        "switch to another model, or show the current one",
    ),
    command(
        "session",
        May("ID", ChatLine::Session),
        "switch to another session, or show the current one",
    ),
    command(
        "new",
        Nothing(ChatLine::New),
        "start a new session; this one is kept",
    ),
    command(
        "sessions",
        May("WORDS", ChatLine::Sessions),
        "list this folder's sessions, or search for WORDS",
    ),
    command(
        "save",
        Must("FILE", |file| ChatLine::Save(file.into())),
        "save the chat as JSON, or as text to an .md FILE",
    ),
    command("quit", Nothing(ChatLine::Quit), "exit, as Ctrl-D does"),
];

const fn command(name: &'static str, takes: CommandArgument, does: &'static str) -> SlashCommand {
    SlashCommand { name, takes, does }
}

impl SlashCommand {
    /// Returns the line of the help.
    pub(crate) fn help(&self) -> String {
        format!("  {:<24} {}", self.usage(), self.does)
    }

    /// Returns the placeholder of its argument, if it takes one.
    pub(crate) fn argument(&self) -> Option<&'static str> {
        match self.takes {
            Nothing(_) => None,
            May(what, _) | Must(what, _) => Some(what),
        }
    }

    /// Returns the command with its argument, as the user types it.
    pub(crate) fn usage(&self) -> String {
        match self.takes {
            Nothing(_) => format!("/{}", self.name),
            May(what, _) => format!("/{} [{what}]", self.name),
            Must(what, _) => format!("/{} {what}", self.name),
        }
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
        let name = match name {
            "exit" | "q" => "quit",
            "?" | "h" => "help",
            "continue" => "go",
            "clear" => "new",
            "resume" => "sessions",
            "export" => "save",
            name => name,
        };
        let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
            return Self::Unknown(unknown(name));
        };
        let text = text.trim();
        let given = (!text.is_empty()).then(|| text.to_owned());
        match (&command.takes, given) {
            (Must(what, _), None) => {
                Self::Unknown(format!("/{name} needs {what}, as in {}", command.usage()))
            }
            (Nothing(_), Some(_)) => Self::Unknown(format!(
                "/{name} takes no argument; to send this line to the model, write //{rest}"
            )),
            (Nothing(order), None) => order.clone(),
            (May(_, order), given) => order(given),
            (Must(_, order), Some(text)) => order(text),
        }
    }
}

fn unknown(name: &str) -> String {
    let near = COMMANDS
        .iter()
        .map(|command| {
            (
                strsim::damerau_levenshtein(command.name, name),
                command.name,
            )
        })
        .min()
        .filter(|(far, of)| *far <= 2 && *far < of.len());
    let hint = match near {
        Some((_, near)) => format!("did you mean /{near}? "),
        None => String::new(),
    };
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
        for command in &COMMANDS {
            let line = command.help();
            assert!(line.chars().count() < 80, "{line}");
        }
    }

    #[test]
    fn a_line_is_said_or_is_a_command() {
        let some = |text: &str| Some(text.to_owned());
        for (line, order) in [
            ("", ChatLine::Nothing),
            ("  \t", ChatLine::Nothing),
            ("Port it.", ChatLine::Say("Port it.".into())),
            (
                " what does /help do?",
                ChatLine::Say("what does /help do?".into()),
            ),
            ("//usr is full", ChatLine::Say("/usr is full".into())),
            ("/help", ChatLine::Help),
            ("  /?", ChatLine::Help),
            ("/compact", ChatLine::Compact(None)),
            (
                "/compact  the file names ",
                ChatLine::Compact(some("the file names")),
            ),
            (
                "/later\tand the tests",
                ChatLine::Later("and the tests".into()),
            ),
            ("/save a b.md", ChatLine::Save("a b.md".into())),
            ("/model openai/gpt-5", ChatLine::Model(some("openai/gpt-5"))),
            ("/exit", ChatLine::Quit),
            ("/continue", ChatLine::GoOn),
        ] {
            assert_eq!(ChatLine::of(line), order, "{line}");
        }
    }

    #[test]
    fn every_command_of_the_help_is_one() {
        for command in &COMMANDS {
            let line = match command.takes {
                Nothing(_) => format!("/{}", command.name),
                _ => format!("/{} x", command.name),
            };
            assert!(
                !matches!(ChatLine::of(&line), ChatLine::Unknown(_)),
                "{line}"
            );
            let bare = ChatLine::of(&format!("/{}", command.name));
            let needs = matches!(command.takes, Must(..));
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
            ("/usr/bin is empty", "//usr/bin sends the line"),
            ("/save", "/save needs FILE"),
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
