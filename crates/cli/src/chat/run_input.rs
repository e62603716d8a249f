//! [`RunInput`]: handles the user's input during a run: it steers, answers questions and interrupts.
//! The lines of a script wait for the end of the run, unless a question does.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll::{Part, Remote};
use tokio::sync::mpsc::Receiver;

use crate::approvals::Approvals;
use crate::ask::{self, Reply};
use crate::attach::Recipient;
use crate::chat::chat_gate::PendingQuestion;
use crate::chat::input_event::InputEvent;
use crate::chat::interrupts::Press;
use crate::chat::parse::{ChatLine, Command};
use crate::chat::prompt::{ChatActivity, Gauge};
use crate::chat::templates::Templates;
use crate::diff::Previews;
use crate::terminal::Terminal;

/// The user's input, and the questions that wait for it.
pub(crate) struct RunInput {
    pub(crate) lines: Receiver<InputEvent>,
    pub(crate) presses: Receiver<Press>,
    pub(crate) questions: Receiver<PendingQuestion>,
    pub(crate) terminal: Arc<Terminal>,
    pub(crate) gauge: Arc<Gauge>,
    pub(crate) previews: Arc<Previews>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) templates: Arc<Templates>,
    /// Questions that wait for an answer. The first one is shown.
    pub(crate) asked: VecDeque<PendingQuestion>,
    /// Lines that came too early or too late, and wait for the end of the run.
    pub(crate) held: VecDeque<String>,
    /// The input has ended.
    pub(crate) ended: bool,
    /// Whether the chat ends as soon as nothing is under way.
    pub(crate) leaving: bool,
    /// Whether the user has left the chat with Ctrl-C.
    pub(crate) pressed: bool,
}

/// An event during a run or between runs.
pub(crate) enum ChatEvent {
    Question(PendingQuestion),
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
        if self.ended {
            return ChatEvent::Typed(InputEvent::End);
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
            ChatEvent::Typed(InputEvent::End) => self.ended = true,
            ChatEvent::Press(Press::Leave) => self.leave(),
            _ => {}
        }
        None
    }

    /// Leaves the chat because of Ctrl-C.
    pub(crate) fn leave(&mut self) {
        (self.leaving, self.pressed) = (true, true);
    }

    /// Ends a run: pending questions are dropped.
    pub(crate) fn rest(&mut self) {
        self.asked.clear();
        while self.questions.try_recv().is_ok() {}
    }

    /// Handles input during a run. Returns only if the run is to be dropped.
    pub(crate) async fn attend(&mut self, remote: &Remote, recipient: &Recipient) {
        loop {
            // The lines of a script are handled in order, however long each takes.
            let listens = !self.ended
                && (self.terminal.is_live() || !self.asked.is_empty() && self.held.is_empty());
            let event = tokio::select! {
                biased;
                Some(press) = self.presses.recv() => ChatEvent::Press(press),
                Some(asked) = self.questions.recv() => ChatEvent::Question(asked),
                typed = self.lines.recv(), if listens => {
                    ChatEvent::Typed(typed.unwrap_or(InputEvent::End))
                }
                // Neither input nor questions can arrive: the current work ends by itself.
                else => std::future::pending().await,
            };
            match event {
                ChatEvent::Question(asked) => self.question(asked),
                ChatEvent::Typed(InputEvent::Line(line)) => {
                    self.line(line, remote, recipient).await;
                }
                ChatEvent::Press(Press::Leave) => return self.leave(),
                ChatEvent::Press(_) => {
                    remote.interrupt().await;
                }
                ChatEvent::Typed(InputEvent::Bad(text)) => self.terminal.must(&text),
                ChatEvent::Typed(InputEvent::End) => self.end(),
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
        let waited = !self.asked.is_empty();
        self.asked.retain(PendingQuestion::is_open);
        if !self.asked.is_empty() {
            return self.answer(line, remote, recipient).await;
        }
        if waited && Reply::of(&line).is_some() {
            return self
                .terminal
                .must("that question has been answered or cancelled already");
        }
        if !self.terminal.is_live() {
            return self.held.push_back(line);
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

    /// Adds the question of a tool call.
    fn question(&mut self, asked: PendingQuestion) {
        self.asked.retain(PendingQuestion::is_open);
        self.asked.push_back(asked);
        if self.asked.len() == 1 {
            self.ask();
        }
    }

    /// Shows the first question.
    fn ask(&mut self) {
        while let Some(asked) = self.asked.front() {
            self.terminal.status(None);
            let question = &asked.question;
            self.terminal
                .must(&self.previews.question(question, &self.terminal));
            self.gauge.doing(ChatActivity::Asking);
            let whole = self.previews.whole(question, self.terminal.colours());
            let prompt = ask::prompt(question, &self.approvals.offer(question), whole.is_some());
            self.terminal.must(&format!("{prompt}, [n]o"));
            // If the next line of a script is no answer, nobody answers.
            if !self.ended && self.held.is_empty() {
                return;
            }
            self.give(Reply::Nobody);
        }
        self.gauge.doing(ChatActivity::Working);
    }

    /// Handles a line while a question waits.
    async fn answer(&mut self, line: String, remote: &Remote, recipient: &Recipient) {
        if let Some(reply) = Reply::of(&line) {
            self.give(reply);
            return self.ask();
        }
        if ask::is_more(&line)
            && let Some(asked) = self.asked.front()
            && let Some(whole) = self
                .previews
                .whole(&asked.question, self.terminal.colours())
        {
            return self.terminal.must(&format!("{whole}\nAllow? [y]es, [n]o"));
        }
        if !self.terminal.is_live() {
            self.held.push_back(line);
            self.give(Reply::Nobody);
            return self.ask();
        }
        match ChatLine::of(&line) {
            ChatLine::Command(Command::Quit, _) => self.quit(remote).await,
            // The model is to read the message first, so the calls that wait are skipped.
            ChatLine::Say(text) => {
                self.steer(text, remote, recipient).await;
                self.give_all(&Reply::Overtaken);
            }
            ChatLine::Nothing => {
                self.give(Reply::No(None));
                self.ask();
            }
            _ => self.ask(),
        }
    }

    fn give(&mut self, reply: Reply) {
        let Some(asked) = self.asked.pop_front() else {
            return;
        };
        if matches!(reply, Reply::Always | Reply::Pattern) {
            let offer = self.approvals.offer(&asked.question);
            self.approvals.take(&reply, offer);
            let allows = |asked: &PendingQuestion| self.approvals.allow(&asked.question);
            let (same, others) = std::mem::take(&mut self.asked)
                .into_iter()
                .partition::<VecDeque<_>, _>(allows);
            self.asked = others;
            for asked in same {
                let _ = asked.answer.send(Reply::Yes);
            }
        }
        let word = match reply {
            Reply::Yes => "allowed",
            Reply::Always | Reply::Pattern => "allowed, and from now on",
            Reply::No(_) => "denied",
            Reply::Overtaken => "skipped: the model reads your message first",
            Reply::Nobody => "denied: nobody answered",
        };
        // The call begins as soon as it has the answer, and prints its own lines.
        if asked.is_open() {
            self.terminal.note(&self.terminal.dim(&format!("· {word}")));
        }
        let _ = asked.answer.send(reply);
    }

    fn give_all(&mut self, reply: &Reply) {
        while !self.asked.is_empty() {
            self.give(reply.clone());
        }
        self.gauge.doing(ChatActivity::Working);
    }

    /// Notes the end of the input. Pending and later questions are denied.
    fn end(&mut self) {
        self.ended = true;
        self.give_all(&Reply::Nobody);
    }
}
