//! [`Server`]: listens on loopback, passes each request to the `RequestHandler` and records it. It stops when
//! it is dropped.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Response};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::answer::HttpAnswer;
use crate::error::MockError;
use crate::mock::{Mock, Pages};
use crate::record::{Record, RecordedRequest, RequestTotals};
use crate::request_handler::{HandledRequest, RequestHandler};

/// The maximum size of a request's body, in bytes.
pub const MAX_BODY: usize = 64 * 1024 * 1024;
/// A running server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<MockState>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct MockState {
    desk: RequestHandler,
    pages: Mutex<Pages>,
    record: Mutex<Record>,
}

impl Server {
    /// Starts the server.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub async fn start(mock: Mock) -> Result<Self, MockError> {
        let failed = |why| MockError::Listen {
            address: mock.address.to_string(),
            why,
        };
        let listener = TcpListener::bind(mock.address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(MockState {
            pages: Mutex::new(mock.pages.clone()),
            record: Mutex::new(Record::new()),
            desk: RequestHandler::new(mock),
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

    /// Returns the address, such as `http://127.0.0.1:40001`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the base URL for clients of the API, such as `http://127.0.0.1:40001/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!(
            "{}{}",
            self.address(),
            self.shared.desk.api().facts().base_path
        )
    }

    /// Returns the recorded requests.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        lock(&self.shared.record).all()
    }

    /// Returns the number of requests so far, recorded or not.
    #[must_use]
    pub fn tally(&self) -> RequestTotals {
        lock(&self.shared.record).tally()
    }

    /// Returns the number of remaining turns of the script.
    #[must_use]
    pub fn turns_left(&self) -> usize {
        self.shared.desk.turns_left()
    }

    /// Sets a fixed answer for a path from now on. It takes precedence over other answers.
    pub fn page(&self, path: impl Into<String>, status: u16, body: Value) {
        lock(&self.shared.pages).insert(path.into(), (status, body));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl MockState {
    fn handle(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        body: &Value,
    ) -> HandledRequest {
        let desk = &self.desk;
        if let Some((status, body)) = lock(&self.pages).get(path) {
            return HandledRequest::of(HttpAnswer::new(*status, body.clone()));
        }
        let header = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
        if let (&Method::POST, Some(kind)) = (method, desk.api().request_kind(path)) {
            let request = desk.api().with_path(path, body);
            return desk.handle(&header, &request, kind);
        }
        let about = Some(path).filter(|_| method == Method::GET);
        let about = about.and_then(|path| desk.api().about(path, &desk.mock));
        HandledRequest::of(match about {
            Some(about) => desk
                .api()
                .turned_away(&header, &Value::Null)
                .unwrap_or(about),
            None => desk.api().nowhere(method.as_str(), path),
        })
    }

    /// Records a request and returns its id.
    fn record(&self, recorded: RecordedRequest) -> String {
        let number = lock(&self.record).push(recorded);
        format!("req_mock{number}")
    }
}

async fn answer(State(shared): State<Arc<MockState>>, request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let headers = request.headers().clone();
    let bytes = axum::body::to_bytes(request.into_body(), MAX_BODY).await;
    let length = bytes.as_ref().map_or(MAX_BODY, Bytes::len);
    let raw: Arc<[u8]> = bytes.as_deref().map(Arc::from).unwrap_or_default();
    let (handled, body) = match bytes.map(|bytes| read(&bytes)) {
        Err(_) => {
            let words = "the request is larger than this mock reads";
            let refusal = shared.desk.api().failure(413, Some(words));
            (HandledRequest::of(refusal), Value::Null)
        }
        Ok(Err(why)) if method == Method::POST => {
            let words = format!("The request body is not valid JSON: {why}");
            let refusal = shared.desk.api().failure(400, Some(&words));
            (HandledRequest::of(refusal), Value::Null)
        }
        Ok(body) => {
            let body = body.unwrap_or(Value::Null);
            (shared.handle(&method, &path, &headers, &body), body)
        }
    };
    let text =
        |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = headers.iter();
    let name = shared.record(RecordedRequest {
        path,
        headers: headers
            .map(|(name, value)| (name.as_str().to_owned(), text(value)))
            .collect(),
        body,
        raw,
        bytes: length,
        status: handled.answer.status,
        tokens: handled.tokens,
        fault: handled.fault,
    });
    let named = &shared.desk.api().facts().request_id;
    handled.answer.header(named, name).into_response()
}

/// Parses a body. An empty body is null.
fn read(bytes: &Bytes) -> Result<Value, serde_json::Error> {
    if bytes.is_empty() {
        Ok(Value::Null)
    } else {
        serde_json::from_slice(bytes)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
