//! A strict server on loopback: it refuses what the real API would refuse, in its words, and
//! answers by a script, down to where a stream is cut. It ends with the test.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use plimsoll::wire::anthropic;
use plimsoll::wire::openai_chat::{self, Dialect};
use plimsoll::wire::openai_responses::{self, Profile};
use serde_json::{Value, json};

/// The body of every answer to a chat comes from here: the request, and its number from 0.
type Script = Box<dyn FnMut(&Value, usize) -> Answer + Send>;

/// One answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    pieces: Vec<String>,
    end: End,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Close,
    /// The connection breaks in the middle of the body.
    Cut,
    /// Nothing more comes until the client goes away.
    Hang,
}

/// The server.
pub(crate) struct Fake {
    pub(crate) port: u16,
    inner: Arc<Inner>,
    arrivals: Receiver<()>,
    accepting: Option<JoinHandle<()>>,
}

/// Whose rules a request is judged by.
enum Judge {
    Chat(Dialect),
    Responses(Profile),
    Messages(anthropic::Profile),
}

impl Judge {
    fn path(&self) -> &'static str {
        match self {
            Self::Chat(_) => "/chat/completions",
            Self::Responses(_) => "/responses",
            Self::Messages(_) => "/v1/messages",
        }
    }

    /// The fault of a request, and how it is refused for it.
    fn refuse(&self, request: &Value) -> Option<(String, u16, Value)> {
        type Refuse<'a> = Box<dyn Fn(&plimsoll::wire::Fault) -> (u16, Value) + 'a>;
        let (faults, refuse): (_, Refuse<'_>) = match self {
            Self::Chat(dialect) => (
                openai_chat::validate(request, dialect),
                Box::new(|fault| openai_chat::refusal(fault, dialect)),
            ),
            Self::Responses(profile) => (
                openai_responses::validate(request, profile),
                Box::new(openai_responses::refusal),
            ),
            Self::Messages(profile) => (
                anthropic::validate(request, profile),
                Box::new(anthropic::refusal),
            ),
        };
        let fault = faults.first()?;
        let (status, words) = refuse(fault);
        Some((format!("{fault:?}"), status, words))
    }
}

