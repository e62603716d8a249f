//! [`RunInput`]: handles the user's input during a run: it steers, answers questions and interrupts.
//! The lines of a script wait for the end of the run, unless a question does.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll::{Part, Remote};
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;

use crate::ask::{PendingQuestion, Reply};
use crate::attach::Recipient;
use crate::chat::input_event::InputEvent;
use crate::chat::interrupts::Press;
use crate::chat::parse::{ChatLine, Command};
use crate::chat::prompt::{ChatActivity, Gauge};
use crate::chat::templates::Templates;
use crate::terminal::Terminal;

/// The user's input, and the question that waits for it.
pub(crate) struct RunInput {
    pub(crate) lines: Receiver<InputEvent>,
    pub(crate) presses: Receiver<Press>,
    pub(crate) questions: Receiver<PendingQuestion>,
    pub(crate) terminal: Arc<Terminal>,
    pub(crate) gauge: Arc<Gauge>,
    pub(crate) templates: Arc<Templates>,
    /// The reply to the newest question, if it waits for one.
    pub(crate) asked: Option<oneshot::Sender<Reply>>,
    /// Lines that came too late for a run, and wait for its end.
    pub(crate) held: VecDeque<String>,
    /// Whether the chat ends as soon as nothing is under way.
    pub(crate) leaving: bool,
    /// Whether the user has left the chat with Ctrl-C.
    pub(crate) pressed: bool,
}

/// An event between runs.
pub(crate) enum ChatEvent {
    Press(Press),
    Typed(InputEvent),
}

impl RunInput {
    /// Waits for the next event between runs.
    pub(crate) async fn next(&mut self) -> ChatEvent {
        if let Ok(press) = self.presses.try_recv() {
            return ChatEvent::Press(press);
        }
        if let Some(line) = self.held.pop_front() {
            return ChatEvent::Typed(InputEvent::Line(line));
        }
        tokio::select! {
            biased;
            Some(press) = self.presses.recv() => ChatEvent::Press(press),
            typed = self.lines.recv() => ChatEvent::Typed(typed.unwrap_or(InputEvent::End)),
        }
    }

    /// Asks a question between runs. A line that is no answer is handled afterwards.
    pub(crate) async fn ask_now(&mut self, question: &str) -> Option<Reply> {
        self.gauge.doing(ChatActivity::Asking);
        self.terminal.must(question);
        let event = self.next().await;
        self.gauge.doing(ChatActivity::Idle);
        match event {
            ChatEvent::Typed(InputEvent::Line(line)) => {
                let reply = Reply::of(&line);
                if reply.is_none() {
                    self.held.push_front(line);
                }
                return reply;
            }
            ChatEvent::Typed(InputEvent::End) => self.leaving = true,
            ChatEvent::Press(Press::Leave) => self.leave(),
            _ => {}
        }
        None
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
                Some(PendingQuestion { text, reply }) = self.questions.recv() => {
                    self.asked = Some(reply);
                    self.terminal.status(None);
                    self.gauge.doing(ChatActivity::Asking);
                    self.terminal.must(&text);
                }
                typed = self.lines.recv(), if listens => match typed {
                    Some(InputEvent::Line(line)) => self.line(line, remote, recipient).await,
                    Some(InputEvent::Bad(text)) => self.terminal.must(&text),
                    Some(InputEvent::End) | None => self.quit(remote).await,
                },
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

    async fn line(&mut self, line: String, remote: &Remote, recipient: &Recipient) {
        if let Some(asked) = self.asked.take() {
            let reply = Reply::of(&line);
            let order = self.templates.order(&line);
            let answers = reply.is_some()
                || matches!(
                    order,
                    ChatLine::Say(_) | ChatLine::Command(Command::Quit, _)
                );
            match asked.is_closed() {
                // The question stays, and the line is a command.
                false if !answers => self.asked = Some(asked),
                is_closed => {
                    self.gauge.doing(ChatActivity::Working);
                    if !is_closed {
                        return self.answer(asked, reply, order, remote, recipient).await;
                    }
                    if reply.is_some() {
                        return self.terminal.must("that question is no longer asked");
                    }
                }
            }
        }
        match self.templates.order(&line) {
            ChatLine::Command(Command::Later, text) => {
                if let Some(parts) = self.message(text, recipient)
                    && !remote.follow_up(parts).await
                {
                    self.held.push_back(line);
                }
            }
            ChatLine::Nothing => {}
            ChatLine::Say(text) => self.steer(text, remote, recipient).await,
            ChatLine::Command(Command::Quit, _) => self.quit(remote).await,
            ChatLine::Unknown(text) => self.terminal.must(&text),
            ChatLine::Command(..) => self.terminal.must(
                "this command works only between runs; a plain line steers this run, /later TEXT \
                 is sent after its answer, Ctrl-C stops it",
            ),
        }
    }

    async fn quit(&mut self, remote: &Remote) {
        self.leaving = true;
        remote.interrupt().await;
    }

    /// Steers the run. If it has just ended, the message begins the next one.
    async fn steer(&mut self, text: String, remote: &Remote, recipient: &Recipient) {
        let Some(parts) = self.message(text.clone(), recipient) else {
            return;
        };
        if !remote.steer(parts).await {
            let slash = if text.starts_with('/') { "/" } else { "" };
            self.held.push_back(format!("{slash}{text}"));
        }
    }

    /// Builds a message with its images. If the images cannot be sent, returns `None` after
    /// printing the reason.
    fn message(&self, text: String, recipient: &Recipient) -> Option<Vec<Part>> {
        let message = recipient.message(text);
        message
            .inspect_err(|why| self.terminal.must(&format!("plimsoll: {why}")))
            .ok()
    }

    /// Answers a question by a line.
    async fn answer(
        &mut self,
        asked: oneshot::Sender<Reply>,
        reply: Option<Reply>,
        order: ChatLine,
        remote: &Remote,
        recipient: &Recipient,
    ) {
        let reply = match (reply, order) {
            (Some(reply), _) => reply,
            (None, ChatLine::Command(Command::Quit, _)) => return self.quit(remote).await,
            // The model is to read the message first, so the call is skipped.
            (None, ChatLine::Say(text)) => {
                self.steer(text, remote, recipient).await;
                Reply::Overtaken
            }
            (None, _) => Reply::More,
        };
        // An error means that the call waits no longer.
        let _ = asked.send(reply);
    }
}
