//! A running mock server for a test without a runtime: it refuses the same requests as the real
//! API, with the same messages, and answers by a script, which may also cut a stream. A refused
//! request fails the test. The server ends with the test.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use plimsoll::wire::openai_responses::ResponsesProfile;
use plimsoll_mock::{Mock, Opener, Server, Turn};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Threads that answer: a script may take its time.
const THREADS: usize = 2;

/// One answer.
#[derive(Debug, Clone)]
pub(crate) struct FakeAnswer(Turn);

/// The server.
pub(crate) struct Fake {
    /// What requests for a reply are sent to.
    path: &'static str,
    arrivals: Receiver<()>,
    /// A refusal fails the test.
    strict: bool,
    /// Both are there until the end.
    server: Option<Server>,
    runtime: Option<Runtime>,
}

impl FakeAnswer {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        let turn = Turn::body(status, body.into());
        Self(turn.header("content-type", "application/json"))
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

    /// A streamed answer that a content filter ends.
    pub(crate) fn blocked(text: &str) -> Self {
        let delta =
            json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]});
        Self::stream(vec![delta], "content_filter")
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

    /// The same without a word on what it took.
    pub(crate) fn unreported(mut self) -> Self {
        if let Some(events) = &mut self.0.events {
            events.retain(|event| event.get("usage").is_none());
        }
        self
    }

    fn stream(mut events: Vec<Value>, finish: &str) -> Self {
        events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}));
        events.push(json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110,
            "prompt_tokens_details": {"cached_tokens": 40}}}));
        events.push("[DONE]".into());
        Self(Turn::events(events))
    }

    /// A streamed answer of these output items, on OpenAI Responses.
    pub(crate) fn items(items: &[Value]) -> Self {
        let done = |(index, item): (usize, &Value)| json!({"type": "response.output_item.done", "output_index": index, "item": item});
        let mut events: Vec<Value> = items.iter().enumerate().map(done).collect();
        events.push(json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed",
            "output": items, "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 40},
            "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 4}, "total_tokens": 110}}}));
        Self(Turn::events(events))
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
        Self(Turn::events(events))
    }

    pub(crate) fn header(self, name: &'static str, value: &str) -> Self {
        Self(self.0.header(name, value))
    }

    /// Breaks off after the first piece.
    pub(crate) fn cut(self) -> Self {
        Self(self.first(1).0.cut())
    }

    /// Waits before this piece until it is told to go on.
    pub(crate) fn gated(self, at: usize) -> (Self, Opener) {
        let (turn, opener) = self.0.gated(at);
        (Self(turn), opener)
    }

    /// Says nothing at all.
    pub(crate) fn silent(self) -> Self {
        Self(self.first(0).0.hang())
    }

    /// Says nothing more after the first piece.
    pub(crate) fn hang(self) -> Self {
        Self(self.first(1).0.hang())
    }

    fn first(mut self, pieces: usize) -> Self {
        if let Some(events) = &mut self.0.events {
            events.truncate(pieces);
        }
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
    pub(crate) fn new(answers: impl IntoIterator<Item = FakeAnswer>) -> Self {
        let mut answers: VecDeque<FakeAnswer> = answers.into_iter().collect();
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
        script: impl FnMut(&Value, usize) -> FakeAnswer + Send + 'static,
    ) -> Self {
        // It says of itself only what its pages say.
        let mut mock = Mock::chat(dialect).unwrap();
        mock = mock.page("/v1/models", 404, json!({}));
        for (path, page) in pages {
            mock = mock.page(path, 200, page);
        }
        Self::of(mock, "/chat/completions", script)
    }

    /// Answers requests of OpenAI Responses in this order.
    pub(crate) fn responses(answers: impl IntoIterator<Item = FakeAnswer>) -> Self {
        let mut answers: VecDeque<FakeAnswer> = answers.into_iter().collect();
        let mock = Mock::responses_by(|_| ResponsesProfile::openai());
        let mock = mock.page("/v1/models", 404, json!({}));
        Self::of(mock, "/responses", move |_, _| {
            answers.pop_front().expect("no request was expected")
        })
    }

    /// Answers requests of Anthropic Messages.
    pub(crate) fn messages(
        script: impl FnMut(&Value, usize) -> FakeAnswer + Send + 'static,
    ) -> Self {
        Self::of(Mock::messages_without_keys(), "/v1/messages", script)
    }

    fn of(
        mock: Mock,
        path: &'static str,
        script: impl FnMut(&Value, usize) -> FakeAnswer + Send + 'static,
    ) -> Self {
        let (arrived, arrivals) = channel();
        let script = Mutex::new(script);
        let mock = mock.then(move |request, number| {
            let answer = (script.lock().unwrap())(request, number as usize);
            let _ = arrived.send(());
            answer.0
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(Server::start(mock)).unwrap();
        Self {
            path,
            arrivals,
            strict: true,
            server: Some(server),
            runtime: Some(runtime),
        }
    }

    /// It may have to refuse.
    pub(crate) fn lenient(mut self) -> Self {
        self.strict = false;
        self
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/v1", self.server().address())
    }

    /// The body of every request for a reply so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        let all = self.server().requests().into_iter();
        all.filter(|asked| asked.path.ends_with(self.path))
            .map(|asked| asked.body)
            .collect()
    }

    /// Waits until one more request for a reply has come.
    pub(crate) fn wait(&self) {
        self.arrivals.recv().unwrap();
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let refused: Vec<String> = self
            .server()
            .requests()
            .iter()
            .filter_map(|asked| Some(format!("{:?}", asked.fault.as_ref()?)))
            .collect();
        drop(self.server.take());
        // Answers that hang end with it.
        self.runtime.take().unwrap().shutdown_background();
        if self.strict && !std::thread::panicking() {
            assert!(
                refused.is_empty(),
                "malformed requests were sent: {refused:?}"
            );
        }
    }
}
