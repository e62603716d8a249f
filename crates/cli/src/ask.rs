//! [`Ask`]: the gate of `run`, `chat` and `acp`, which differ in the [`Person`] who is asked: at a
//! terminal, in an editor, or nobody.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use plimsoll::permissions::{Answer, Question};
use plimsoll::{Gate, PermissionMode};
use tokio::sync::mpsc::Sender;
use tokio::sync::{Mutex as AsyncMutex, oneshot};

use crate::approvals::{Always, Approvals, Offer, is_edit};
use crate::diff::Previews;
use crate::error::CliError;
use crate::lock;
use crate::paths;
use crate::terminal::Terminal;
use crate::terminal::text::clean;

/// The reason for asking before a change of a protected file.
pub(crate) const PROTECTED: &str = "Other programs or agents execute this file without asking.";

/// Answers questions about tool calls.
#[async_trait]
pub(crate) trait Person: Send + Sync {
    /// Asks about a call. Besides yes and no, the offer can be chosen.
    async fn ask(&self, question: &Question, offer: &Offer) -> Reply;
}

/// Asks a person, one question at a time, unless the mode or an earlier approval answers it.
#[derive(Clone)]
pub(crate) struct Ask {
    approvals: Arc<Approvals>,
    /// An editor can change it.
    mode: Arc<Mutex<PermissionMode>>,
    person: Arc<dyn Person>,
    /// Locked during a question.
    asking: Arc<AsyncMutex<()>>,
    /// The number of messages that were sent instead of an answer.
    overtaken: Arc<AtomicU64>,
}

impl Ask {
    /// Creates the gate of a session in `root`.
    pub(crate) fn new(
        root: &Path,
        mode: PermissionMode,
        previews: &Arc<Previews>,
        person: Arc<dyn Person>,
    ) -> Result<Self, CliError> {
        let approvals = Approvals::open(&paths::data()?, root, Arc::clone(previews));
        Ok(Self {
            approvals: Arc::new(approvals),
            mode: Arc::new(mode.into()),
            person,
            asking: Arc::default(),
            overtaken: Arc::default(),
        })
    }

    /// Returns the same gate with another person.
    pub(crate) fn with(&self, person: Arc<dyn Person>) -> Self {
        Self {
            person,
            ..self.clone()
        }
    }

    pub(crate) fn mode(&self) -> PermissionMode {
        *lock(&self.mode)
    }

    /// Sets the mode for all later questions.
    pub(crate) fn set_mode(&self, mode: PermissionMode) {
        *lock(&self.mode) = mode;
    }

    /// Returns the answer that needs no person.
    fn known(&self, question: &Question) -> Option<Answer> {
        let is_allowed = match self.mode() {
            PermissionMode::Yes => true,
            PermissionMode::ReadOnly => {
                let why = "the user has made this session read-only; go on without it";
                return Some(Answer::Deny {
                    why: why.to_owned(),
                });
            }
            PermissionMode::AutoEdit if is_edit(question) && !question.is_protected => true,
            _ => self.approvals.allow(question),
        };
        is_allowed.then_some(Answer::Allow)
    }
}

#[async_trait]
impl Gate for Ask {
    async fn decide(&self, question: &Question) -> Answer {
        let overtaken = self.overtaken.load(Ordering::SeqCst);
        let _asking = self.asking.lock().await;
        if let Some(answer) = self.known(question) {
            return answer;
        }
        // The person wrote a message while this call waited.
        if self.overtaken.load(Ordering::SeqCst) > overtaken {
            return answer(&question.call.name, Reply::Overtaken);
        }
        let offer = self.approvals.offer(question);
        let reply = self.person.ask(question, &offer).await;
        if reply == Reply::Overtaken {
            self.overtaken.fetch_add(1, Ordering::SeqCst);
        }
        self.approvals.take(&reply, offer);
        answer(&question.call.name, reply)
    }
}

/// Asks at a terminal.
pub(crate) struct AtTerminal {
    pub(crate) terminal: Arc<Terminal>,
    pub(crate) previews: Arc<Previews>,
    /// In a chat, a typed line may also be a message or a command, so the chat asks.
    pub(crate) chat: Option<Sender<PendingQuestion>>,
}

/// A question that waits for the reply of a chat. Dropping it denies the call.
pub(crate) struct PendingQuestion {
    pub(crate) text: String,
    pub(crate) reply: oneshot::Sender<Reply>,
}

#[async_trait]
impl Person for AtTerminal {
    async fn ask(&self, question: &Question, offer: &Offer) -> Reply {
        let (mut shown, whole) = self.previews.question(question, &self.terminal);
        let prompt = prompt(question, offer, whole.is_some());
        loop {
            let reply = self.reply(&format!("{shown}\n{prompt}"), offer).await;
            match (&whole, reply) {
                (Some(whole), Reply::More) => shown.clone_from(whole),
                (None, Reply::More) => {}
                (_, reply) => return reply,
            }
        }
    }
}

impl AtTerminal {
    async fn reply(&self, text: &str, offer: &Offer) -> Reply {
        let terminal = &self.terminal;
        let Some(chat) = &self.chat else {
            let line = line_at(terminal, &format!("{text}, [N]o: ")).await;
            return offer.grant(Reply::of(&line).unwrap_or(Reply::No(None)));
        };
        let text = format!("{text}, [n]o");
        let (reply, replied) = oneshot::channel();
        // An error means that the chat has ended, and nobody answers.
        let _ = chat.send(PendingQuestion { text, reply }).await;
        let reply = offer.grant(replied.await.unwrap_or(Reply::Nobody));
        let word = match reply {
            Reply::Yes => "allowed",
            Reply::Always | Reply::Pattern => "allowed, and from now on",
            Reply::No(_) => "denied",
            Reply::Overtaken => "skipped: the model reads your message first",
            Reply::Nobody => "denied: nobody answered",
            Reply::More => return reply,
        };
        terminal.note(&terminal.dim(&format!("· {word}")));
        reply
    }
}

/// Denies every call, and says which flag allows it.
pub(crate) struct Nobody(pub(crate) Arc<Terminal>);

#[async_trait]
impl Person for Nobody {
    async fn ask(&self, question: &Question, _: &Offer) -> Reply {
        self.0.note(&refusal(question));
        Reply::Nobody
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
fn prompt(question: &Question, offer: &Offer, is_cut: bool) -> String {
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
    /// Neither: the question is asked again, with the whole change.
    More,
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
            ("m" | "more", true) => Some(Self::More),
            ("n" | "no", true) => Some(Self::No(None)),
            ("n" | "no", false) => Some(Self::No(Some(why.to_owned()))),
            _ => None,
        }
    }
}

impl Offer {
    /// Limits a reply to what is offered.
    fn grant(&self, reply: Reply) -> Reply {
        match reply {
            Reply::Always if self.always.is_none() => Reply::Yes,
            Reply::Pattern if self.pattern.is_none() => Reply::Yes,
            reply => reply,
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
        Reply::Nobody | Reply::More => format!(
            "`{name}` was not allowed: it requires approval, and there is nobody to ask; continue without it"
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
            ("m", Some(Reply::More)),
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
