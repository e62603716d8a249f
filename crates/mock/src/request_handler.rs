//! [`RequestHandler`]: handles one request in the order of a provider's servers: headers, rules, rate limit,
//! window, and then the script. HTTP and the formats of the protocols are elsewhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::rules::Fault;
use plimsoll_context::{Bpe, Memo, TokenCounter, Tokens};
use serde_json::{Value, json};

use crate::answer::{AnswerBody, End, HttpAnswer, StreamPace};
use crate::api::{Api, Header, PendingReply, ReportedUsage, RequestKind, Size};
use crate::cache::Cache;
use crate::encode;
use crate::frames::Values;
use crate::mock::{Mock, Over};
use crate::pieces::RequestPiece;
use crate::script::Script;
use crate::turn::Turn;

/// The handler of all requests to a server.
pub(crate) struct RequestHandler {
    pub(crate) mock: Mock,
    counter: Memo<Bpe>,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    script: Script,
    cache: Cache,
    /// The number of requests that broke no rule.
    accepted: u64,
}

/// The result of handling a request.
#[derive(Debug)]
pub(crate) struct HandledRequest {
    pub(crate) answer: HttpAnswer,
    /// The size of the request.
    pub(crate) tokens: Tokens,
    /// The broken rule, if there is one.
    pub(crate) fault: Option<Fault>,
}

impl RequestHandler {
    pub(crate) fn new(mock: Mock) -> Self {
        let now = Now {
            script: mock.script.clone(),
            ..Now::default()
        };
        Self {
            mock,
            counter: Memo::new(Bpe::o200k()),
            now: Mutex::new(now),
        }
    }

    pub(crate) fn turns_left(&self) -> usize {
        self.lock().script.len()
    }

    /// Handles one request of the protocol.
    pub(crate) fn handle(
        &self,
        header: Header<'_>,
        request: &Value,
        kind: RequestKind,
    ) -> HandledRequest {
        let api = self.api();
        if let Some(answer) = api.turned_away(header, request) {
            return HandledRequest::of(answer);
        }
        let pieces = api.pieces(request, &self.counter);
        let tokens = match &self.mock.scales {
            Some(scales) => Tokens(scales(request)),
            None => pieces.iter().map(|piece| piece.tokens).sum(),
        };
        let fault = api.fault(header, request, kind);
        let answer = match (&fault, kind) {
            (Some(fault), _) => {
                let (status, body) = api.refusal(fault);
                HttpAnswer::new(status, body)
            }
            (None, RequestKind::Count) => {
                let values = Values::new(request, json!({ "tokens": tokens }));
                HttpAnswer::new(200, api.frames().one("count", &values))
            }
            (None, RequestKind::Reply) => self.reply(request, &pieces, tokens),
        };
        HandledRequest {
            answer,
            tokens,
            fault,
        }
    }

    fn reply(&self, request: &Value, pieces: &[RequestPiece], sent: Tokens) -> HttpAnswer {
        let api = self.api();
        let number = {
            let mut now = self.lock();
            now.accepted += 1;
            now.accepted
        };
        if let Some(every) = self.mock.busy_every
            && number.is_multiple_of(every)
        {
            return api.failure(429, None).header("retry-after", "0");
        }
        let output = api.output(request).unwrap_or_default();
        let rated = api.rated(request, sent);
        if let Some(limit) = self.mock.per_minute.filter(|limit| rated > *limit) {
            return api.too_many(request, rated, limit);
        }
        let mut call = PendingReply {
            request,
            number,
            used: ReportedUsage {
                input: sent,
                ..ReportedUsage::default()
            },
        };
        let mut left = None;
        let fits = |window: &Tokens| sent < *window && sent + output <= *window;
        if let Some(window) = self.mock.window.filter(|window| !fits(window)) {
            let size = Size {
                used: sent,
                output,
                window,
            };
            match self.mock.over {
                Over::Refused => return api.too_long(size),
                Over::Cut => call.used.input = sent.min(window),
                Over::InStream if sent < window => left = Some(window.minus(sent)),
                Over::InStream => {
                    let refusal = api.too_long(size);
                    return match api.facts().window_stop {
                        None => self.broken(None, &call, refusal),
                        Some(_) => refusal,
                    };
                }
            }
        }
        let scripted = self.lock().script.next();
        let turn = scripted.or_else(|| {
            let then = self.mock.then.as_ref()?;
            Some(then(request, number - 1))
        });
        let Some(turn) = turn else {
            return api.failure(500, Some("the script has no turn left for this request"));
        };
        let turn = match (left, &api.facts().window_stop) {
            (Some(left), Some(stop)) => self.ended(turn, left, stop),
            _ => turn,
        };
        dressed(self.play(&turn, pieces, call), &turn)
    }

