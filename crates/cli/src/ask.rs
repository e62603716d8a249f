//! [`Ask`]: the gate of `run`, `chat` and `acp`, which differ in the [`Person`] who is asked: at a
//! terminal, in an editor, or nobody.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use console::Term;
use plimsoll::permissions::{Answer, Question};
use plimsoll::{Gate, PermissionMode};
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::approvals::{Approval, Approvals, is_edit};
use crate::error::CliError;
use crate::event_printer::EventPrinter;
use crate::lock;
use crate::paths;
use crate::terminal::text::clean;
use crate::terminal::wrapped;

/// The reason for asking before a change of a protected file.
pub(crate) const PROTECTED: &str = "Other programs or agents execute this file without asking.";

/// Answers questions about tool calls.
#[async_trait]
pub(crate) trait Person: Send + Sync {
    /// Asks about a call. Besides yes and no, one of the offered approvals can be chosen.
    async fn ask(&self, question: &Question, offers: &[Approval]) -> Reply;
}

/// Asks a person, one question at a time, unless the mode or an earlier approval answers it.
pub(crate) struct Ask {
    approvals: Approvals,
    /// An editor can change it.
    mode: Mutex<PermissionMode>,
    person: Arc<dyn Person>,
    /// Locked during a question.
    asking: AsyncMutex<()>,
}

impl Ask {
    /// Creates the gate of a session in `root`.
    pub(crate) fn new(
        root: &Path,
        mode: PermissionMode,
        person: Arc<dyn Person>,
    ) -> Result<Self, CliError> {
        Ok(Self {
            approvals: Approvals::open(&paths::data()?, root),
            mode: mode.into(),
            person,
            asking: AsyncMutex::default(),
        })
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
        let _asking = self.asking.lock().await;
        if let Some(answer) = self.known(question) {
            return answer;
        }
        let offers = self.approvals.offers(question);
        let reply = self.person.ask(question, &offers).await;
        if let Reply::Yes(Some(approval)) = &reply {
            self.approvals.add(approval);
        }
        answer(&question.call.name, reply)
    }
}

/// A question that waits for the reply of a chat. Dropping it denies the call.
pub(crate) struct PendingQuestion {
    pub(crate) text: String,
    pub(crate) offers: Vec<Approval>,
    pub(crate) reply: oneshot::Sender<Reply>,
}

