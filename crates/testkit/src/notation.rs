//! A view as one line of text, and back: the notation of tables of views.
//!
//! | written | is |
//! |---|---|
//! | `u:task` | a user message that says `task` |
//! | `s:` `n:` `S:` | a system message, a notice, a summary |
//! | `a:text` | an assistant's text |
//! | `a:[c1,c2]` | an assistant's message with two calls; `a:text[c1]` has a text as well |
//! | `r:c1` | the result of `c1`, 8 bytes; `r!:c1` failed |
//! | `r:c1*10000` | the same with 10,000 bytes on one line (every text takes a size) |
//! | `r:c1*img` | the same with a text of 8 bytes and an image |
//! | `gap:3` | the marker of three removed messages |
//! | `+u:rule` | a pinned message |
//! | `S:summary` | in printed views: a summary that a stage has added |
//! | `\|` | everything before it has been sent (without it, everything has) |
//!
//! In printed views, `r:c1~200` is a text that was shortened to at most 200 bytes (rounded up to
//! the next ten) and keeps the head and the tail of the original.
//!
//! Tokens are easy to compute, because `Chars4` counts: 4 for a message and a quarter of its
//! characters; 10 for a call.

use std::sync::Arc;

use plimsoll_context::{
    CallId, Chars4, Gap, Image, Item, Message, Part, Seq, Source, ToolCall, ToolResult, Transcript,
};

/// Returns the view that a line describes.
pub fn view(line: &str) -> Transcript {
    let mut view = Transcript::new(Arc::new(Chars4));
    let mut sent = false;
    for word in line.split_whitespace() {
        if word == "|" {
            view.mark_sent();
            sent = true;
            continue;
        }
        let plain = word.strip_prefix('+');
        let seq = view.push(message(plain.unwrap_or(word)));
        if plain.is_some() {
            assert!(view.pin(seq));
        }
    }
    if !sent {
        view.mark_sent();
    }
    view
}

/// Returns the message that a word describes.
pub fn message(word: &str) -> Message {
    let (role, rest) = word.split_once(':').expect(word);
    match role {
        "s" => Message::system(text(rest)),
        "u" => Message::user(text(rest)),
        "n" => Message::Notice { text: text(rest) },
        "S" => Message::Summary { text: text(rest) },
        "gap" => Gap {
            messages: rest.parse().unwrap(),
            recall: None,
        }
        .message(),
        "a" => assistant(rest),
        "r" => result(rest, false),
        "r!" => result(rest, true),
        _ => panic!("no role `{role}` in `{word}`"),
    }
}

/// Returns the view in the same words. `before` is the view as it was written.
pub fn show(view: &Transcript, before: &Transcript) -> String {
    let words: Vec<String> = view
        .items()
        .iter()
        .map(|item| word(item, before.get(item.seq).expect("nothing is made up")))
        .collect();
    words.join(" ")
}

fn assistant(rest: &str) -> Message {
    let (said, calls) = rest.split_once('[').unwrap_or((rest, ""));
    let mut parts = Vec::new();
    if !said.is_empty() {
        parts.push(Part::text(text(said)));
    }
    let ids = calls.trim_end_matches(']').split(',');
    parts.extend(ids.filter(|id| !id.is_empty()).map(call));
    Message::Assistant { parts }
}

/// A call, or with a size (`c1*400`) one whose arguments hold a text of that size.
fn call(written: &str) -> Part {
    let id = written.split('*').next().unwrap();
    let arguments = if id == written {
        "{}".to_owned()
    } else {
        serde_json::json!({ "text": text(written) }).to_string()
    };
    Part::ToolCall(ToolCall {
        id: CallId(id.into()),
        name: "t".into(),
        arguments,
        opaque: None,
    })
}

fn result(rest: &str, is_error: bool) -> Message {
    let id = rest.split('*').next().unwrap();
    let mut parts = vec![Part::text(text(rest))];
    if rest.ends_with("*img") {
        parts = vec![Part::text(filler(id, 8)), Part::Image(image())];
    } else if rest == id {
        parts = vec![Part::text(filler(id, 8))];
    }
    Message::ToolResult(ToolResult {
        call: CallId(id.into()),
        parts,
        is_error,
    })
}

