//! A hand-written server over pipes that behaves well or badly, depending on its mode and tools. It
//! is this test binary, started again.

use std::fs::OpenOptions;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

/// Set where this binary is the server: the folder of its FIFOs and files.
pub(crate) const FOLDER: &str = "PLIMSOLL_TEST_MCP_FOLDER";
/// What it does besides; words.
pub(crate) const MODE: &str = "PLIMSOLL_TEST_MCP_MODE";
/// How late one is that starts late.
pub(crate) const LATE: Duration = Duration::from_secs(3);
/// The test that is the server.
pub(crate) const TEST: &str = "fake::serves";

struct Fake {
    folder: PathBuf,
    mode: String,
    has_changed: bool,
    /// The call that waits for our questions to be answered, and the answers.
    asking: Option<(Value, Vec<Value>)>,
}

/// No test by itself: the server.
#[test]
fn serves() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let mode = std::env::var(MODE).unwrap_or_default();
    let mut fake = Fake {
        folder: folder.into(),
        mode,
        has_changed: false,
        asking: None,
    };
    // Held to the end, so that whoever reads it sees the end.
    let held = OpenOptions::new()
        .write(true)
        .open(fake.folder.join("alive"))
        .unwrap();
    // What the test's runner has printed becomes a line that is no JSON.
    println!();
    fake.note("start");
    if fake.is("dies_at_start") {
        eprintln!("no licence: sk-0123456789-hush");
        std::process::exit(7);
    }
    if fake.is("waits_for_ever") {
        // As a server that reads nothing: it does not even see that its input ends.
        loop {
            std::thread::park();
        }
    }
    if fake.is("starts_late") {
        std::thread::sleep(LATE);
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        fake.hear(&serde_json::from_str(&line).unwrap());
    }
    fake.note("end");
    drop(held);
    std::process::exit(0);
}

impl Fake {
    fn is(&self, word: &str) -> bool {
        self.mode.split_whitespace().any(|mode| mode == word)
    }

    fn note(&self, text: &str) {
        note(&self.folder, text);
    }

    fn say(&self, message: &Value) {
        let mut out = std::io::stdout().lock();
        // Where nobody reads any more, the end of the input says so.
        let _ = writeln!(out, "{message}").and_then(|()| out.flush());
    }