    /// Returns the answer for a turn of the script.
    fn play(&self, turn: &Turn, pieces: &[RequestPiece], mut call: PendingReply<'_>) -> HttpAnswer {
        let api = self.api();
        if turn.events.is_none() && (turn.body.is_some() || turn.fail.is_some()) {
            let status = turn.fail.unwrap_or(200);
            return match &turn.body {
                Some(Value::String(body)) => HttpAnswer::of(status, AnswerBody::Text(body.clone())),
                Some(body) => HttpAnswer::new(status, body.clone()),
                None => api.failure(status, turn.message.as_deref()),
            };
        }
        let mut cached = self.lock().cache.read(pieces, api.caching(call.request));
        cached.read = cached.read.min(call.used.input);
        call.used.cached = cached;
        (call.used.output, call.used.reasoning) = self.output(turn);
        if let Some(events) = &turn.events {
            let events = events.iter().map(encode::sse).collect();
            return HttpAnswer::of(200, AnswerBody::Events(events));
        }
        if let Some(status) = turn.fail_in_stream {
            let failure = api.failure(status, turn.message.as_deref());
            return self.broken(Some(turn), &call, failure);
        }
        let answer = HttpAnswer::of(200, encode::body(api, turn, &call));
        if turn.cut || turn.hang {
            answer.halved()
        } else {
            answer
        }
    }

    /// Returns a stream that fails: in the middle of the turn, or after the opening events if there
    /// is no turn. An answer without streaming is the failure alone.
    fn broken(
        &self,
        turn: Option<&Turn>,
        call: &PendingReply<'_>,
        failure: HttpAnswer,
    ) -> HttpAnswer {
        let api = self.api();
        match encode::body(api, turn.unwrap_or(&Turn::default()), call) {
            AnswerBody::Events(mut events) => {
                let half = turn.map_or(0, |_| events.len() / 2);
                events.truncate(half.max(api.frames().count("start")));
                events.push(encode::broken(api, &failure, call, events.len()));
                HttpAnswer::of(200, AnswerBody::Events(events))
            }
            _ => failure,
        }
    }

    /// Returns the part of a turn that fits into the rest of the window.
    fn ended(&self, mut turn: Turn, left: Tokens, stop: &str) -> Turn {
        let (output, _) = self.output(&turn);
        if output <= left {
            return turn;
        }
        if let Some(text) = &mut turn.say {
            let share = text.len() as u64 * left.0 / output.0.max(1);
            let end = text.floor_char_boundary(share as usize);
            text.truncate(end);
        }
        turn.call.clear();
        turn.blocks.clear();
        turn.say_after = None;
        turn.stop = Some(stop.to_owned());
        turn
    }

    /// Returns the size of a turn, and of its reasoning alone.
    fn output(&self, turn: &Turn) -> (Tokens, Tokens) {
        let weigh = |text: &String| self.counter.text(text);
        let texts = [&turn.say, &turn.say_after]
            .into_iter()
            .flatten()
            .map(weigh);
        let calls = turn.call.iter();
        let calls = calls.map(|call| weigh(&call.text()) + weigh(&call.name));
        let blocks = turn.blocks.iter().map(|block| weigh(&block.to_string()));
        let written: Tokens = texts.chain(calls).chain(blocks).sum();
        let reasoning = turn.think.as_ref().map(weigh).unwrap_or_default();
        (written + reasoning, reasoning)
    }

    pub(crate) fn api(&self) -> &dyn Api {
        Arc::as_ref(&self.mock.api)
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HandledRequest {
    pub(crate) fn of(answer: HttpAnswer) -> Self {
        Self {
            answer,
            tokens: Tokens::ZERO,
            fault: None,
        }
    }
}

impl std::fmt::Debug for RequestHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestHandler")
            .field("mock", &self.mock)
            .finish_non_exhaustive()
    }
}

/// Adds the headers and the timing of the turn to an answer.
fn dressed(mut answer: HttpAnswer, turn: &Turn) -> HttpAnswer {
    if let Some(seconds) = turn.retry_after {
        answer = answer.header("retry-after", seconds.to_string());
    }
    for (name, value) in &turn.headers {
        answer = answer.header(name, value);
    }
    answer.pace = StreamPace {
        wait: Duration::from_millis(turn.slow_ms),
        bytewise: turn.bytewise,
        end: match (turn.cut, turn.hang) {
            (true, _) => End::Cut,
            (false, true) => End::Hang,
            (false, false) => End::Close,
        },
        gate: turn
            .gate
            .as_ref()
            .and_then(|gate| Some((gate.at, gate.take()?))),
    };
    answer
}