struct Inner {
    judge: Judge,
    script: Mutex<Script>,
    pages: Vec<(&'static str, Value)>,
    asked: Mutex<Vec<Value>>,
    refused: Mutex<Vec<String>>,
    arrived: Sender<()>,
    ended: AtomicBool,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json".into())],
            pieces: vec![body.into()],
            end: End::Close,
        }
    }

    /// An error in OpenAI's shape.
    pub(crate) fn error(status: u16, message: &str) -> Self {
        Self::new(
            status,
            json!({"error": {"message": message, "type": "e", "param": null, "code": null}})
                .to_string(),
        )
    }

    /// A streamed answer of words.
    pub(crate) fn say(text: &str) -> Self {
        let middle = (0..=text.len() / 2)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap();
        let (one, other) = text.split_at(middle);
        let delta = |content: &str| json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": content}}]});
        Self::stream(vec![delta(one), delta(other)], "stop")
    }

    /// A streamed answer, word by word.
    pub(crate) fn pieces(text: &str) -> Self {
        let delta = |content: &str| json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": content}}]});
        let pieces = text.split_inclusive(' ').map(delta);
        Self::stream(pieces.collect(), "stop")
    }

    /// A streamed answer that calls tools: name and arguments, the arguments in two pieces.
    pub(crate) fn call(calls: &[(&str, &str)]) -> Self {
        let mut events = Vec::new();
        for (index, (name, arguments)) in calls.iter().enumerate() {
            let (one, other) = arguments.split_at(arguments.len().min(1));
            let piece =
                |call: Value| json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
            let id = format!("c{index}");
            events.push(piece(json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": one}})));
            events.push(piece(
                json!({"index": index, "function": {"arguments": other}}),
            ));
        }
        Self::stream(events, "tool_calls")
    }

    fn stream(mut events: Vec<Value>, finish: &str) -> Self {
        events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}));
        events.push(json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110,
            "prompt_tokens_details": {"cached_tokens": 40}}}));
        let mut pieces: Vec<String> = events
            .iter()
            .map(|event| format!("data: {event}\n\n"))
            .collect();
        pieces.push("data: [DONE]\n\n".to_owned());
        Self {
            status: 200,
            headers: vec![("content-type", "text/event-stream".into())],
            pieces,
            end: End::Close,
        }
    }

    /// A streamed answer of these output items, on OpenAI Responses.
    pub(crate) fn items(items: &[Value]) -> Self {
        let done = |(index, item): (usize, &Value)| json!({"type": "response.output_item.done", "output_index": index, "item": item});
        let mut events: Vec<Value> = items.iter().enumerate().map(done).collect();
        events.push(json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed",
            "output": items, "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 40},
            "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 4}, "total_tokens": 110}}}));
        Self::named(&events)
    }

    /// A streamed answer of these content blocks, on Anthropic Messages.
    pub(crate) fn blocks(blocks: &[Value], reason: &str) -> Self {
        let mut events = vec![json!({"type": "message_start", "message": {"id": "msg_1",
            "type": "message", "role": "assistant", "model": "claude", "content": [],
            "usage": {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 1}}})];
        for (index, block) in blocks.iter().enumerate() {
            let mut begun = block.clone();
            let delta = match block["type"].as_str().unwrap() {
                "tool_use" => {
                    begun["input"] = json!({});
                    json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
                }
                "text" => {
                    begun["text"] = "".into();
                    json!({"type": "text_delta", "text": block["text"]})
                }
                _ => json!({"type": "none"}),
            };
            events.push(
                json!({"type": "content_block_start", "index": index, "content_block": begun}),
            );
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        events.push(
            json!({"type": "message_delta", "delta": {"stop_reason": reason},
            "usage": {"output_tokens": 10}}),
        );
        events.push(json!({"type": "message_stop"}));
        Self::named(&events)
    }

    /// A stream of events with names.
    fn named(events: &[Value]) -> Self {
        let named = |event: &Value| {
            let name = event["type"].as_str().unwrap();
            format!("event: {name}\ndata: {event}\n\n")
        };
        Self {
            status: 200,
            headers: vec![("content-type", "text/event-stream".into())],
            pieces: events.iter().map(named).collect(),
            end: End::Close,
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Breaks off after the first piece.
    pub(crate) fn cut(mut self) -> Self {
        self.pieces.truncate(1);
        self.end = End::Cut;
        self
    }

    /// Says nothing at all.
    pub(crate) fn silent(mut self) -> Self {
        self.pieces.clear();
        self.end = End::Hang;
        self
    }

    /// Says nothing more after the first piece.
    pub(crate) fn hang(mut self) -> Self {
        self.pieces.truncate(1);
        self.end = End::Hang;
        self
    }

    /// What llama.cpp's server says to a request that is too long.
    pub(crate) fn exceeds(used: u64, window: u64) -> Self {
        let message = format!(
            "request ({used} tokens) exceeds the available context size ({window} tokens), try increasing it"
        );
        Self::new(
            400,
            json!({"error": {"code": 400, "message": message, "type": "exceed_context_size_error",
            "n_prompt_tokens": used, "n_ctx": window}})
            .to_string(),
        )
    }
}

impl Fake {
    /// Answers chats in this order, and the last one for ever.
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let mut answers: VecDeque<Answer> = answers.into_iter().collect();
        Self::scripted("compatible", Vec::new(), move |_, _| {
            if answers.len() > 1 {
                answers.pop_front().unwrap()
            } else {
                answers.front().cloned().expect("no request was expected")
            }
        })
    }

    pub(crate) fn scripted(
        dialect: &str,
        pages: Vec<(&'static str, Value)>,
        script: impl FnMut(&Value, usize) -> Answer + Send + 'static,
    ) -> Self {
        let judge = Judge::Chat(Dialect::named(dialect).unwrap());
        Self::judged(judge, pages, script)
    }

    /// Answers requests of OpenAI Responses in this order.
    pub(crate) fn responses(answers: impl IntoIterator<Item = Answer>) -> Self {
        let mut answers: VecDeque<Answer> = answers.into_iter().collect();
        let judge = Judge::Responses(Profile::openai());
        Self::judged(judge, Vec::new(), move |_, _| {
            answers.pop_front().expect("no request was expected")
        })
    }

    /// Answers requests of Anthropic Messages for a model of that name.
    pub(crate) fn messages(
        model: &str,
        script: impl FnMut(&Value, usize) -> Answer + Send + 'static,
    ) -> Self {
        let judge = Judge::Messages(anthropic::Profile::of_model(model));
        Self::judged(judge, Vec::new(), script)
    }

    fn judged(
        judge: Judge,
        pages: Vec<(&'static str, Value)>,
        script: impl FnMut(&Value, usize) -> Answer + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (arrived, arrivals) = channel();
        let inner = Arc::new(Inner {
            judge,
            script: Mutex::new(Box::new(script)),
            pages,
            asked: Mutex::default(),
            refused: Mutex::default(),
            arrived,
            ended: AtomicBool::new(false),
        });
        let shared = Arc::clone(&inner);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.ended.load(Ordering::SeqCst) {
                    break;
                }
                let (inner, stream) = (Arc::clone(&shared), stream.unwrap());
                std::thread::spawn(move || serve(&inner, &stream));
            }
        });
        Self {
            port,
            inner,
            arrivals,
            accepting: Some(accepting),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The body of every chat request so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.inner.asked.lock().unwrap().clone()
    }

    /// Waits until one more chat request has come.
    pub(crate) fn wait(&self) {
        self.arrivals.recv().unwrap();
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.inner.ended.store(true, Ordering::SeqCst);
        // One more connection wakes the listener up.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        let ended = self.accepting.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
            let refused = self.inner.refused.lock().unwrap();
            assert!(
                refused.is_empty(),
                "malformed requests were sent: {refused:?}"
            );
        }
    }
}

fn serve(inner: &Inner, stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).unwrap_or(0) <= 2 {
            break;
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let answer = answer(inner, &path, &body);
    // The client may be gone by now; that is no fault of the server's.
    let _ = write(stream, &answer);
}

fn answer(inner: &Inner, path: &str, body: &[u8]) -> Answer {
    if !path.ends_with(inner.judge.path()) {
        let page = inner.pages.iter().find(|(known, _)| *known == path);
        return page.map_or_else(
            || Answer::new(404, "{}"),
            |(_, page)| Answer::new(200, page.to_string()),
        );
    }
    let request: Value = serde_json::from_slice(body).unwrap();
    let number = {
        let mut asked = inner.asked.lock().unwrap();
        asked.push(request.clone());
        asked.len() - 1
    };
    let answer = match inner.judge.refuse(&request) {
        Some((fault, status, words)) => {
            inner.refused.lock().unwrap().push(fault);
            Answer::new(status, words.to_string())
        }
        None => (inner.script.lock().unwrap())(&request, number),
    };
    let _ = inner.arrived.send(());
    answer
}

fn write(mut stream: &TcpStream, answer: &Answer) -> std::io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {} Status\r\nconnection: close\r\ntransfer-encoding: chunked\r\n",
        answer.status
    );
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    for piece in &answer.pieces {
        stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes())?;
    }
    match answer.end {
        End::Close => stream.write_all(b"0\r\n\r\n")?,
        End::Cut => {}
        End::Hang => {
            // Until the client closes its side.
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest)?;
        }
    }
    stream.flush()
}
