//! [`RunInput`]: handles the user's input during a run: it steers, answers questions and interrupts.
//! The lines of a script wait for the end of the run, unless a question does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use plimsoll::Remote;
use tokio::sync::mpsc::Receiver;
use tokio::time::sleep;

use crate::ask::{PendingQuestion, Reply};
use crate::attach::Recipient;
use crate::chat::input_event::InputLine;
use crate::chat::parse::{ChatLine, Command};
use crate::chat::prompt::{ChatActivity, Gauge, Press};
use crate::chat::templates::Templates;
use crate::terminal::Terminal;

/// The pause before the lines that a run does not take yet are sent to it again.
const AGAIN: Duration = Duration::from_millis(20);

/// The user's input, and the question that waits for it.
pub(crate) struct RunInput {
    pub(crate) lines: Receiver<InputLine>,
    pub(crate) presses: Receiver<Press>,
    pub(crate) questions: Receiver<PendingQuestion>,
    pub(crate) terminal: Arc<Terminal>,
    pub(crate) gauge: Arc<Gauge>,
    pub(crate) templates: Arc<Templates>,
    /// The newest question, if it waits for a reply.
    pub(crate) asked: Option<PendingQuestion>,
    /// Lines that the current run does not take: it has only just begun, or has ended.
    pub(crate) held: VecDeque<String>,
    /// Whether the chat ends as soon as nothing is under way.
    pub(crate) leaving: bool,
    /// Whether the user has left the chat with Ctrl-C.
    pub(crate) pressed: bool,
}

/// An event between runs.
pub(crate) enum ChatEvent {
    Press(Press),
    /// `None` at the end of the input.
    Typed(Option<InputLine>),
}

impl RunInput {
    /// Waits for the next event between runs.
    pub(crate) async fn next(&mut self) -> ChatEvent {
        let Self { held, lines, .. } = self;
        let typed = async {
            match held.pop_front() {
                Some(line) => Some(Ok(line)),
                None => lines.recv().await,
            }
        };
        tokio::select! {
            biased;
            Some(press) = self.presses.recv() => ChatEvent::Press(press),
            typed = typed => ChatEvent::Typed(typed),
        }
    }

    /// Asks a yes-no question between runs, again until a line is an answer. A script cannot read the
    /// question: a line of it that is no answer means no, and is handled afterwards.
    pub(crate) async fn confirm(&mut self, question: &str) -> bool {
        loop {
            self.gauge.doing(ChatActivity::Asking);
            self.terminal.must(question);
            let event = self.next().await;
            self.gauge.doing(ChatActivity::Idle);
            match event {
                ChatEvent::Typed(Some(Ok(line))) => match Reply::of(&line, &[]) {
                    Some(reply) => return reply == Reply::Yes(None),
                    None if self.terminal.is_live() => continue,
                    None => self.held.push_front(line),
                },
                ChatEvent::Typed(None) => self.leaving = true,
                ChatEvent::Press(Press::Leave) => self.leave(),
                _ => {}
            }
            return false;
        }
    }

    /// Leaves the chat because of Ctrl-C.
    pub(crate) fn leave(&mut self) {
        (self.leaving, self.pressed) = (true, true);
    }

    /// Ends a run: its question is dropped.
    pub(crate) fn rest(&mut self) {
        self.asked = None;
        while self.questions.try_recv().is_ok() {}
    }

    /// Handles input during a run. Returns only if the run is to be dropped. The lines of a script wait
    /// for the end of the run.
    pub(crate) async fn attend(&mut self, remote: &Remote, recipient: &Recipient) {
        loop {
            let listens = self.terminal.is_live() && !self.leaving;
            tokio::select! {
                biased;
                Some(press) = self.presses.recv() => match press {
                    Press::Leave => return self.leave(),
                    _ => drop(remote.interrupt().await),
                },
                Some(question) = self.questions.recv() => {
                    self.terminal.status(None);
                    self.gauge.doing(ChatActivity::Asking);
                    self.terminal.must(&question.text);
                    self.asked = Some(question);
                }
                typed = self.lines.recv(), if listens => match typed {
                    Some(Ok(line)) => {
                        self.held.push_back(line);
                        self.deliver(remote, recipient).await;
                    }
                    Some(Err(stop)) => self.terminal.must(&stop.text),
                    None => self.quit(remote).await,
                },
                () = sleep(AGAIN), if listens && !self.held.is_empty() => {
                    self.deliver(remote, recipient).await;
                }
                // Neither input nor questions can arrive: the current work ends by itself.
                else => std::future::pending().await,
            }
        }
    }

    /// Waits for Ctrl-C during other work that it ends.
    pub(crate) async fn until_stopped(&mut self) {
        match self.presses.recv().await {
            Some(Press::Leave) => self.leave(),
            Some(_) => {}
            None => std::future::pending().await,
        }
    }

    /// Handles the lines that wait, in their order, until the run does not take one.
    async fn deliver(&mut self, remote: &Remote, recipient: &Recipient) {
        // A line stays until it is handled, because the end of the run drops this future.
        while let Some(line) = self.held.front().cloned() {
            if !self.line(&line, remote, recipient).await {
                return;
            }
            self.held.pop_front();
        }
    }

    /// Handles a line: an answer to the open question, a message, or a command. A message instead of an
    /// answer is sent first, and the call is skipped. A command leaves the question open. Returns `false`
    /// if the run takes no message.
    async fn line(&mut self, line: &str, remote: &Remote, recipient: &Recipient) -> bool {
        let parsed = self.templates.order(line);
        let asked = self.asked.as_ref();
        let reply = asked.and_then(|asked| Reply::of(line, &asked.offers));
        let is_answer = reply.is_some() || matches!(parsed, ChatLine::Say(_));
        let asked = self.asked.take_if(|_| is_answer);
        if asked.is_some() {
            self.gauge.doing(ChatActivity::Working);
        }
        match (asked, reply) {
            (Some(asked), Some(reply)) => {
                if asked.reply.send(reply).is_err() {
                    self.terminal.must("that question is no longer asked");
                }
                true
            }
            (asked, _) => {
                let is_taken = self.act(parsed, remote, recipient).await;
                // An error means that the call waits no longer.
                let _ = asked.map(|asked| asked.reply.send(Reply::Overtaken));
                is_taken
            }
        }
    }

    /// Sends a message, or executes a command that needs none. Returns `false` if the run takes no message.
    async fn act(&mut self, parsed: ChatLine, remote: &Remote, recipient: &Recipient) -> bool {
        let why = match parsed {
            ChatLine::Say(text) => match recipient.message(text) {
                Ok(message) => return remote.steer(message).await,
                Err(why) => format!("plimsoll: {why}"),
            },
            ChatLine::Command(Command::Later, text) => match recipient.message(text) {
                Ok(message) => return remote.follow_up(message).await,
                Err(why) => format!("plimsoll: {why}"),
            },
            ChatLine::Command(Command::Quit, _) => {
                self.quit(remote).await;
                return true;
            }
            ChatLine::Command(..) => {
                "this command works only between runs; a plain line steers this run, /later TEXT is \
                 sent after its answer, Ctrl-C stops it"
                    .to_owned()
            }
            ChatLine::Unknown(text) => text,
            ChatLine::Nothing => return true,
        };
        self.terminal.must(&why);
        true
    }

    async fn quit(&mut self, remote: &Remote) {
        self.leaving = true;
        remote.interrupt().await;
    }
}