    fn answer(&self, id: &Value, result: Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn hear(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str().unwrap_or("") {
            "initialize" if self.is("refuses_to_start") => self.refuse(id, -32000, "no licence"),
            "initialize" if self.is("starts_oddly") => self.answer(id, json!({ "ready": true })),
            "initialize" => {
                assert_eq!(params["clientInfo"]["name"], "plimsoll");
                let about = json!({
                    "protocolVersion": params["protocolVersion"], "capabilities": { "tools": { "listChanged": true } },
                    "serverInfo": { "name": "fake", "version": "1" }, "instructions": "Everything a test needs.\nAnd more.",
                });
                self.answer(id, about);
            }
            "notifications/initialized" => self.note("ready"),
            "notifications/cancelled" => self.note(&format!("cancelled {}", params["reason"])),
            "tools/list" => self.list(id, params),
            "tools/call" => self.call(id, params),
            "ping" => {
                self.note("ping");
                self.answer(id, json!({}));
            }
            "" => self.is_answered(message),
            other => self.note(other),
        }
    }

    fn list(&self, id: &Value, params: &Value) {
        self.note("list");
        if self.is("lists_never") {
            return;
        }
        if self.is("lists_crookedly") {
            let tools = json!([{ "name": "echo", "inputSchema": null }, { "name": 7 }, { "name": "arguments", "inputSchema": {}, "annotations": 1 }]);
            self.answer(id, json!({ "tools": tools }));
            return;
        }
        if self.is("lists_for_ever") {
            let page: u64 = params["cursor"]
                .as_str()
                .map_or(0, |page| page.parse().unwrap());
            let tool = json!({ "name": format!("t{page}"), "inputSchema": { "type": "object" } });
            self.answer(
                id,
                json!({ "tools": [tool], "nextCursor": (page + 1).to_string() }),
            );
            return;
        }
        if self.is("lists_thousands") {
            let tool = |at| json!({ "name": format!("t{at:04}"), "description": "One of many.", "inputSchema": { "type": "object" } });
            let tools: Vec<Value> = (0..5_000).map(tool).collect();
            self.answer(id, json!({ "tools": tools }));
            return;
        }
        let mut tools = tools(self.has_changed);
        if self.is("more") {
            tools.as_array_mut().unwrap().extend(more());
        }
        self.answer(id, json!({ "tools": tools }));
    }

    /// An answer to one of our questions.
    fn is_answered(&mut self, message: &Value) {
        let Some((call, mut answers)) = self.asking.take() else {
            return;
        };
        let about = match message.get("result") {
            Some(result) => result.clone(),
            None => message["error"]["code"].clone(),
        };
        answers.push(json!([message["id"], about]));
        match answers.len() {
            4 => {
                answers.sort_by_key(|answer| answer[0].to_string());
                let text = Value::Array(answers).to_string();
                self.answer(
                    &call,
                    json!({ "content": [{ "type": "text", "text": text }] }),
                );
            }
            _ => self.asking = Some((call, answers)),
        }
    }

    fn refuse(&self, id: &Value, code: i32, message: &str) {
        self.say(
            &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }),
        );
    }

    fn call(&mut self, id: &Value, params: &Value) {
        let name = params["name"].as_str().unwrap();
        self.note(&format!("call {name}"));
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        match name {
            "echo" => self.answer(id, text(params["arguments"]["text"].as_str().unwrap_or(""))),
            "variables" => {
                let names = std::env::vars().map(|(name, value)| format!("{name}={value}"));
                let names: Vec<String> = names.collect();
                self.answer(id, text(&names.join("\n")));
            }
            "fails" => self.answer(id, json!({ "content": [{ "type": "text", "text": "no such row" }], "isError": true })),
            "picture" => self.answer(id, json!({ "content": [
                { "type": "text", "text": "here" },
                { "type": "image", "data": "iVBORw0KGgoAAAANSUhEUg==", "mimeType": "image/png" },
                { "type": "hologram", "depth": 3 },
            ], "structuredContent": { "pictures": 1 } })),
            "steps" => {
                let token = &params["_meta"]["progressToken"];
                for step in 1..=3 {
                    let progress = json!({ "progressToken": token, "progress": step, "total": 3, "message": format!("step {step}") });
                    self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }));
                }
                self.answer(id, text("done"));
            }
            "hangs" => {}
            "dies" => {
                eprintln!("out of memory");
                std::process::exit(3);
            }
            "dies_once" => {
                let mark = self.folder.join("died");
                if !mark.exists() {
                    std::fs::write(mark, "").unwrap();
                    std::process::exit(3);
                }
                self.answer(id, text("alive"));
            }
            "changes" => {
                self.has_changed = true;
                self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
                self.answer(id, text("changed"));
            }
            "huge" => {
                let line = "x".repeat(17 * 1024 * 1024);
                self.answer(id, text(&line));
            }
            "endless" => {
                // One line without end.
                let piece = "x".repeat(64 * 1024);
                let mut out = std::io::stdout().lock();
                while write!(out, "{piece}").is_ok() {}
            }
            "floods" => {
                let said = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": "x" } });
                let mut out = std::io::stdout().lock();
                while writeln!(out, "{said}").is_ok() {}
            }
            "asks" => {
                // A server may ask, too; whatever it asks is answered, and it is not held up.
                for (at, method) in ["ping", "roots/list", "sampling/createMessage"].into_iter().enumerate() {
                    let params = json!({ "messages": [], "maxTokens": 1 });
                    self.say(&json!({ "jsonrpc": "2.0", "id": format!("q{at}"), "method": method, "params": params }));
                }
                self.answer(id, text("asked"));
            }
            "asks_all" => {
                let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
                for (at, method, params) in [
                    (0, "ping", json!({})),
                    (1, "roots/list", json!({})),
                    (2, "sampling/createMessage", json!({ "messages": [], "maxTokens": 1 })),
                    (3, "elicitation/create", json!({ "message": "Your name?", "requestedSchema": schema })),
                ] {
                    self.say(&json!({ "jsonrpc": "2.0", "id": format!("q{at}"), "method": method, "params": params }));
                }
                self.asking = Some((id.clone(), Vec::new()));
            }
            "leaves" => {
                // It goes while it is being called.
                self.mode = self.mode.replace("more", "");
                self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
                self.refuse(id, -32602, "unknown tool leaves");
            }
            "chats" => {
                println!("loading …\n{{}}\n[1]\nnull\n\n\"x\"\n{{\"jsonrpc\":\"2.0\"}}");
                self.answer(id, text("chatted"));
            }
            "complains" => {
                let line = format!("{}\n", "warning ".repeat(1_000));
                for _ in 0..5_000 {
                    std::io::stderr().lock().write_all(line.as_bytes()).unwrap();
                }
                self.answer(id, text("complained"));
            }
            "deaf" => loop {
                std::thread::park();
            },
            "arguments" => self.answer(id, text(&params["arguments"].to_string())),
            "leaks" => self.answer(id, json!({ "content": [{ "type": "text", "text": "bad key sk-0123456789-hush" }], "isError": true })),
            _ => self.say(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32602, "message": format!("unknown tool {name}"), "data": "sk-0123456789-hush" } })),
        }
    }
}

