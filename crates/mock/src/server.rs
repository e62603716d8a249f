//! [`Server`]: listens on loopback, judges, answers by its script and records what it was asked. It ends
//! when it is dropped. Not a wire; those are beside it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, Response};
use plimsoll_context::{Bpe, Memo, TokenCounter, Tokens};
use plimsoll_wire::openai_chat::Dialect;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::answer::{Answer, End, Pace};
use crate::chat::{self, Used};
use crate::error::MockError;
use crate::prompt_cache::{Piece, PromptCache};
use crate::script::{Script, Turn};

/// A request's body, at most.
pub const MAX_BODY: usize = 64 * 1024 * 1024;
/// Requests that are kept to look at, at most; of more, the newest.
pub const MAX_RECORDED: usize = 10_000;

/// What a server is to be.
#[derive(Debug, Clone)]
pub struct Mock {
    dialect: Dialect,
    script: Script,
    window: Option<Tokens>,
    over: Over,
    per_minute: Option<Tokens>,
    busy_every: Option<u64>,
    address: SocketAddr,
}

/// What happens to a request over the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Refused,
    /// The beginning is dropped without a word, as some local servers do.
    Cut,
}

/// A request as it came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its path.
    pub path: String,
    /// Its body; null where it was no JSON.
    pub body: Value,
    /// The status of the answer.
    pub status: u16,
    /// What it weighs by the server's own count.
    pub tokens: Tokens,
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    mock: Mock,
    counter: Memo<Bpe>,
    state: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    script: Script,
    cache: PromptCache,
    asked: u64,
    recorded: VecDeque<Recorded>,
}

impl Mock {
    /// A server of Chat Completions that is as strict as this dialect's.
    ///
    /// # Errors
    /// Where there is no such dialect.
    pub fn chat(dialect: &str) -> Result<Self, MockError> {
        let dialect =
            Dialect::named(dialect).ok_or_else(|| MockError::Dialect(dialect.to_owned()))?;
        Ok(Self {
            dialect,
            script: Script::default(),
            window: None,
            over: Over::Refused,
            per_minute: None,
            busy_every: None,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
        })
    }

    /// What it says. Default: nothing, so that every request fails.
    #[must_use]
    pub fn script(mut self, script: Script) -> Self {
        self.script = script;
        self
    }

    /// Its window in tokens (o200k): what is longer is refused. Default: none.
    #[must_use]
    pub fn window(mut self, tokens: u64) -> Self {
        self.window = Some(Tokens(tokens));
        self
    }

    /// What does not fit the window is cut off at its beginning without a word.
    #[must_use]
    pub fn cuts_silently(mut self) -> Self {
        self.over = Over::Cut;
        self
    }

    /// A request of more tokens than this is refused as too many for a minute, with a 413.
    #[must_use]
    pub fn tokens_per_minute(mut self, tokens: u64) -> Self {
        self.per_minute = Some(Tokens(tokens));
        self
    }

    /// Every so many requests one is refused with a 429.
    #[must_use]
    pub fn busy_every(mut self, requests: u64) -> Self {
        self.busy_every = Some(requests.max(1));
        self
    }