/// Asks at the terminal, if there is one. In a chat, a typed line may also be a message or a command, so
/// the chat asks.
#[async_trait]
impl Person for EventPrinter {
    async fn ask(&self, question: &Question, offers: &[Approval]) -> Reply {
        let is_there = match &self.chat {
            Some(_) => self.terminal.is_live(),
            None => can_ask(),
        };
        if !is_there {
            self.terminal.note(&refusal(question));
            return Reply::Nobody;
        }
        let text = format!("{}\n{}", self.preview(question), prompt(question, offers));
        let Some(chat) = &self.chat else {
            self.terminal.status(None);
            let line = read_answer(|| self.terminal.must(&format!("{text}, [N]o:"))).await;
            self.terminal.entered();
            // Anything else is the reason for a no.
            let why = Some(line.trim().to_owned()).filter(|why| !why.is_empty());
            return Reply::of(&line, offers).unwrap_or(Reply::No(why));
        };
        let (reply, replied) = oneshot::channel();
        let pending = PendingQuestion {
            text: format!("{text}, [n]o"),
            offers: offers.to_vec(),
            reply,
        };
        // An error means that the chat has ended, and nobody answers.
        let _ = chat.send(pending).await;
        replied.await.unwrap_or(Reply::Nobody)
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
/// project, [p]attern `cargo test *` in this project".
fn prompt(question: &Question, offers: &[Approval]) -> String {
    let mut text = "Allow? [y]es".to_owned();
    if question.is_protected {
        text.insert_str(0, &format!("{PROTECTED} "));
    }
    for offer in offers {
        let (letter, rest) = offer.word().split_at(1);
        text.push_str(&format!(", [{letter}]{rest} {}", offer.label()));
    }
    text
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Yes, and from now on also to the calls of the chosen offer.
    Yes(Option<Approval>),
    /// No, with an optional reason.
    No(Option<String>),
    /// The user sent a message instead, which the model is to read first.
    Overtaken,
    /// Nobody answered.
    Nobody,
}

impl Reply {
    /// Parses a line. Returns `None` if it is no answer to a question with these offers.
    pub(crate) fn of(line: &str, offers: &[Approval]) -> Option<Self> {
        let line = line.trim();
        let (word, why) = match line.find(|c: char| !c.is_alphabetic()) {
            Some(end) => line.split_at_checked(end)?,
            None => (line, ""),
        };
        let why = why.trim_start_matches(|c: char| c.is_whitespace() || ",.:;-".contains(c));
        match (word.to_lowercase().as_str(), why.is_empty()) {
            ("y" | "yes", true) => Some(Self::Yes(None)),
            ("n" | "no", true) => Some(Self::No(None)),
            ("n" | "no", false) => Some(Self::No(Some(why.to_owned()))),
            (word, true) => {
                let is_chosen = |offer: &&Approval| {
                    let whole = offer.word();
                    [whole, whole.split_at(1).0].contains(&word)
                };
                Some(Self::Yes(Some(offers.iter().find(is_chosen)?.clone())))
            }
            (_, false) => None,
        }
    }
}

/// Converts a reply to the answer that the model reads.
pub(crate) fn answer(name: &str, reply: Reply) -> Answer {
    let why = match reply {
        Reply::Yes(_) => return Answer::Allow,
        Reply::Overtaken => {
            let why = "the user said something else before this call was allowed; read it first";
            return Answer::Skip {
                why: why.to_owned(),
            };
        }
        Reply::No(None) => "the user did not allow this call; ask, or go on without it".to_owned(),
        Reply::No(Some(why)) => format!("the user did not allow this call, and says: {why}"),
        Reply::Nobody => format!(
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
        let why = match IS_EDITED.load(Ordering::Relaxed) {
            true => "a chat cannot ask this",
            false => "there is no terminal to ask at",
        };
        return Err(CliError::usage(format!("{why}, so {refusal}")));
    }
    let said = line(&format!("{question} [y]es, [N]o: ")).await;
    Ok(Reply::of(&said, &[]) == Some(Reply::Yes(None)))
}

/// Whether the line editor of a chat reads the terminal. Every line is its then.
static IS_EDITED: AtomicBool = AtomicBool::new(false);

/// Leaves the terminal to the line editor of a chat.
pub(crate) fn leave_to_editor() {
    IS_EDITED.store(true, Ordering::Relaxed);
}

/// Returns `true` if there is a terminal to ask at.
pub(crate) fn can_ask() -> bool {
    let is_edited = IS_EDITED.load(Ordering::Relaxed);
    !is_edited && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks the user at the terminal for a line.
pub(crate) async fn line(question: &str) -> String {
    let question = wrapped(question.trim_end(), &Term::stderr());
    // If nobody reads standard error, the question is lost.
    read_answer(|| drop(write!(io::stderr().lock(), "{question} "))).await
}

/// Asks the user at the terminal for the number of one of these things, which were listed.
pub(crate) async fn number<T>(listed: Vec<T>) -> Option<T> {
    let answer = line("Number [1]: ").await;
    let number = match answer.trim() {
        // At the end of the input, there is not even a line break.
        "" if !answer.is_empty() => Some(1),
        number => number.parse::<usize>().ok(),
    };
    number.and_then(|number| listed.into_iter().nth(number.checked_sub(1)?))
}

/// Shows a question and reads the line that answers it. A line that was typed before the question was shown
/// is dropped, because it was meant for something else. At the end of the input, the line is empty.
async fn read_answer(show: impl FnOnce()) -> String {
    static READING: AsyncMutex<Option<JoinHandle<String>>> = AsyncMutex::const_new(None);
    let mut reading = READING.lock().await;
    reading.take_if(|earlier| earlier.is_finished());
    #[cfg(unix)]
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    show();
    // Reading a line blocks, so it is done off the async threads.
    let line = reading.get_or_insert_with(|| {
        spawn_blocking(|| {
            let mut line = String::new();
            let _ = io::stdin().read_line(&mut line);
            line
        })
    });
    let line = line.await;
    *reading = None;
    line.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_answer_only_where_it_is_nothing_else() {
        let no = |why: &str| Some(Reply::No(Some(why.to_owned())));
        for (line, reply) in [
            ("y", Some(Reply::Yes(None))),
            (" YES ", Some(Reply::Yes(None))),
            ("a", None),
            ("p", None),
            ("always", None),
            ("n", Some(Reply::No(None))),
            ("m", None),
            ("no.", Some(Reply::No(None))),
            ("No, use tabs", no("use tabs")),
            ("n: not in vendor/", no("not in vendor/")),
            ("yes, but use tabs", None),
            ("a file", None),
            ("now", None),
            ("", None),
            ("/stop", None),
        ] {
            assert_eq!(Reply::of(line, &[]), reply, "{line}");
        }
    }

    #[test]
    fn only_an_offer_that_was_made_can_be_chosen() {
        let command = |command: &str| -> Approval {
            let approval = serde_json::json!({ "tool": "bash", "command": command });
            serde_json::from_value(approval).unwrap()
        };
        let (always, pattern) = (command("ls -l"), command("ls *"));
        let offers = [always.clone(), pattern.clone()];
        for (line, chosen) in [("a", &always), ("Always", &always), ("p", &pattern)] {
            let chosen = Some(Reply::Yes(Some(chosen.clone())));
            assert_eq!(Reply::of(line, &offers), chosen, "{line}");
        }
        assert_eq!(Reply::of("p", &[always]), None);
        assert_eq!(Reply::of("always, please", &offers), None);
    }
}
