//! A strict server on loopback for every API, with answers of raw bytes. Validates every
//! request like the real server and answers from a script, including truncated streams. Ends with
//! the test's runtime.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response, StatusCode};
use futures_util::stream::{self, Stream, StreamExt};
use plimsoll_mock::rules as judge;
use plimsoll_wire::{anthropic, bedrock, gemini, openai_chat, openai_responses};
use serde_json::Value;
use tokio::sync::oneshot;

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

/// One answer.
#[derive(Debug)]
pub(crate) struct FakeAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    pieces: Vec<BodyPiece>,
    end: End,
}

/// A piece of an answer's body.
#[derive(Debug)]
enum BodyPiece {
    Bytes(Bytes),
    /// Nothing more until the test says so.
    Gate(oneshot::Receiver<()>),
}

#[derive(Debug, Clone, Copy)]
enum End {
    Close,
    Cut,
    Hang,
}

/// The server.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) address: String,
    inner: Arc<FakeState>,
}

/// Whose rules a request is judged by.
#[derive(Debug)]
pub(crate) enum Judge {
    Chat(openai_chat::Dialect),
    Responses(openai_responses::ResponsesProfile),
    Messages(anthropic::MessagesProfile),
    Gemini(gemini::GeminiProfile),
    Converse(bedrock::ConverseProfile),
}

impl Judge {
    fn path(&self) -> &'static str {
        match self {
            Self::Chat(_) => "/chat/completions",
            Self::Responses(_) => "/responses",
            Self::Messages(_) => "/messages",
            Self::Gemini(_) => ":streamGenerateContent",
            Self::Converse(_) => "/converse-stream",
        }
    }

    /// The status and the words of a refusal; nothing for a valid request.
    fn refuse(&self, body: &Value, betas: &str) -> Option<(u16, Value)> {
        let faults = match self {
            Self::Chat(dialect) => judge::openai_chat::validate(body, dialect),
            Self::Responses(profile) => judge::openai_responses::validate(body, profile),
            Self::Messages(profile) => judge::anthropic::validate_announced(body, profile, betas),
            Self::Gemini(profile) => judge::gemini::validate(body, profile),
            Self::Converse(profile) => judge::bedrock::validate(body, profile),
        };
        let fault = faults.first()?;
        Some(match self {
            Self::Chat(dialect) => judge::openai_chat::refusal(fault, dialect),
            Self::Responses(_) => judge::openai_responses::refusal(fault),
            Self::Messages(_) => judge::anthropic::refusal(fault),
            Self::Gemini(_) => judge::gemini::refusal(fault),
            Self::Converse(_) => judge::bedrock::refusal(fault),
        })
    }
}

/// What is answered when the script has ended.
pub(crate) type Then = Box<dyn Fn(&Value) -> FakeAnswer + Send + Sync>;

struct FakeState {
    judge: Judge,
    script: Mutex<VecDeque<FakeAnswer>>,
    then: Then,
    /// Fixed answers: path and body.
    pages: Mutex<Vec<(String, u16, Value)>>,
    asked: Mutex<Vec<ReceivedRequest>>,
}

