//! [`Server`]: listens on loopback, hands each request to the desk and records what it was asked. It
//! ends when it is dropped. Not what is answered; that is `desk.rs`'s.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Response};
use plimsoll_context::Tokens;
use plimsoll_wire::Fault;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::answer::Answer;
use crate::api::Place;
use crate::desk::{Desk, Handled};
use crate::error::MockError;
use crate::mock::{Mock, Page};

/// A request's body, at most.
pub const MAX_BODY: usize = 64 * 1024 * 1024;
/// Requests that are kept to look at, at most; of more, the newest.
pub const MAX_RECORDED: usize = 10_000;

/// A request as it came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its path.
    pub path: String,
    /// Its headers, keys among them; names are in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body; null where it was no JSON.
    pub body: Value,
    /// The status of the answer.
    pub status: u16,
    /// What it weighs by the server's own count.
    pub tokens: Tokens,
    /// The rule that it broke, and for which it was refused.
    pub fault: Option<Fault>,
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    desk: Desk,
    pages: Mutex<Vec<Page>>,
    recorded: Mutex<VecDeque<Recorded>>,
    /// How many requests there were.
    came_so_far: AtomicU64,
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
        let shared = Arc::new(Shared {
            pages: Mutex::new(mock.pages.clone()),
            desk: Desk::new(mock),
            recorded: Mutex::default(),
            came_so_far: AtomicU64::new(0),
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
        lock(&self.shared.recorded).iter().cloned().collect()
    }

    /// How many turns of the script are left.
    #[must_use]
    pub fn turns_left(&self) -> usize {
        self.shared.desk.turns_left()
    }

    /// A fixed answer at a path from now on, before all others there.
    pub fn page(&self, path: impl Into<String>, status: u16, body: Value) {
        let path = path.into();
        let mut pages = lock(&self.shared.pages);
        pages.retain(|page| page.path != path);
        pages.push(Page { path, status, body });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn handle(&self, method: &Method, path: &str, headers: &HeaderMap, body: &Value) -> Handled {
        let desk = &self.desk;
        let page = lock(&self.pages)
            .iter()
            .find(|page| page.path == path)
            .cloned();
        if let Some(page) = page {
            return Handled::of(Answer::new(page.status, page.body));
        }
        let header = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
        if let (&Method::POST, Some(asked)) = (method, desk.api().asked(path)) {
            return desk.handle(&header, body, asked);
        }
        let place = Place {
            models: &desk.mock.models,
            window: desk.mock.window,
        };
        let about = desk
            .api()
            .about(path, &place)
            .filter(|_| method == Method::GET);
        Handled::of(match about {
            Some(about) => desk
                .api()
                .turned_away(&header, &Value::Null)
                .unwrap_or(about),
            None => desk.api().nowhere(method.as_str(), path),
        })
    }

    /// Keeps a request and gives it a name.
    fn record(&self, recorded: Recorded) -> String {
        let mut all = lock(&self.recorded);
        if all.len() == MAX_RECORDED {
            all.pop_front();
        }
        all.push_back(recorded);
        let number = self.came_so_far.fetch_add(1, Ordering::Relaxed) + 1;
        drop(all);
        format!("req_mock{number}")
    }
}

impl Handled {
    fn of(answer: Answer) -> Self {
        Self {
            answer,
            tokens: Tokens::ZERO,
            fault: None,
        }
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let headers = request.headers().clone();
    let bytes = axum::body::to_bytes(request.into_body(), MAX_BODY).await;
    let (handled, body) = match bytes.map(|bytes| read(&bytes)) {
        Err(_) => {
            let words = "the request is larger than this mock reads";
            let refusal = shared.desk.api().failure(413, Some(words));
            (Handled::of(refusal), Value::Null)
        }
        Ok(Err(why)) if method == Method::POST => {
            let words = format!("The request body is not valid JSON: {why}");
            let refusal = shared.desk.api().failure(400, Some(&words));
            (Handled::of(refusal), Value::Null)
        }
        Ok(body) => {
            let body = body.unwrap_or(Value::Null);
            (shared.handle(&method, &path, &headers, &body), body)
        }
    };
    let value =
        |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = headers.iter();
    let name = shared.record(Recorded {
        path,
        headers: headers
            .map(|(name, given)| (name.as_str().to_owned(), value(given)))
            .collect(),
        body,
        status: handled.answer.status,
        tokens: handled.tokens,
        fault: handled.fault,
    });
    let named = shared.desk.api().names_request();
    handled.answer.header(named, name).into_response()
}

/// A body; where there is none, null.
fn read(bytes: &Bytes) -> Result<Value, serde_json::Error> {
    match bytes.is_empty() {
        true => Ok(Value::Null),
        false => serde_json::from_slice(bytes),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