    /// Where it listens. Default: a free port on loopback.
    #[must_use]
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }
}

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    /// Where the address is taken.
    pub async fn start(mock: Mock) -> Result<Self, MockError> {
        let failed = |why| MockError::Listen {
            address: mock.address.to_string(),
            why,
        };
        let listener = TcpListener::bind(mock.address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let state = Now {
            script: mock.script.clone(),
            ..Now::default()
        };
        let shared = Arc::new(Shared {
            mock,
            counter: Memo::new(Bpe::o200k()),
            state: Mutex::new(state),
        });
        let app = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            // It ends with the task.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self {
            address,
            shared,
            task,
        })
    }

    /// Its address, such as `http://127.0.0.1:40001`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().recorded.iter().cloned().collect()
    }

    /// How many turns of the script are left.
    #[must_use]
    pub fn turns_left(&self) -> usize {
        self.shared.lock().script.len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn chat(&self, request: &Value) -> (Answer, Tokens) {
        let dialect = &self.mock.dialect;
        let pieces = chat::pieces(request, &self.counter);
        let sent: Tokens = pieces.iter().map(Piece::tokens).sum();
        (self.judged(request, dialect, &pieces, sent), sent)
    }

    fn judged(&self, request: &Value, dialect: &Dialect, pieces: &[Piece], sent: Tokens) -> Answer {
        if let Err(refusal) = chat::judge(request, dialect) {
            return refusal;
        }
        let mut now = self.lock();
        now.asked += 1;
        let number = now.asked;
        if let Some(every) = self.mock.busy_every
            && number.is_multiple_of(every)
        {
            let turn = Turn {
                retry_after: Some(0),
                ..Turn::default()
            };
            return chat::failure(429, &turn);
        }
        if let Some(limit) = self.mock.per_minute.filter(|limit| sent > *limit) {
            return chat::too_many(sent, limit);
        }
        let mut input = sent;
        if let Some(window) = self.mock.window.filter(|window| sent >= *window) {
            match self.mock.over {
                Over::Refused => return chat::too_long(sent, window, dialect),
                Over::Cut => input = window,
            }
        }
        let Some(turn) = now.script.next() else {
            let turn = Turn {
                message: Some("the script has no turn left for this request".to_owned()),
                ..Turn::default()
            };
            return chat::failure(500, &turn);
        };
        if let Some(status) = turn.fail {
            return chat::failure(status, &turn);
        }
        let cached = now.cache.read(pieces).min(input);
        drop(now);
        let weigh = |text: &str| self.counter.text(text);
        let calls = turn
            .call
            .iter()
            .map(|call| weigh(&call.arguments()) + weigh(&call.name));
        let texts = [&turn.think, &turn.say]
            .into_iter()
            .flatten()
            .map(|text| weigh(text));
        let used = Used {
            input,
            cached,
            output: texts.chain(calls).sum(),
        };
        Answer {
            status: 200,
            retry_after: None,
            body: chat::say(&turn, request, number, used),
            pace: Pace {
                wait: Duration::from_millis(turn.slow_ms),
                end: match (turn.cut, turn.hang) {
                    (true, _) => End::Cut,
                    (false, true) => End::Hang,
                    (false, false) => End::Close,
                },
            },
        }
    }

    /// What a client may ask about the server itself.
    fn about(&self, path: &str) -> Option<Value> {
        let model = json!({"id": "mock", "object": "model", "created": 0, "owned_by": "plimsoll",
            "max_model_len": self.mock.window});
        match path {
            "/v1/models" | "/models" => Some(json!({"object": "list", "data": [model]})),
            "/props" => {
                let window = self.mock.window?;
                Some(json!({"default_generation_settings": {"n_ctx": window}, "total_slots": 1}))
            }
            _ => None,
        }
    }

    fn record(&self, path: String, body: Value, status: u16, tokens: Tokens) {
        let mut now = self.lock();
        if now.recorded.len() == MAX_RECORDED {
            now.recorded.pop_front();
        }
        now.recorded.push_back(Recorded {
            path,
            body,
            status,
            tokens,
        });
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("mock", &self.mock)
            .finish_non_exhaustive()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let posts = request.method() == Method::POST;
    let not_found = || {
        Answer::new(
            404,
            json!({"error": {"message": format!("there is no {path}"), "type": "invalid_request_error", "param": null, "code": null}}),
        )
    };
    let body = axum::body::to_bytes(request.into_body(), MAX_BODY).await;
    let (answer, body, tokens) = match (body, posts) {
        (Err(_), _) => {
            let error = json!({"message": "the request is too large", "type": "invalid_request_error", "param": null, "code": null});
            (
                Answer::new(413, json!({ "error": error })),
                Value::Null,
                Tokens::ZERO,
            )
        }
        (Ok(_), false) => {
            let about = shared.about(&path).map(|body| Answer::new(200, body));
            (about.unwrap_or_else(not_found), Value::Null, Tokens::ZERO)
        }
        (Ok(bytes), true) if path.ends_with("/chat/completions") => {
            let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
            let (answer, tokens) = shared.chat(&body);
            (answer, body, tokens)
        }
        (Ok(_), true) => (not_found(), Value::Null, Tokens::ZERO),
    };
    shared.record(path, body, answer.status, tokens);
    answer.into_response()
}
