//! [`RequestRenderer`]: renders requests, each whole or as the next one of a session that grows.

use std::fmt::Debug;

use plimsoll_context::{Message, MessageList};

use crate::chunks::BodyChunks;
use crate::compose::{History, WrittenMessages};
use crate::error::WireError;
use crate::request::{EncodedRequest, RenderInput};
use crate::turns::Turn;

/// Renders requests for one server or model: a dialect or a profile.
pub trait RequestRenderer {
    /// The decisions about the messages of a request as a whole, which [`WrittenMessages`] keeps.
    type Decisions: Debug + Default;

    /// Renders a request. `written` has the messages that were rendered before. Returns the turns behind
    /// the final ones, too.
    #[doc(hidden)]
    fn render(
        &self,
        written: &mut WrittenMessages<Self::Decisions>,
        input: &RenderInput<'_>,
        messages: &dyn History,
    ) -> (EncodedRequest<BodyChunks>, Vec<Turn>);
}

/// Renders a transcript. Deterministic: the same transcript and settings give the same bytes.
///
/// # Errors
///
/// None in practice. It could only fail on a value that is not JSON.
pub fn render<'a, P: RequestRenderer>(
    input: &RenderInput<'a>,
    messages: impl IntoIterator<Item = &'a Message>,
    renderer: &P,
) -> Result<EncodedRequest, WireError> {
    let messages: Vec<&Message> = messages.into_iter().collect();
    let mut written = WrittenMessages::default();
    let (rendered, end) = renderer.render(&mut written, input, &messages);
    Ok(EncodedRequest {
        from: written.from(&end),
        ..rendered.into_whole()
    })
}

/// Renders the next request of a growing session like [`render`], but shares the messages that were
/// rendered before with earlier requests.
///
/// `messages` must begin with those of the last request with this `written`, and the system prompt and
/// the renderer must be the same. [`EncodedRequest::from`] stays empty. If thinking or calls of the
/// provider's tools in messages that were rendered before have to be left out now, or no longer, all
/// messages are rendered again. A dialect with JSON turns is always rendered whole.
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
pub fn render_next<P: RequestRenderer>(
    written: &mut WrittenMessages<P::Decisions>,
    input: &RenderInput<'_>,
    messages: &MessageList,
    renderer: &P,
) -> EncodedRequest<BodyChunks> {
    renderer.render(written, input, messages).0
}
