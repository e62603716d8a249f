//! Renders requests, each whole ([`render`]) or as the next one of a session that grows
//! ([`render_next`]): turns that are final are written once, and the breakpoints of the prompt cache,
//! which move from request to request, are put in while the body is put together.

use std::collections::BTreeMap;

use plimsoll_context::{Breakpoint, CacheRetention, Message, MessageList};

use crate::anthropic::MessagesDecisions;
use crate::bedrock::ConverseDecisions;
use crate::chunks::BodyChunks;
use crate::error::WireError;
use crate::normalize::{Native, Normalizer};
use crate::object::Settings;
use crate::prompt_texts;
use crate::request::{EncodedRequest, RenderInput};
use crate::server_rules::{Results, ServerRules};
use crate::turns::{Block, Content, Role, Turn};

/// Renders requests for one server or model: a dialect or a profile.
pub trait RequestRenderer {
    /// Renders a request. `written` has the messages that were rendered before.
    #[doc(hidden)]
    fn render(
        &self,
        written: &mut WrittenMessages,
        input: &RenderInput<'_>,
        messages: &dyn History,
    ) -> EncodedRequest<BodyChunks>;
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
    let mut written = WrittenMessages::default();
    let rendered = renderer.render(&mut written, input, &messages);
    let composer = written.composer.as_ref();
    Ok(EncodedRequest {
        from: composer.map(Composer::from).unwrap_or_default(),
        ..rendered.into_whole()
    })
}

/// Renders the next request of a growing session like [`render`], but shares the messages that were
/// rendered before with earlier requests.
///
/// `written` belongs to one renderer. [`EncodedRequest::from`] stays empty. All messages are rendered
/// again if the request does not [begin](WrittenMessages::begins) with the written ones, or if thinking
/// or calls of the provider's tools in them have to be left out now, or no longer. A dialect with JSON
/// turns is always rendered whole.
///
/// ```
/// use plimsoll_context::{Message, MessageList};
/// use plimsoll_wire::openai_chat::{Dialect, render, render_next};
/// use plimsoll_wire::{RenderInput, WrittenMessages};
///
/// let (dialect, input) = (Dialect::openai(), RenderInput::default());
/// let messages = [Message::user("One."), Message::assistant("1"), Message::user("Two.")];
/// let (mut list, mut written) = (MessageList::default(), WrittenMessages::default());
/// for (index, message) in messages.iter().enumerate() {
///     list.push(message.clone().into());
///     let next = render_next(&mut written, &input, &list, &dialect);
///     let whole = render(&input, &messages[..=index], &dialect)?;
///     assert_eq!(next.into_whole().body, whole.body);
/// }
/// # Ok::<(), plimsoll_wire::WireError>(())
/// ```
#[must_use]
pub fn render_next(
    written: &mut WrittenMessages,
    input: &RenderInput<'_>,
    messages: &MessageList,
    renderer: &impl RequestRenderer,
) -> EncodedRequest<BodyChunks> {
    if !written.begins(input.system, messages) {
        *written = WrittenMessages {
            system: input.system.map(str::to_owned),
            ..WrittenMessages::default()
        };
    }
    let rendered = renderer.render(written, input, messages);
    written.messages = messages.clone();
    rendered
}

/// The messages of a request in written form, for the next request that begins with them.
#[derive(Debug, Default)]
pub struct WrittenMessages {
    system: Option<String>,
    messages: MessageList,
    composer: Option<Composer>,
    /// The decisions of Messages about the messages as a whole. If these change, all messages are written
    /// again.
    pub(crate) anthropic: MessagesDecisions,
    /// Those of Converse.
    pub(crate) bedrock: ConverseDecisions,
}

impl WrittenMessages {
    /// Returns `true` if a request has the system prompt of the last one and begins with its messages.
    /// Messages are compared by identity.
    #[must_use]
    pub fn begins(&self, system: Option<&str>, messages: &MessageList) -> bool {
        messages.starts_with(&self.messages) && self.system.as_deref() == system
    }

