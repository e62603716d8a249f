//! [`Ask`]: the gate of a terminal. If nobody can be asked, every question is denied.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use async_trait::async_trait;
use plimsoll::permissions::{AllowAll, Answer, DenyAll, Question};
use plimsoll::{Gate, PermissionMode};

use crate::approvals::{Always, Approvals, Offer, is_edit};
use crate::diff::Previews;
use crate::error::CliError;
use crate::terminal::Terminal;
use crate::terminal::text::clean;

/// The reason for asking before a change of a protected file.
pub(crate) const PROTECTED: &str = "Other programs or agents execute this file without asking.";

/// Asks the user at the terminal.
struct Ask {
    terminal: Arc<Terminal>,
    previews: Arc<Previews>,
    approvals: Approvals,
}

/// Returns the gate for a mode: it allows everything in the mode `yes`, and otherwise asks at a
/// terminal or denies without one.
pub(crate) fn gate(
    mode: PermissionMode,
    terminal: Arc<Terminal>,
    previews: Arc<Previews>,
    approvals: Approvals,
) -> Arc<dyn Gate> {
    if mode == PermissionMode::Yes {
        return Arc::new(AllowAll);
    }
    Arc::new(Ask {
        terminal,
        previews,
        approvals,
    })
}

#[async_trait]
impl Gate for Ask {
    async fn decide(&self, question: &Question) -> Answer {
        if !can_ask() {
            self.terminal.note(&refusal(question));
            return DenyAll.decide(question).await;
        }
        if self.approvals.allow(question) {
            return Answer::Allow;
        }
        let offer = self.approvals.offer(question);
        let text = self.previews.question(question, &self.terminal);
        let whole = self.previews.whole(question, self.terminal.colours());
        let prompt = prompt(question, &offer, whole.is_some());
        let mut shown = text;
        let said = loop {
            let said = line_at(&self.terminal, &format!("{shown}\n{prompt}, [N]o: ")).await;
            match &whole {
                Some(whole) if is_more(&said) => shown.clone_from(whole),
                _ => break said,
            }
        };
        let reply = Reply::of(&said).unwrap_or(Reply::No(None));
        self.approvals.take(&reply, offer);
        answer(&question.call.name, reply)
    }
}

/// Explains why a call did not run, and names the flag that would allow it.
fn refusal(question: &Question) -> String {
    if question.is_protected {
        return "note: there is no terminal to ask at, so a protected file was not changed; --yes \
                allows it"
            .to_owned();
    }
    let name = clean(&question.call.name);
    let edits = if is_edit(question) {
        "--permission-mode auto-edit allows changes of files, "
    } else {
        ""
    };
    format!(
        "note: there is no terminal to ask at, so `{name}` did not run; --allow {name} allows it, \
         {edits}--yes everything"
    )
}

/// Returns the prompt of a question, for example "Allow? [y]es, [a]lways `cargo test -q` in this
/// project, [p]attern `cargo test *` in this project". `is_cut` offers the rest of the change.
pub(crate) fn prompt(question: &Question, offer: &Offer, is_cut: bool) -> String {
    let reason = if question.is_protected {
        format!("{PROTECTED} ")
    } else {
        String::new()
    };
    let label = |key: &str, always: &Option<Always>| {
        let label = always.as_ref().map(Always::label);
        label.map_or_else(String::new, |label| format!(", {key} {label}"))
    };
    let always = label("[a]lways", &offer.always);
    let pattern = label("[p]attern", &offer.pattern);
    let more = if is_cut {
        ", [m]ore: the whole change"
    } else {
        ""
    };
    format!("{reason}Allow? [y]es{always}{pattern}{more}")
}

/// Checks whether a line asks for the whole change.
pub(crate) fn is_more(line: &str) -> bool {
    matches!(line.trim().to_lowercase().as_str(), "m" | "more")
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Yes,
    /// Yes, and also to this call from now on.
    Always,
    /// Yes, and also to the calls of the offered pattern.
    Pattern,
    /// No, with an optional reason.
    No(Option<String>),
    /// The user sent a message instead, which the model is to read first.
    Overtaken,
    /// Nobody answered.
    Nobody,
}

impl Reply {
    /// Parses a line. Returns `None` if it is no answer.
    pub(crate) fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        let (word, why) = match line.find(|c: char| !c.is_alphabetic()) {
            Some(end) => line.split_at_checked(end)?,
            None => (line, ""),
        };
        let why = why.trim_start_matches(|c: char| c.is_whitespace() || ",.:;-".contains(c));
        match (word.to_lowercase().as_str(), why.is_empty()) {
            ("y" | "yes", true) => Some(Self::Yes),
            ("a" | "always", true) => Some(Self::Always),
            ("p" | "pattern", true) => Some(Self::Pattern),
            ("n" | "no", true) => Some(Self::No(None)),
            ("n" | "no", false) => Some(Self::No(Some(why.to_owned()))),
            _ => None,
        }
    }
}

/// Converts a reply to the answer that the model reads.
pub(crate) fn answer(name: &str, reply: Reply) -> Answer {
    let why = match reply {
        Reply::Yes | Reply::Always | Reply::Pattern => return Answer::Allow,
        Reply::Overtaken => {
            let why = "the user said something else before this call was allowed; read it first";
            return Answer::Skip {
                why: why.to_owned(),
            };
        }
        Reply::No(None) => "the user did not allow this call; ask, or go on without it".to_owned(),
        Reply::No(Some(why)) => format!("the user did not allow this call, and says: {why}"),
        Reply::Nobody => format!(
            "`{name}` was not allowed: it must be approved and nobody has answered; go on without it"
        ),
    };
    Answer::Deny { why }
}

/// Asks a yes-no question at the terminal. Anything but yes means no.
///
/// # Errors
/// If nobody can be asked. `refusal` describes the consequence.
pub(crate) async fn confirm(question: &str, refusal: &str) -> Result<bool, CliError> {
    if !can_ask() {
        return Err(CliError::usage(format!(
            "there is no terminal to ask at, so {refusal}"
        )));
    }
    let said = line(&format!("{question} [y]es, [N]o: ")).await;
    Ok(Reply::of(&said) == Some(Reply::Yes))
}

/// Returns `true` if there is a terminal to ask at.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks the user at the terminal for a line.
pub(crate) async fn line(question: &str) -> String {
    let terminal = Terminal::direct(false);
    let said = line_at(&terminal, question).await;
    terminal.flush();
    said
}

async fn line_at(terminal: &Terminal, question: &str) -> String {
    let asking = terminal.ask(question);
    // Reading a line blocks, so it is done off the async threads.
    let said = tokio::task::spawn_blocking(read_line).await;
    asking.answered();
    said.unwrap_or_default()
}

/// Reads a line of standard input. At the end of the input, it is empty.
fn read_line() -> String {
    let mut line = String::new();
    let _ = io::stdin().read_line(&mut line);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_answer_only_where_it_is_nothing_else() {
        let no = |why: &str| Some(Reply::No(Some(why.to_owned())));
        for (line, reply) in [
            ("y", Some(Reply::Yes)),
            (" YES ", Some(Reply::Yes)),
            ("a", Some(Reply::Always)),
            ("p", Some(Reply::Pattern)),
            ("n", Some(Reply::No(None))),
            ("no.", Some(Reply::No(None))),
            ("No, use tabs", no("use tabs")),
            ("n: not in vendor/", no("not in vendor/")),
            ("yes, but use tabs", None),
            ("a file", None),
            ("now", None),
            ("", None),
            ("/stop", None),
        ] {
            assert_eq!(Reply::of(line), reply, "{line}");
        }
    }
}