/// The tools, in no order that anybody could rely on.
pub(crate) fn tools(has_changed: bool) -> Value {
    let tool = |name: &str, about: &str, hints: Value| json!({ "name": name, "description": about, "inputSchema": { "$schema": "x", "type": "object", "properties": {} }, "annotations": hints });
    let (reads, adds) = (
        json!({ "readOnlyHint": true }),
        json!({ "destructiveHint": false, "idempotentHint": true }),
    );
    let none = || json!({});
    let echo = json!({
        "name": "echo", "description": "Says a text again.\nWord for word.",
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string", "description": "The text" } }, "required": ["text"] },
        "annotations": reads,
    });
    let mut tools = vec![
        tool("variables", "Shows the environment.", none()),
        echo,
        tool("steps", "Works in steps.", none()),
        tool("dies", "Dies.", none()),
        tool("dies_once", "Dies the first time.", reads),
        tool("fails", "Fails.", adds),
        tool("picture", "Draws.", none()),
        tool("hangs", "Hangs.", json!({ "idempotentHint": true })),
        tool("changes", "Changes the tools.", none()),
        tool("huge", "Says too much.", none()),
        tool("endless", "Never ends.", none()),
        tool("floods", "Floods.", none()),
        tool("asks", "Asks back.", none()),
        tool("unknown.tool", "", none()),
    ];
    if has_changed {
        tools.retain(|tool| tool["name"] != "echo" && tool["name"] != "fails");
        tools.push(tool("ecco", "New here.", none()));
    }
    Value::Array(tools)
}

/// More tools, for those who want to see more.
fn more() -> Vec<Value> {
    let names = ["asks_all", "leaves", "chats", "complains", "deaf", "leaks"];
    let plain = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let mut tools: Vec<Value> = names.iter().map(plain).collect();
    for about in ["The first.", "The second.", "The third."] {
        tools.push(
            json!({ "name": "twice", "description": about, "inputSchema": { "type": "object" } }),
        );
    }
    tools.push(json!({
        "name": "arguments", "description": "Shows them.",
        "inputSchema": {
            "type": "object", "required": ["StartTime<"],
            "properties": { "StartTime<": { "$ref": "#/$defs/Time" }, "tags": { "type": "array" } },
            "oneOf": [{ "required": ["tags"] }, { "required": ["StartTime<"] }],
            "$defs": { "Time": { "type": "string", "format": "date-time" } },
        },
    }));
    tools
}

fn note(folder: &Path, text: &str) {
    // One write, so that lines of two servers do not mix.
    let mut events = OpenOptions::new()
        .write(true)
        .open(folder.join("events"))
        .unwrap();
    events.write_all(format!("{text}\n").as_bytes()).unwrap();
}
