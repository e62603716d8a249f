//! [`OpenTurns`]: the turns that are not final, and the rules about neighbours.

use std::collections::VecDeque;

use crate::prompt_texts;
use crate::server_rules::{MessageForm, ServerRules};
use crate::turns::{AnsweredCall, Block, Content, Role, Turn, TurnCall};

/// The end of a list of turns, which the next message may change.
#[derive(Debug, Clone)]
pub(crate) struct OpenTurns {
    rules: ServerRules,
    pub(crate) turns: Vec<Turn>,
    /// Whether all turns so far are system messages.
    only_systems: bool,
    /// Whether there was a turn.
    any: bool,
    /// Blocks of tool results that must follow the batch.
    attachments: Vec<Block>,
    /// The calls of a batch that are held back until the one before them is answered.
    waiting: VecDeque<TurnCall>,
}

impl OpenTurns {
    pub(crate) fn new(rules: ServerRules) -> Self {
        Self {
            rules,
            turns: Vec::new(),
            only_systems: true,
            any: false,
            attachments: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Returns `true` if there was a turn.
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// Ends the list; `context` follows it in the user's role.
    pub(crate) fn finish(&mut self, context: Option<&str>) {
        self.end_batch();
        if let Some(context) = context.filter(|text| self.rules.accepts(text)) {
            self.emit(Turn::fixed(Role::User, context));
        }
        if self.last() == Some(Role::Assistant) {
            self.end_with_assistant();
        }
        // All servers refuse an empty list.
        if !self.any || (self.rules.user_required && self.only_systems) {
            self.emit(Turn::fixed(Role::User, prompt_texts::OPENING));
        }
    }

    /// Adds a user turn, or removes white space at the end, for servers that refuse it there.
    fn end_with_assistant(&mut self) {
        if !self.rules.assistant_last {
            return self.emit(Turn::fixed(Role::User, prompt_texts::GO_ON));
        }
        let last = self
            .turns
            .last_mut()
            .and_then(|turn| turn.blocks.last_mut());
        if let Some(Content::Text(text)) = last.map(|last| &mut last.content)
            && self.rules.has_blocks()
        {
            text.truncate(text.trim_end().len());
        }
    }

    /// Places a breakpoint at the last possible block. Returns `false` if there is none here, so that
    /// an earlier turn gets it.
    pub(crate) fn break_at(&mut self, place: usize) -> bool {
        let texts = self.rules.form == MessageForm::Chat;
        let mut blocks = self.turns.iter_mut().rev().filter_map(|turn| {
            let mut blocks = turn.blocks.iter_mut().rev();
            if texts {
                let last = blocks.find(|block| !matches!(block.content, Content::Call(_)));
                last.filter(|block| block.as_text().is_some_and(|text| !text.trim().is_empty()))
            } else {
                blocks.find(|block| !matches!(block.content, Content::Thinking(_)))
            }
        });
        let block = blocks.next();
        let found = block.is_some();
        if let Some(block) = block {
            block.breakpoints.push(place);
        }
        found
    }

    /// Ends a batch: adds held-back calls and attachments.
    pub(crate) fn end_batch(&mut self) {
        while let Some(call) = self.waiting.pop_front() {
            self.emit_call(call);
        }
        if !self.attachments.is_empty() {
            let mut blocks = vec![Block::text(prompt_texts::ATTACHMENTS)];
            blocks.append(&mut self.attachments);
            self.emit(Turn::new(Role::User, blocks));
        }
    }

    /// Keeps blocks of a result for the end of the batch.
    pub(crate) fn attach(&mut self, blocks: Vec<Block>) {
        self.attachments.extend(blocks);
    }

    /// Keeps calls of a batch until the one before them is answered.
    pub(crate) fn hold_back(&mut self, calls: VecDeque<TurnCall>) {
        self.waiting = calls;
    }

    /// Adds a held-back call, because its result comes next.
    pub(crate) fn ask(&mut self, id: &str) {
        let at = self.waiting.iter().position(|call| call.id == id);
        if let Some(call) = at.and_then(|at| self.waiting.remove(at)) {
            self.emit_call(call);
        }
    }

    fn emit_call(&mut self, call: TurnCall) {
        let placeholder = self.rules.reasoning.and_then(|rule| rule.placeholder);
        self.emit(Turn {
            reasoning: placeholder.map(str::to_owned),
            ..Turn::new(Role::Assistant, vec![Content::Call(call).into()])
        });
    }

    /// Adds a result, before messages between the call and the result.
    pub(crate) fn put_result(&mut self, answer: AnsweredCall, blocks: Vec<Block>) {
        if self.last() != Some(Role::User) {
            self.push(Turn::new(Role::User, Vec::new()));
        }
        if let Some(turn) = self.turns.last_mut() {
            let block = Content::Result(answer, blocks).into();
            turn.blocks.insert(turn.results, block);
            turn.results += 1;
        }
    }

    /// Adds a turn according to the rules about neighbours.
    pub(crate) fn emit(&mut self, mut turn: Turn) {
        let rules = self.rules;
        if rules.has_blocks() && turn.blocks.is_empty() {
            return;
        }
        if turn.role == Role::System && (rules.has_blocks() || rules.system_first) {
            let first = rules.system_first && self.only_systems;
            if let Some(system) = self.turns.last_mut().filter(|_| first) {
                return system.absorb(turn);
            }
            if !first {
                turn.role = Role::User;
                turn.open_with(prompt_texts::LATER_SYSTEM);
            }
        }
        let last = self.last();
        if turn.role == Role::User && last == Some(Role::Tool) && !rules.user_after_result {
            let rule = rules.reasoning.filter(|rule| !rule.only_with_calls);
            let placeholder = rule.and_then(|rule| rule.placeholder);
            self.push(Turn {
                reasoning: placeholder.map(str::to_owned),
                ..Turn::fixed(Role::Assistant, prompt_texts::BRIDGE)
            });
        }
        if turn.role == Role::Assistant && rules.user_first && self.only_systems {
            self.push(Turn::fixed(Role::User, prompt_texts::OPENING));
        }
        let is_dialogue = matches!(turn.role, Role::User | Role::Assistant);
        let last = self.turns.last_mut().filter(|last| last.role == turn.role);
        if let Some(last) = last.filter(|_| is_dialogue && rules.merges_roles) {
            if rules.has_blocks() {
                return last.blocks.extend(turn.blocks);
            } else if last.calls().next().is_none() {
                return last.absorb(turn);
            }
        }
        self.push(turn);
    }

    fn push(&mut self, turn: Turn) {
        self.any = true;
        self.only_systems &= turn.role == Role::System;
        self.turns.push(turn);
    }

    fn last(&self) -> Option<Role> {
        self.turns.last().map(|turn| turn.role)
    }
}