    /// Returns the size of the written messages, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let composer = self.composer.as_ref();
        composer.map_or(0, |composer| composer.written.len())
    }

    /// Returns the number of messages in the last request.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages.len()
    }

    /// Returns the composer, which begins with the system prompt.
    pub(crate) fn composer(&mut self, rules: ServerRules, system: Option<&str>) -> &mut Composer {
        self.composer.get_or_insert_with(|| {
            let mut composer = Composer::new(rules);
            if let Some(system) = system {
                composer.prompt(system);
            }
            composer
        })
    }

    /// Returns the number of messages that the composer has received.
    pub(crate) fn composed(&self) -> usize {
        let composer = self.composer.as_ref();
        composer.map_or(0, |composer| composer.messages)
    }
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

/// The messages of a request by their index.
pub trait History {
    /// Returns their number.
    fn len(&self) -> usize;

    /// Returns a message.
    fn message(&self, index: usize) -> Option<&Message>;
}

impl History for Vec<&Message> {
    fn len(&self) -> usize {
        self.len()
    }

    fn message(&self, index: usize) -> Option<&Message> {
        self.get(index).copied()
    }
}

impl History for MessageList {
    fn len(&self) -> usize {
        self.len()
    }

    fn message(&self, index: usize) -> Option<&Message> {
        self.get(index).map(AsRef::as_ref)
    }
}

impl dyn History + '_ {
    /// Returns the messages from an index on.
    pub(crate) fn since(&self, first: usize) -> impl DoubleEndedIterator<Item = &Message> {
        (first..self.len()).filter_map(|index| self.message(index))
    }

    /// Returns the last message.
    pub(crate) fn last(&self) -> Option<&Message> {
        self.message(self.len().checked_sub(1)?)
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
    /// The offset in the messages at which the written bytes begin.
    base: usize,
}

impl Spots {
    /// Reports a block that was written.
    pub(crate) fn block(&mut self, block: &Block, spot: Spot) {
        let spot = Spot {
            end: spot.end + self.base,
            text: spot.text.map(|at| at + self.base),
        };
        for place in &block.breakpoints {
            self.places.insert(*place, spot);
        }
        self.last = Some(spot);
    }
}

/// The properties of a written turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outline {
    pub(crate) begins_with_thinking: bool,
    /// Whether the tool loop that the turn's results belong to began with thinking. `None` if the
    /// user's turn contains no results.
    pub(crate) loop_began_thinking: Option<bool>,
}

impl Outline {
    /// Returns the outline of a turn behind others.
    fn new(turn: &Turn, before: &[Self]) -> Self {
        let first = turn.blocks.first().map(|block| &block.content);
        let is_results = turn.role == Role::User && turn.results > 0;
        let mut before = before.iter().rev();
        let previous = before.next();
        let earlier = before.next().and_then(|turn| turn.loop_began_thinking);
        let began = earlier.or(previous.map(|turn| turn.begins_with_thinking));
        Self {
            begins_with_thinking: matches!(first, Some(Content::Thinking(_))),
            loop_began_thinking: is_results.then(|| began.unwrap_or_default()),
        }
    }
}

/// The messages of a request, written as far as they are final.
#[derive(Debug)]
pub(crate) struct Composer {
    rules: ServerRules,
    pub(crate) normalizer: Normalizer,
    /// The final turns, each with a comma behind it.
    written: BodyChunks,
    spots: Spots,
    outlines: Vec<Outline>,
    /// The messages of the transcript in each turn.
    from: Vec<Vec<usize>>,
    /// Those in each turn behind the final ones of the last body.
    from_end: Vec<Vec<usize>>,
    /// The number of messages that it has received.
    pub(crate) messages: usize,
}

impl Composer {
    pub(crate) fn new(rules: ServerRules) -> Self {
        Self {
            rules,
            normalizer: Normalizer::new(rules),
            written: BodyChunks::default(),
            spots: Spots::default(),
            outlines: Vec::new(),
            from: Vec::new(),
            from_end: Vec::new(),
            messages: 0,
        }
    }

    /// Takes the system prompt.
    pub(crate) fn prompt(&mut self, text: &str) {
        self.normalizer.prompt(text);
        self.normalizer.open.break_at(0);
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
        let turns: Vec<Turn> = open.turns.drain(..last).collect();
        for turn in turns.into_iter().flat_map(|turn| sent(turn, &self.rules)) {
            let (written, before) = self.written.open();
            self.spots.base = before;
            writer.write(&turn, written, &mut self.spots);
            written.push(b',');
            self.outlines.push(Outline::new(&turn, &self.outlines));
            self.from.push(turn.from);
        }
    }