fn image() -> Image {
    Image {
        source: Source::Url {
            url: "http://x/y.png".into(),
        },
        size: None,
        detail: None,
    }
}

/// `task` is itself; `task*400` is 400 bytes of `task:00000 task:00001 …`.
fn text(written: &str) -> String {
    match written.split_once('*') {
        Some((name, size)) => filler(name, size.parse().unwrap_or(8)),
        None => written.to_owned(),
    }
}

fn filler(name: &str, size: usize) -> String {
    let mut text = String::new();
    let mut n = 0;
    while text.len() < size {
        text.push_str(&format!("{name}:{n:05} "));
        n += 1;
    }
    text.truncate(size);
    text
}

fn word(item: &Item, before: &Item) -> String {
    let pin = if item.pin.is_some() { "+" } else { "" };
    if let Some(gap) = Gap::of(&item.message) {
        return format!("gap:{}", gap.messages);
    }
    let written = |message: &Message| {
        let role = match message {
            Message::System { .. } => "s".to_owned(),
            Message::User { .. } => "u".to_owned(),
            Message::Notice { .. } => "n".to_owned(),
            Message::Summary { .. } => "S".to_owned(),
            Message::Assistant { .. } => return assistant_word(message),
            Message::ToolResult(result) => {
                let mark = if result.is_error { "r!" } else { "r" };
                return format!("{mark}:{}{}", result.call, result_size(result));
            }
        };
        format!("{role}:{}", size(&message.text()))
    };
    if item.message == before.message || !item.message.calls().collect::<Vec<_>>().is_empty() {
        return format!("{pin}{}", written(&item.message));
    }
    if let Message::Summary { .. } = *item.message
        && !item.message.text().contains("[pruned: ")
    {
        return "S:summary".to_owned();
    }
    let name = written(&before.message);
    let name = name.split(['*', '~']).next().unwrap();
    let (now, was) = (item.message.text(), before.message.text());
    assert!(now.len() < was.len() || was.len() < 60, "{name}: {now}");
    if now.contains("[pruned: ") {
        assert_head_and_tail(&now, &was);
    }
    format!("{pin}{name}~{}", now.len().next_multiple_of(10))
}

fn result_size(result: &ToolResult) -> String {
    if result.parts.len() > 1 {
        return "*img".into();
    }
    let text = result.parts[0].as_text().unwrap();
    if text.len() == 8 {
        String::new()
    } else {
        format!("*{}", text.len())
    }
}

fn assistant_word(message: &Message) -> String {
    let text = message.text();
    let ids: Vec<String> = message
        .calls()
        .map(|call| {
            let size = serde_json::from_str::<serde_json::Value>(&call.arguments).unwrap();
            let size = size["text"].as_str().map_or(0, str::len);
            if size == 0 {
                call.id.0.clone()
            } else {
                format!("{}*{size}", call.id)
            }
        })
        .collect();
    let calls = if ids.is_empty() {
        String::new()
    } else {
        format!("[{}]", ids.join(","))
    };
    format!("a:{}{calls}", size(&text))
}

/// A text as it was written: short ones have no colon in them, filled ones do.
fn size(text: &str) -> String {
    match text.split_once(':') {
        Some((name, _)) => format!("{name}*{}", text.len()),
        None => text.to_owned(),
    }
}

fn assert_head_and_tail(now: &str, was: &str) {
    let (head, rest) = now.split_once("\n[pruned: ").expect(now);
    let (count, tail) = rest.split_once(" bytes]\n").expect(now);
    assert!(was.starts_with(head) && head.len() >= 16, "{now}");
    assert!(was.ends_with(tail) && tail.len() >= 16, "{now}");
    let missing = was.len() - head.len() - tail.len();
    assert_eq!(count.parse(), Ok(missing), "{now}");
}

/// Returns the numbers of the items of a view.
pub fn seqs(view: &Transcript) -> Vec<Seq> {
    view.items().iter().map(|item| item.seq).collect()
}
