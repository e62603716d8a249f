//! Renders requests ([`render`]): turns are written as soon as no later message can change them, and the
//! breakpoints of the prompt cache are inserted while the body is put together.

use std::collections::BTreeMap;

use plimsoll_context::{Breakpoint, CacheRetention, Message};

use crate::error::WireError;
use crate::normalize::{Native, Normalizer};
use crate::object::{Object, Settings};
use crate::prompt_texts;
use crate::request::{EncodedRequest, RenderInput};
use crate::server_rules::ServerRules;
use crate::turns::{Block, Role, Turn};

/// Renders requests for one server or model: a dialect or a profile.
pub trait RequestRenderer {
    /// Renders a request. Deterministic: the same transcript and settings give the same bytes.
    fn render(&self, input: &RenderInput<'_>, messages: &[&Message]) -> EncodedRequest;
}

/// Renders a transcript. Deterministic: the same transcript and settings give the same bytes.
///
/// # Errors
///
/// None in practice. It could only fail on a value that is not JSON.
pub fn render<'a>(
    input: &RenderInput<'a>,
    messages: impl IntoIterator<Item = &'a Message>,
    renderer: &impl RequestRenderer,
) -> Result<EncodedRequest, WireError> {
    let messages: Vec<&Message> = messages.into_iter().collect();
    Ok(renderer.render(input, &messages))
}

/// Writes turns as the JSON of a protocol.
pub(crate) trait TurnWriter {
    /// Appends a turn to a body, and reports the blocks that may have a breakpoint.
    fn write(&self, turn: &Turn, out: &mut Vec<u8>, spots: &mut Spots);

    /// Returns a turn as JSON.
    fn json(&self, turn: &Turn) -> String {
        let mut json = Vec::new();
        self.write(turn, &mut json, &mut Spots::default());
        // A turn is written as text.
        String::from_utf8_lossy(&json).into_owned()
    }

    /// Returns the JSON of a breakpoint, for the end of the members of a block.
    fn breakpoint(&self, mark: &str) -> String {
        format!(r#","cache_control":{mark}"#)
    }
}

/// The offset in a body at which a breakpoint is inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    /// The end of the text, or of the members of the block.
    pub(crate) end: usize,
    /// The beginning of the text, if it is not in a list of parts yet.
    pub(crate) text: Option<usize>,
}

/// The spots of the breakpoints.
#[derive(Debug, Default)]
pub(crate) struct Spots {
    places: BTreeMap<usize, Spot>,
    last: Option<Spot>,
}

impl Spots {
    /// Reports a block that was written.
    pub(crate) fn block(&mut self, block: &Block, spot: Spot) {
        for place in &block.breakpoints {
            self.places.insert(*place, spot);
        }
        self.last = Some(spot);
    }
}

/// The messages of a request, written as far as they are final.
#[derive(Debug)]
pub(crate) struct Composer {
    rules: ServerRules,
    pub(crate) normalizer: Normalizer,
    /// The written turns, each with a comma behind it.
    written: Vec<u8>,
    spots: Spots,
    /// The number of messages that it has received.
    messages: usize,
}

impl Composer {
    /// Creates a composer that begins with the system prompt, if there is one.
    pub(crate) fn new(rules: ServerRules, system: Option<&str>) -> Self {
        let mut composer = Self {
            rules,
            normalizer: Normalizer::new(rules),
            written: Vec::new(),
            spots: Spots::default(),
            messages: 0,
        };
        if let Some(system) = system {
            composer.normalizer.prompt(system);
            composer.normalizer.open.break_at(0);
        }
        composer
    }

    /// Takes the next message.
    pub(crate) fn message(
        &mut self,
        message: &Message,
        native: &mut impl Native,
        writer: &impl TurnWriter,
    ) {
        self.normalizer.message(message, native);
        self.messages += 1;
        let open = &mut self.normalizer.open;
        if !open.break_at(self.messages)
            && let Some(last) = self.spots.last
        {
            self.spots.places.insert(self.messages, last);
        }
        let last = open.turns.len().saturating_sub(1);
        self.write(last, writer);
    }

    /// Writes this number of turns, which are final.
    fn write(&mut self, turns: usize, writer: &impl TurnWriter) {
        let turns = self.normalizer.open.turns.drain(..turns);
        for turn in turns.flat_map(|turn| sent(turn, &self.rules)) {
            writer.write(&turn, &mut self.written, &mut self.spots);
            self.written.push(b',');
        }
    }

    /// Ends the messages and returns the request: `head`, the list `key` of all messages with `mark` at the
    /// breakpoints, and the settings. `context` follows the messages in the user's role.
    pub(crate) fn request(
        mut self,
        (head, key): (Object, &str),
        context: Option<&str>,
        (breakpoints, mark): (&[Breakpoint], &str),
        writer: &impl TurnWriter,
        settings: &Settings,
    ) -> EncodedRequest {
        self.normalizer.open.finish(context);
        self.write(self.normalizer.open.turns.len(), writer);
        // The comma behind the last turn.
        self.written.pop();
        let (list, spots) = (self.written, self.spots);
        let spot = |breakpoint: &Breakpoint| {
            let place = match breakpoint {
                Breakpoint::Tools => return None,
                Breakpoint::System => 0,
                Breakpoint::Message(index) => index + 1,
            };
            spots.places.get(&place).copied()
        };
        let mut wanted: Vec<Spot> = breakpoints.iter().filter_map(spot).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut body = head.open_list(key);
        body.reserve(list.len());
        let mut at = 0;
        let mut copy = |upto: usize, body: &mut Vec<u8>| {
            body.extend_from_slice(list.get(at..upto).unwrap_or_default());
            at = upto;
        };
        for spot in wanted {
            if let Some(text) = spot.text {
                copy(text, &mut body);
                body.extend_from_slice(br#"[{"type":"text","text":"#);
            }
            copy(spot.end, &mut body);
            body.extend_from_slice(writer.breakpoint(mark).as_bytes());
            if spot.text.is_some() {
                body.extend_from_slice(b"}]");
            }
        }
        copy(list.len(), &mut body);
        body.push(b']');
        settings.write(&mut body);
        body.push(b'}');
        EncodedRequest {
            body,
            notes: self.normalizer.notes,
            ..EncodedRequest::default()
        }
    }
}

/// Returns the breakpoint for a cache lifetime. `CacheRetention::Head` counts as the usual lifetime
/// here.
pub(crate) fn cache_control(retention: CacheRetention) -> &'static str {
    match retention {
        CacheRetention::Long => r#"{"type":"ephemeral","ttl":"1h"}"#,
        CacheRetention::Usual | CacheRetention::Head => r#"{"type":"ephemeral"}"#,
    }
}

/// Returns a final turn as the turns that are sent, because some servers need results in separate
/// messages.
fn sent(mut turn: Turn, rules: &ServerRules) -> Vec<Turn> {
    let rest = rules.results_apart.then(|| turn.split_results());
    match rest.flatten() {
        None => vec![turn],
        Some(rest) if rules.user_after_result => vec![turn, rest],
        Some(rest) => vec![
            turn,
            Turn::fixed(Role::Assistant, prompt_texts::BRIDGE),
            rest,
        ],
    }
}
