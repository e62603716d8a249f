//! Random histories from a seed: the messages before each request, and the model's answers. Only
//! their shapes and sizes resemble those of a real model.
//!
//! Parallel calls, text-only turns, steers, notices, images, thinking, CJK, emoji and combining
//! marks, JSON, single long lines; results of 1 B to 1 MB, sizes log-uniform and 1 % above 100 KB.

use plimsoll_context::{
    CallId, Image, Message, Opaque, Part, Source, Thinking, ToolCall, ToolResult,
};
use plimsoll_testkit::Random;

/// What arrives before a request, and what the model answers to it.
pub(crate) struct Beat {
    pub(crate) arrives: Vec<Message>,
    pub(crate) reply: Message,
}

/// A history of 2 to 40 requests.
pub(crate) fn history(random: &mut Random) -> Vec<Beat> {
    let mut beats = Vec::new();
    let mut arrives = Vec::new();
    if random.chance(30) {
        arrives.push(Message::system(text(random, 300)));
    }
    arrives.push(user(random, "task"));
    let mut calls = 0;
    for _ in 0..2 + random.below(39) {
        let reply = assistant(random, &mut calls);
        let results: Vec<Message> = reply.calls().map(|call| result(random, call)).collect();
        let has_results = !results.is_empty();
        beats.push(Beat { arrives, reply });
        arrives = results;
        if !has_results && random.chance(85) || random.chance(8) {
            arrives.push(user(random, "ask"));
        } else if !has_results {
            arrives.push(Message::Notice {
                text: text(random, 100),
            });
        }
        if random.chance(3) {
            arrives.push(Message::Summary {
                text: text(random, 400),
            });
        }
    }
    beats
}

fn user(random: &mut Random, what: &str) -> Message {
    let size = random.log_uniform(4, 1_000);
    let mut parts = vec![Part::text(format!("{what}: {}", text(random, size)))];
    if random.chance(3) {
        parts.push(image(random));
    }
    Message::User { parts }
}

fn assistant(random: &mut Random, calls: &mut u64) -> Message {
    let mut parts = Vec::new();
    if random.chance(20) {
        parts.push(Part::Thinking(Thinking {
            text: text(random, 200),
            opaque: random.chance(50).then(|| Opaque {
                origin: "anthropic".into(),
                data: "{\"signature\":\"EqQBCkYIBRgCKkA\"}".into(),
            }),
        }));
    }
    let works = random.chance(75);
    if !works || random.chance(30) {
        let size = random.log_uniform(2, 600);
        parts.push(Part::text(text(random, size)));
    }
    if works {
        for _ in 0..1 + random.below(3) * random.below(3) {
            *calls += 1;
            let size = random.log_uniform(1, 400);
            let arguments = serde_json::json!({ "path": text(random, size) });
            parts.push(Part::ToolCall(ToolCall {
                id: CallId(format!("call_{calls}")),
                name: ["read", "bash", "grep"][random.below(3) as usize].into(),
                arguments: arguments.to_string(),
                opaque: None,
            }));
        }
    }
    Message::Assistant { parts }
}

fn result(random: &mut Random, call: &ToolCall) -> Message {
    let size = if random.below(1_000) < 10 {
        random.log_uniform(100_000, 1_000_000)
    } else {
        random.log_uniform(1, 100_000)
    };
    let mut parts = vec![Part::text(text(random, size))];
    if random.chance(3) {
        parts.push(image(random));
    }
    Message::ToolResult(ToolResult {
        call: call.id.clone(),
        parts,
        is_error: random.chance(10),
    })
}

fn image(random: &mut Random) -> Part {
    let source = if random.chance(50) {
        Source::Url {
            url: "https://example.org/a.png".into(),
        }
    } else {
        Source::Data {
            media_type: "image/png".into(),
            base64: "iVBORw0KGgo=".repeat(random.below(200) as usize),
        }
    };
    let size = random.chance(50).then(|| {
        (
            1 + random.below(2_000) as u32,
            1 + random.below(2_000) as u32,
        )
    });
    Part::Image(Image {
        source,
        size,
        detail: None,
    })
}

/// About `size` bytes of one kind of text, never less than 1.
fn text(random: &mut Random, size: u64) -> String {
    let units: &[&str] = match random.below(8) {
        0 => &[
            "the ",
            "ship ",
            "may ",
            "carry ",
            "this ",
            "much, ",
            "no more.\n",
        ],
        1 => &["fn main() {\n", "    let x = 42;\n", "}\n", "// why\n"],
        2 => &["汉字", "仮名", "交じり", "文。"],
        3 => &["🦀", "🚢", "👩‍💻", "🇯🇵"],
        4 => &["e\u{301}", "n\u{303}", "o\u{308} "],
        5 => &["x"],
        6 => &["iVBORw0KGgoAAAANSUhEUg", "QmFzZTY0", "AA+/"],
        _ => return json(random, size),
    };
    let mut text = String::new();
    while (text.len() as u64) < size.max(1) {
        text.push_str(units[random.below(units.len() as u64) as usize]);
    }
    text
}

fn json(random: &mut Random, size: u64) -> String {
    let mut text = String::from("[");
    while (text.len() as u64) < size {
        if text.len() > 1 {
            text.push(',');
        }
        let n = random.below(1_000_000);
        text.push_str(&format!("{{\"id\": {n}, \"name\": \"item\\n {n}\"}}"));
    }
    text.push(']');
    text
}