    /// Returns the turns behind the final ones if the request ends here; `context` follows in the user's
    /// role.
    pub(crate) fn end(&self, context: Option<&str>) -> Vec<Turn> {
        let mut open = self.normalizer.open.clone();
        open.finish(context);
        let turns = std::mem::take(&mut open.turns);
        let sent = turns.into_iter().flat_map(|turn| sent(turn, &self.rules));
        sent.collect()
    }

    /// Returns a body: `head`, all messages with `mark` at the breakpoints, and the settings. `end` are
    /// the last turns.
    pub(crate) fn body(
        &mut self,
        head: Vec<u8>,
        end: &[Turn],
        (breakpoints, mark): (&[Breakpoint], &str),
        writer: &impl TurnWriter,
        settings: &Settings,
    ) -> BodyChunks {
        self.from_end = end.iter().map(|turn| turn.from.clone()).collect();
        self.written.seal_if_large();
        let split = self.written.len();
        let mut spots = Spots {
            base: split,
            ..Spots::default()
        };
        let mut tail = Vec::new();
        for turn in end {
            writer.write(turn, &mut tail, &mut spots);
            tail.push(b',');
        }
        tail.pop();
        let spot = |breakpoint: &Breakpoint| {
            let place = match breakpoint {
                Breakpoint::Tools => return None,
                Breakpoint::System => 0,
                Breakpoint::Message(index) => index + 1,
            };
            let here = spots.places.get(&place);
            here.or_else(|| self.spots.places.get(&place)).copied()
        };
        let mut wanted: Vec<Spot> = breakpoints.iter().filter_map(spot).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut body = BodyChunks::from(head);
        let mut at = 0;
        let mut take = |upto: usize, body: &mut BodyChunks| {
            let end = at.max(split) - split..upto.max(split) - split;
            body.share(&self.written, at.min(split)..upto.min(split));
            body.push(tail.get(end).unwrap_or_default());
            at = upto;
        };
        for spot in wanted {
            if let Some(text) = spot.text {
                take(text, &mut body);
                body.push(br#"[{"type":"text","text":"#);
            }
            take(spot.end, &mut body);
            body.push(writer.breakpoint(mark).as_bytes());
            if spot.text.is_some() {
                body.push(b"}]");
            }
        }
        take(split + tail.len(), &mut body);
        let mut rest = vec![b']'];
        settings.write(&mut rest);
        rest.push(b'}');
        body.push(&rest);
        body
    }

    /// Returns the list of messages as JSON, if the request ends here, and the indices of the messages
    /// in each turn. Does not copy the written messages.
    pub(crate) fn into_list(mut self, writer: &impl TurnWriter) -> (Vec<u8>, Vec<Vec<usize>>) {
        let end = self.end(None);
        self.from_end = end.iter().map(|turn| turn.from.clone()).collect();
        let from = self.from();
        let mut list = self.written.into_vec();
        for turn in &end {
            writer.write(turn, &mut list, &mut Spots::default());
            list.push(b',');
        }
        list.pop();
        list.insert(0, b'[');
        list.push(b']');
        (list, from)
    }

    /// Returns the outlines of the newest turns: those of `end` and of the two turns before it.
    pub(crate) fn outlines(&self, end: &[Turn]) -> Vec<Outline> {
        let from = self.outlines.len().saturating_sub(2);
        let mut newest = self.outlines.get(from..).unwrap_or_default().to_vec();
        for turn in end {
            newest.push(Outline::new(turn, &newest));
        }
        newest
    }

    /// Returns the indices of the messages in each turn of the last body.
    fn from(&self) -> Vec<Vec<usize>> {
        self.from.iter().chain(&self.from_end).cloned().collect()
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
    let is_separate = rules.results == Results::ApartFromUser;
    match is_separate.then(|| turn.split_results()).flatten() {
        None => vec![turn],
        Some(rest) if rules.user_after_result => vec![turn, rest],
        Some(rest) => vec![
            turn,
            Turn::fixed(Role::Assistant, prompt_texts::BRIDGE),
            rest,
        ],
    }
}