impl FakeAnswer {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            pieces: vec![BodyPiece::Bytes(body.into().into())],
            end: End::Close,
        }
    }

    /// A stream of these events.
    pub(crate) fn events(events: &[&str]) -> Self {
        let event = |event: &&str| BodyPiece::Bytes(format!("data: {event}\n\n").into());
        Self {
            pieces: events.iter().map(event).collect(),
            ..Self::new(200, "").header("content-type", "text/event-stream")
        }
    }

    /// These bytes, piece by piece.
    pub(crate) fn bytes(pieces: Vec<Vec<u8>>) -> Self {
        let pieces = pieces
            .into_iter()
            .map(|piece| BodyPiece::Bytes(piece.into()));
        Self {
            pieces: pieces.collect(),
            ..Self::new(200, "")
        }
    }

    pub(crate) fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Waits before the piece at this place; what is given back opens the gate.
    pub(crate) fn gate(mut self, at: usize) -> (Self, oneshot::Sender<()>) {
        let (open, gate) = oneshot::channel();
        self.pieces.insert(at, BodyPiece::Gate(gate));
        (self, open)
    }

    /// Each byte by itself.
    pub(crate) fn bytewise(mut self) -> Self {
        let pieces = self.pieces.into_iter().flat_map(|piece| match piece {
            BodyPiece::Bytes(bytes) => bytes
                .iter()
                .map(|byte| BodyPiece::Bytes(Bytes::copy_from_slice(&[*byte])))
                .collect(),
            gate => vec![gate],
        });
        self.pieces = pieces.collect();
        self
    }

    pub(crate) fn then_cut(mut self) -> Self {
        self.end = End::Cut;
        self
    }

    pub(crate) fn then_hang(mut self) -> Self {
        self.end = End::Hang;
        self
    }

    fn body(self) -> impl Stream<Item = Result<Bytes, io::Error>> {
        let pieces = stream::iter(self.pieces).filter_map(async |piece| match piece {
            BodyPiece::Bytes(bytes) => Some(Ok(bytes)),
            BodyPiece::Gate(gate) => {
                let _ = gate.await;
                None
            }
        });
        let end = match self.end {
            End::Close => stream::empty().boxed(),
            End::Cut => {
                let cut = async {
                    // What came before is sent once the body has nothing at hand.
                    tokio::task::yield_now().await;
                    Err(io::Error::other("cut"))
                };
                stream::once(cut).boxed()
            }
            End::Hang => stream::pending().boxed(),
        };
        pieces.chain(end)
    }
}

impl Fake {
    /// A server that judges so, and answers what it is asked after the script.
    pub(crate) async fn answering(
        judge: Judge,
        script: impl IntoIterator<Item = FakeAnswer>,
        then: Then,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let inner = Arc::new(FakeState {
            judge,
            script: Mutex::new(script.into_iter().collect()),
            then,
            pages: Mutex::default(),
            asked: Mutex::default(),
        });
        let app = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&inner));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, inner }
    }

    /// A fixed answer at a path.
    pub(crate) fn page(self, path: &str, status: u16, body: Value) -> Self {
        let mut pages = self.inner.pages.lock().unwrap();
        pages.retain(|(known, ..)| known != path);
        pages.push((path.to_owned(), status, body));
        drop(pages);
        self
    }

    /// All that was asked so far.
    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.inner.asked.lock().unwrap().clone()
    }
}

async fn answer(
    State(inner): State<Arc<FakeState>>,
    request: Request,
) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let headers = request.headers().clone();
    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await;
    let body = serde_json::from_slice(&body.unwrap()).unwrap_or(Value::Null);
    inner.asked.lock().unwrap().push(ReceivedRequest {
        path: path.clone(),
        query,
        headers: headers.clone(),
        body: body.clone(),
    });
    let answer = if path.ends_with(inner.judge.path()) {
        let betas = headers
            .get("anthropic-beta")
            .map(|betas| betas.to_str().unwrap());
        match inner.judge.refuse(&body, betas.unwrap_or_default()) {
            Some((status, refusal)) => {
                let answer = FakeAnswer::new(status, refusal.to_string());
                match inner.judge {
                    Judge::Converse(_) => {
                        answer.header("x-amzn-errortype", judge::bedrock::ERROR_TYPE)
                    }
                    _ => answer,
                }
            }
            None => {
                let scripted = inner.script.lock().unwrap().pop_front();
                scripted.unwrap_or_else(|| (inner.then)(&body))
            }
        }
    } else {
        let pages = inner.pages.lock().unwrap();
        match pages.iter().find(|(known, ..)| *known == path) {
            Some((_, status, page)) => FakeAnswer::new(*status, page.to_string()),
            None => FakeAnswer::new(404, "404 page not found"),
        }
    };
    let mut response = Response::builder().status(StatusCode::from_u16(answer.status).unwrap());
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    Ok(response.body(Body::from_stream(answer.body())).unwrap())
}
