//! [`RunInput`]: handles the user's input during a run: it steers, answers questions and interrupts.
//! Lines that have to wait are kept until the run ends.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll::{Part, Remote};
use tokio::sync::mpsc::Receiver;

use crate::approvals::Approvals;
use crate::ask::{self, Reply};
use crate::attach::Recipient;
use crate::chat::chat_gate::PendingQuestion;
use crate::chat::input_event::{InputEvent, WAITING};
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
    pub(crate) state: InputState,
}

/// The state of the input.
#[derive(Default)]
pub(crate) struct InputState {
    /// Questions that wait for an answer. The first one is shown.
    asked: VecDeque<PendingQuestion>,
    /// Lines that wait for the end of the run.
    held: VecDeque<InputEvent>,
    /// The input has ended.
    ended: bool,
    /// Whether the chat ends as soon as nothing is under way.
    leaving: bool,
    /// The recipient of messages during a run.
    recipient: Recipient,
}

/// The step after a line or a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStep {
    Line,
    Leave,
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
        if let Some(typed) = self.state.held.pop_front() {
            return ChatEvent::Typed(typed);
        }
        if self.state.ended {
            return ChatEvent::Typed(InputEvent::End);
        }
        tokio::select! {
            biased;
            Some(press) = self.presses.recv() => ChatEvent::Press(press),
            typed = self.lines.recv() => ChatEvent::Typed(typed.unwrap_or(InputEvent::End)),
        }
    }

    /// Asks a question between runs. A line that is no answer is handled afterwards.
    pub(crate) async fn ask_now(&mut self, question: &str) -> (Option<Reply>, NextStep) {
        self.terminal.must(question);
        match self.next().await {
            ChatEvent::Typed(InputEvent::Line(line)) => {
                let reply = Reply::of(&line);
                if reply.is_none() && !line.trim().is_empty() {
                    self.state.held.push_front(InputEvent::Line(line));
                }
                (reply, NextStep::Line)
            }
            ChatEvent::Typed(InputEvent::End) => {
                self.state.ended = true;
                (None, NextStep::Line)
            }
            ChatEvent::Press(Press::Leave) => (None, NextStep::Leave),
            _ => (None, NextStep::Line),
        }
    }

    /// Ends a run: pending questions are dropped. Returns whether the chat continues.
    pub(crate) fn rest(&mut self) -> NextStep {
        self.state.asked.clear();
        while self.questions.try_recv().is_ok() {}
        if std::mem::take(&mut self.state.leaving) {
            NextStep::Leave
        } else {
            NextStep::Line
        }
    }

    /// Handles input during a run. Returns only if the run is to be dropped.
    pub(crate) async fn attend(&mut self, remote: &Remote, recipient: Recipient) {
        self.state.recipient = recipient;
        loop {
            match self.next_event().await {
                ChatEvent::Question(asked) => self.question(asked),
                ChatEvent::Typed(InputEvent::Line(line)) => self.line(line, remote).await,
                ChatEvent::Press(Press::Leave) => {
                    self.state.leaving = true;
                    return;
                }
                ChatEvent::Press(_) => self.stop(remote).await,
                ChatEvent::Typed(InputEvent::Bad(text)) => self.terminal.must(&text),
                ChatEvent::Typed(InputEvent::End) => self.end(),
            }
        }
    }

    /// Keeps input during work that Ctrl-C ends. Returns when it is pressed.
    pub(crate) async fn until_stopped(&mut self) {
        loop {
            match self.next_event().await {
                // No tool runs now. Dropping the question denies it.
                ChatEvent::Question(_) => {}
                ChatEvent::Press(press) => {
                    self.state.leaving = press == Press::Leave;
                    return;
                }
                ChatEvent::Typed(InputEvent::End) => self.end(),
                ChatEvent::Typed(typed) => self.state.held.push_back(typed),
            }
        }
    }

    async fn next_event(&mut self) -> ChatEvent {
        // While the queue is full, the writer of a pipe waits.
        let listens = !self.state.ended && self.state.held.len() < WAITING;
        tokio::select! {
            biased;
            Some(press) = self.presses.recv() => ChatEvent::Press(press),
            Some(asked) = self.questions.recv() => ChatEvent::Question(asked),
            typed = self.lines.recv(), if listens => ChatEvent::Typed(typed.unwrap_or(InputEvent::End)),
            // Neither input nor questions can arrive: the current work ends by itself.
            else => std::future::pending().await,
        }
    }

    async fn line(&mut self, line: String, remote: &Remote) {
        let waited = !self.state.asked.is_empty();
        self.state.asked.retain(PendingQuestion::is_open);
        if !self.state.asked.is_empty() {
            return self.answer(line, remote).await;
        }
        if waited && Reply::of(&line).is_some() {
            return self
                .terminal
                .must("that question has been answered or cancelled already");
        }
        let order = self.templates.order(&line);
        match order {
            ChatLine::Command(Command::Steer, text) => self.steer(text, remote).await,
            ChatLine::Command(Command::Later, text) => {
                if let Some(parts) = self.message(text)
                    && !remote.follow_up(parts).await
                {
                    self.state.held.push_front(InputEvent::Line(line));
                }
            }
            ChatLine::Command(Command::Stop, _) => self.stop(remote).await,
            ChatLine::Nothing => {}
            // The lines of a script are handled in order, however long each takes.
            _ if !self.terminal.is_live() => self.state.held.push_back(InputEvent::Line(line)),
            ChatLine::Say(text) => self.steer(text, remote).await,
            ChatLine::Command(Command::Quit, _) => {
                self.state.leaving = true;
                self.stop(remote).await;
            }
            ChatLine::Unknown(text) => self.terminal.must(&text),
            _ => self.terminal.must(
                "this command works only between runs; a plain line steers this run, /later TEXT \
                 is sent after its answer, Ctrl-C stops it",
            ),
        }
    }

    /// Steers the run. If it has just ended, the message begins the next one.
    async fn steer(&mut self, text: String, remote: &Remote) {
        let Some(parts) = self.message(text.clone()) else {
            return;
        };
        if !remote.steer(parts).await {
            // The message is kept for the next run.
            let line = match text.strip_prefix('/') {
                Some(rest) => format!("//{rest}"),
                None => text,
            };
            self.state.held.push_front(InputEvent::Line(line));
        }
    }

    /// Builds a message with its images. If the images cannot be sent, returns `None` after
    /// printing the reason.
    fn message(&self, text: String) -> Option<Vec<Part>> {
        let message = self.state.recipient.message(text);
        message
            .inspect_err(|why| self.terminal.must(&format!("plimsoll: {why}")))
            .ok()
    }

    async fn stop(&mut self, remote: &Remote) {
        remote.interrupt().await;
    }

    /// Adds the question of a tool call.
    fn question(&mut self, asked: PendingQuestion) {
        self.state.asked.retain(PendingQuestion::is_open);
        self.state.asked.push_back(asked);
        if self.state.asked.len() == 1 {
            self.ask();
        }
    }

    /// Shows the first question, unless its answer is already known.
    fn ask(&mut self) {
        while let Some(asked) = self.state.asked.front() {
            self.terminal.status(None);
            let question = &asked.question;
            self.terminal
                .must(&self.previews.question(question, &self.terminal));
            self.gauge.doing(ChatActivity::Asking);
            let whole = self.previews.whole(question, self.terminal.colours());
            let prompt = ask::prompt(question, &self.approvals.offer(question), whole.is_some());
            self.terminal.must(&format!("{prompt}, [n]o"));
            let known = match (self.state.held.front(), self.state.ended) {
                (Some(InputEvent::Line(line)), _) => Some(Reply::of(line)),
                (Some(_), _) => Some(None),
                (None, true) => Some(None),
                (None, false) => None,
            };
            match known {
                None => return,
                Some(Some(reply)) => {
                    self.state.held.pop_front();
                    self.give(reply);
                }
                // If the next line of a script is no answer, nobody answers.
                Some(None) => self.give(Reply::Nobody),
            }
        }
        self.gauge.doing(ChatActivity::Working);
    }

    /// Handles a line while a question waits.
    async fn answer(&mut self, line: String, remote: &Remote) {
        if let Some(reply) = Reply::of(&line) {
            self.give(reply);
            return self.ask();
        }
        if ask::is_more(&line)
            && let Some(asked) = self.state.asked.front()
            && let Some(whole) = self
                .previews
                .whole(&asked.question, self.terminal.colours())
        {
            return self.terminal.must(&format!("{whole}\nAllow? [y]es, [n]o"));
        }
        match ChatLine::of(&line) {
            ChatLine::Command(Command::Stop, _) => self.stop(remote).await,
            ChatLine::Command(Command::Quit, _) if self.terminal.is_live() => {
                self.state.leaving = true;
                self.stop(remote).await;
            }
            ChatLine::Command(Command::Steer, text) => self.overtake(text, remote).await,
            ChatLine::Say(text) if self.terminal.is_live() => self.overtake(text, remote).await,
            ChatLine::Nothing if self.terminal.is_live() => {
                self.give(Reply::No(None));
                self.ask();
            }
            _ if self.terminal.is_live() => self.ask(),
            _ => {
                self.state.held.push_back(InputEvent::Line(line));
                self.give(Reply::Nobody);
                self.ask();
            }
        }
    }

    /// Sends a message instead of an answer. The calls that wait for an answer are skipped.
    async fn overtake(&mut self, text: String, remote: &Remote) {
        self.steer(text, remote).await;
        while !self.state.asked.is_empty() {
            self.give(Reply::Overtaken);
        }
        self.gauge.doing(ChatActivity::Working);
    }

    fn give(&mut self, reply: Reply) {
        let Some(asked) = self.state.asked.pop_front() else {
            return;
        };
        if matches!(reply, Reply::Always | Reply::Pattern) {
            let offer = self.approvals.offer(&asked.question);
            self.approvals.take(&reply, offer);
            let waiting = std::mem::take(&mut self.state.asked).into_iter();
            let allows = |asked: &PendingQuestion| self.approvals.allow(&asked.question);
            let (same, others): (VecDeque<PendingQuestion>, VecDeque<PendingQuestion>) =
                waiting.partition(allows);
            self.state.asked = others;
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
        if asked.answer.send(reply).is_ok() {
            self.terminal.note(&self.terminal.dim(&format!("· {word}")));
        }
    }

    /// Notes the end of the input. Pending and later questions are denied.
    fn end(&mut self) {
        self.state.ended = true;
        while !self.state.asked.is_empty() {
            self.give(Reply::Nobody);
        }
        self.gauge.doing(ChatActivity::Working);
    }
}
