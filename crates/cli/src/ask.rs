//! [`Ask`]: the gate at a terminal. Where there is nobody to ask, silence denies.

use std::collections::HashSet;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use plimsoll::{AllowAll, Answer, DenyAll, Gate, Question};

use crate::terminal::Terminal;
use crate::terminal::text::clean;
use crate::tool_line;

/// The reason for asking before a call that would change a protected file.
pub(crate) const PROTECTED: &str = "Programs run this file, or agents obey it, unasked.";

/// Asks the person at the terminal.
struct Ask {
    terminal: Arc<Terminal>,
    /// Tools that need not be asked about any more.
    always: Mutex<HashSet<String>>,
}

/// Everything with `--yes`, a question at a terminal, no otherwise.
pub(crate) fn gate(yes: Consent, terminal: Arc<Terminal>) -> Arc<dyn Gate> {
    match yes {
        Consent::Given => Arc::new(AllowAll),
        Consent::Asked if io::stdin().is_terminal() && io::stderr().is_terminal() => {
            Arc::new(Ask {
                terminal,
                always: Mutex::default(),
            })
        }
        Consent::Asked => Arc::new(DenyAll),
    }
}

/// Whether tool calls that ask were allowed beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// With `--yes`.
    Given,
    /// One by one.
    Asked,
}

/// What `--yes` says.
pub(crate) fn consent(yes: bool) -> Consent {
    match yes {
        true => Consent::Given,
        false => Consent::Asked,
    }
}

#[async_trait]
impl Gate for Ask {
    async fn decide(&self, question: &Question) -> Answer {
        if !question.is_protected && self.always().contains(&question.call.name) {
            return Answer::Allow;
        }
        let text = tool_line::in_full(&clean(&question.call.name), &question.call.arguments);
        let prompt = if question.is_protected {
            format!("{PROTECTED} Allow? [y]es, [N]o: ")
        } else {
            "Allow? [y]es, [a]lways this tool, [N]o: ".to_owned()
        };
        let asking = self.terminal.ask(&format!("{text}\n{prompt}"));
        // Reading a line blocks, so it is done off the async threads.
        let said = tokio::task::spawn_blocking(read_line).await;
        let said = said.unwrap_or_default();
        asking.answered();
        let reply = Reply::of(&said).unwrap_or(Reply::No(None));
        let reply = reply.to(question);
        if reply == Reply::Always {
            self.always().insert(question.call.name.clone());
        }
        answer(&question.call.name, reply)
    }
}

impl Ask {
    fn always(&self) -> MutexGuard<'_, HashSet<String>> {
        self.always.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Yes,
    /// To this tool, from now on.
    Always,
    /// And why, where they say.
    No(Option<String>),
    /// Something else was said, which the model is to read first.
    Overtaken,
    /// There was nobody to say anything.
    Nobody,
}

impl Reply {
    /// Returns the reply as it holds for this question: a protected file is asked about each time.
    pub(crate) fn to(self, question: &Question) -> Self {
        match self {
            Self::Always if question.is_protected => Self::Yes,
            reply => reply,
        }
    }

    /// `None` where a line is no answer.
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
            ("n" | "no", true) => Some(Self::No(None)),
            ("n" | "no", false) => Some(Self::No(Some(why.to_owned()))),
            _ => None,
        }
    }
}

/// The same as the model reads it.
pub(crate) fn answer(name: &str, reply: Reply) -> Answer {
    let why = match reply {
        Reply::Yes | Reply::Always => return Answer::Allow,
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

/// Reads a line of standard input; the end of input is an empty one.
pub(crate) fn read_line() -> String {
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
