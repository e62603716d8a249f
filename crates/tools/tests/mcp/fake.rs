//! A hand-written server over pipes that behaves well or badly, depending on its mode and tools. It
//! is this test binary, started again.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Set where this binary is the server: the folder of its FIFOs and files.
pub(crate) const FOLDER: &str = "PLIMSOLL_TEST_MCP_FOLDER";
/// What it does besides; words.
pub(crate) const MODE: &str = "PLIMSOLL_TEST_MCP_MODE";
/// The test that is the server.
pub(crate) const TEST: &str = "fake::serves";

struct Fake {
    folder: PathBuf,
    mode: String,
    has_changed: bool,
    /// The call that waits for our questions to be answered, and the answers.
    asking: Option<(Value, Vec<Value>)>,
    /// A wish for a task that is granted with the next call.
    late: Option<Value>,
    /// How often each task was asked after.
    polls: BTreeMap<String, usize>,
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
        late: None,
        polls: BTreeMap::new(),
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
    if fake.is("babbles_at_start") {
        let mut out = std::io::stdout().lock();
        while writeln!(out, "DEBUG starting").is_ok() {}
    }
    if fake.is("waits_for_ever") {
        // As a server that reads nothing: it does not even see that its input ends.
        loop {
            std::thread::park();
        }
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
            "tools/call" if params["task"].is_object() => self.begin(id, params),
            "tools/call" => self.call(id, params),
            "tasks/get" | "tasks/result" | "tasks/cancel" => self.task(id, message),
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
        if self.is("lists_dozens") {
            self.answer(id, json!({ "tools": dozens() }));
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

    /// A task is wished for.
    fn begin(&mut self, id: &Value, params: &Value) {
        let name = params["name"].as_str().unwrap();
        assert!(params["task"]["ttl"].as_u64().unwrap() > 60_000);
        self.note(&format!("task {name}"));
        if name == "task_told" {
            let token = &params["_meta"]["progressToken"];
            let progress = json!({ "progressToken": token, "progress": 1, "total": 2 });
            self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }));
        }
        match name {
            // It keeps no tasks, and takes the wish for a call.
            "task_wanted_in_vain" => self.refuse(id, -32601, "no such thing"),
            "task_ignored" => self.answer(id, json!({ "content": [{ "type": "text", "text": "at once" }] })),
            "task_odd" => self.answer(id, json!({ "task": "soon" })),
            // It says nothing until it is told that nobody waits, or only then which task it is.
            "task_never_begun" => {}
            "task_late" => self.late = Some(id.clone()),
            "task_of_the_extension" => self.answer(id, json!({
                "resultType": "task", "taskId": name, "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null, "pollIntervalMs": 1,
            })),
            name => self.answer(id, json!({ "task": status(name, "working", "begun") })),
        }
    }

    /// Something about a task.
    fn task(&mut self, id: &Value, message: &Value) {
        let (method, name) = (
            message["method"].as_str().unwrap(),
            message["params"]["taskId"].as_str().unwrap(),
        );
        self.note(&format!("{method} {name}"));
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }], "_meta": { "io.modelcontextprotocol/related-task": { "taskId": name } } });
        let polls = self.polls.entry(name.to_owned()).or_default();
        if method == "tasks/get" {
            *polls += 1;
        }
        let polls = *polls;
        match (method, name, polls) {
            ("tasks/cancel", _, _) => self.answer(id, status(name, "cancelled", "")),
            ("tasks/get", "task_gone", _) => self.refuse(id, -32602, "no such task"),
            ("tasks/get", "task_dies", _) => std::process::exit(3),
            ("tasks/get", "task_endless", _) => self.answer(id, status(name, "working", &format!("step {polls}"))),
            ("tasks/get", "task_failing", _) => self.answer(id, status(name, "failed", "the disk is full")),
            ("tasks/get", "task_broken", _) => self.answer(id, status(name, "failed", "")),
            ("tasks/get", "task_stopped", _) => self.answer(id, status(name, "cancelled", "by its owner")),
            ("tasks/get", "task_asking", _) => self.answer(id, status(name, "input_required", "which one?")),
            ("tasks/get", "task_of_the_extension", _) => self.answer(id, json!({
                "resultType": "complete", "taskId": name, "status": "completed", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null, "result": text("extended"),
            })),
            ("tasks/get", _, 1) => self.answer(id, status(name, "working", "reading")),
            ("tasks/get", _, 2) => self.answer(id, status(name, "working", "reading")),
            ("tasks/get", _, 3) => self.answer(id, status(name, "working", "writing")),
            ("tasks/get", _, _) => self.answer(id, status(name, "completed", "")),
            ("tasks/result", "task_failing", _) => self.answer(id, json!({ "content": [{ "type": "text", "text": "no space" }], "isError": true })),
            ("tasks/result", "task_broken", _) => self.refuse(id, -32000, "it blew up"),
            ("tasks/result", "task_stopped", _) => self.refuse(id, -32000, "there is none"),
            (_, _, _) => self.answer(id, text(&format!("{name} is done"))),
        }
    }

    fn call(&mut self, id: &Value, params: &Value) {
        let name = params["name"].as_str().unwrap();
        self.note(&format!("call {name}"));
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        match name {
            "echo" if self.late.is_some() => {
                let wish = self.late.take().unwrap();
                self.answer(&wish, json!({ "task": status("task_late", "working", "") }));
                self.answer(id, text("late"));
            }
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
            "dies" | "dies_reading" => {
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
            "babbles" => {
                let mut out = std::io::stdout().lock();
                while writeln!(out, "DEBUG all is well").is_ok() {}
            }
            "answers_nobody" => {
                let mut out = std::io::stdout().lock();
                let mut at = 1_000_000;
                while writeln!(out, "{{\"jsonrpc\":\"2.0\",\"id\":{at},\"result\":{{}}}}").is_ok() {
                    at += 1;
                }
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
            "nameless" => self.say(&json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32603, "message": "it broke" } })),
            "arguments" => self.answer(id, text(&params["arguments"].to_string())),
            "leaks" => self.answer(id, json!({ "content": [{ "type": "text", "text": "bad key sk-0123456789-hush" }], "isError": true })),
            // As the SDK for TypeScript says it, and the protocol.
            name if name.starts_with("task_") && name.len() % 2 == 0 => self.answer(id, json!({ "content": [{ "type": "text", "text": format!("MCP error -32601: Tool {name} requires task augmentation (taskSupport: 'required')") }], "isError": true })),
            name if name.starts_with("task_") => self.refuse(id, -32601, &format!("{name} is no method")),
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
        tool("dies_reading", "Dies, too.", reads.clone()),
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

/// A task as the protocol shows it.
fn status(name: &str, status: &str, message: &str) -> Value {
    let mut task = json!({ "taskId": name, "status": status, "ttl": 60_000, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "pollInterval": 1 });
    if !message.is_empty() {
        task["statusMessage"] = message.into();
    }
    task
}

/// More tools, for those who want to see more.
fn more() -> Vec<Value> {
    let names = [
        "asks_all",
        "leaves",
        "chats",
        "babbles",
        "answers_nobody",
        "complains",
        "deaf",
        "nameless",
        "leaks",
        "task_told",
        "task_long",
        "task_gone",
        "task_dies",
        "task_endless",
        "task_failing",
        "task_broken",
        "task_stopped",
        "task_asking",
        "task_odd",
        "task_ignored",
        "task_wanted_in_vain",
        "task_never_begun",
        "task_late",
        "task_of_the_extension",
    ];
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

/// Tools as a server of an issue tracker has them.
fn dozens() -> Vec<Value> {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let mut tools = Vec::new();
    for noun in [
        "issue", "comment", "label", "branch", "commit", "release", "project", "review",
    ] {
        for verb in ["create", "read", "update", "delete", "list"] {
            tools.push(json!({
                "name": format!("{verb}_{noun}"),
                "description": format!("{verb}s a {noun} of a repository. The caller needs write access; the {noun} is identified by its number."),
                "inputSchema": { "type": "object", "required": ["owner", "repository"], "properties": {
                    "owner": text("The account that owns the repository; not case-sensitive"),
                    "repository": text("The name of the repository, without the .git extension"),
                    "number": { "type": "integer", "minimum": 1, "description": format!("The number of the {noun}") },
                    "body": text("The contents, in Markdown"),
                    "state": { "type": "string", "enum": ["open", "closed", "all"], "default": "open" },
                } },
            }));
        }
    }
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
