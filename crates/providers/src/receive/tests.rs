//! Responses of every form, split in every way, with paused time. Uses no network.

use super::*;
use futures_util::stream;
use plimsoll_context::Part;
use plimsoll_context::{StopReason, Tokens};
use plimsoll_wire::openai_chat::ChatStreamState;
use proptest::prelude::*;
use std::sync::Mutex;
use tokio::time::{Instant, sleep};

const IDLE: Duration = Duration::from_secs(300);

/// The next event on a connection.
#[derive(Debug, Clone)]
enum Then {
    Bytes(Vec<u8>),
    Wait(Duration),
    Break,
    Hang,
}

fn text(text: &str) -> Then {
    Then::Bytes(text.as_bytes().to_vec())
}

async fn run(script: Vec<Then>) -> (Result<Reply, BrokenResponse>, Vec<Delta>) {
    hear(script, Box::new(ChatStreamState::new())).await
}

async fn hear(
    script: Vec<Then>,
    decoder: Box<dyn StreamDecoder>,
) -> (Result<Reply, BrokenResponse>, Vec<Delta>) {
    let deltas = Mutex::new(Vec::new());
    let bytes = stream::unfold(script.into_iter(), |mut script| async {
        loop {
            match script.next()? {
                Then::Bytes(bytes) => return Some((Ok(bytes), script)),
                Then::Wait(time) => sleep(time).await,
                Then::Break => return Some((Err("reset by peer".to_owned()), script)),
                Then::Hang => std::future::pending().await,
            }
        }
    });
    let sink = |delta| deltas.lock().unwrap().push(delta);
    let reply = receive(
        Box::pin(bytes),
        (EventReader::Sse(SseReader::default()), decoder),
        IDLE,
        &sink,
    )
    .await;
    (reply, deltas.into_inner().unwrap())
}

fn said(word: &str) -> String {
    format!(
        "data: {{\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}}}}]}}\n\n"
    )
}

const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n";
const END: &str = "data: [DONE]\n\n";

fn answer(reply: &Result<Reply, BrokenResponse>) -> String {
    match reply {
        Ok(reply) => {
            let text: String = reply.parts.iter().filter_map(Part::as_text).collect();
            let used = reply.usage.map_or(0, |usage| usage.total_tokens().0);
            format!("{text}/{used}")
        }
        Err(broken) => format!("{broken:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_read_to_its_end_mark() {
    let (hi, ho) = (said("hi"), said("ho"));
    for (name, script, expected) in [
        (
            "whole",
            vec![text(&hi), text(&ho), text(STOP), text(USAGE), text(END)],
            "hiho/9",
        ),
        (
            "one piece",
            vec![text(&format!("{hi}{STOP}{USAGE}{END}"))],
            "hi/9",
        ),
        (
            "no end mark",
            vec![text(&hi), text(STOP), text(USAGE)],
            "hi/9",
        ),
        ("no usage", vec![text(&hi), text(STOP), text(END)], "hi/0"),
        ("no finish reason", vec![text(&hi), text(END)], "hi/0"),
        (
            "no last line feed",
            vec![text(&hi), text(STOP), text(USAGE.trim_end())],
            "hi/9",
        ),
        (
            "the server never closes",
            vec![text(&hi), text(STOP), text(END), Then::Hang],
            "hi/0",
        ),
        (
            "usage never comes",
            vec![text(&hi), text(STOP), Then::Hang],
            "hi/0",
        ),
        (
            "it breaks after the reply",
            vec![text(&hi), text(STOP), Then::Break],
            "hi/0",
        ),
        (
            "garbage after the reply",
            vec![text(&hi), text(STOP), text("data: {\n\n"), text(USAGE)],
            "hi/9",
        ),
        (
            "after the end mark nothing counts",
            vec![text(&hi), text(STOP), text(END), text(&ho)],
            "hi/0",
        ),
    ] {
        let (reply, deltas) = run(script).await;
        assert_eq!(answer(&reply), expected, "{name}");
        assert!(!deltas.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_reply_is_told_apart() {
    let hi = said("hi");
    let refused = "data: {\"error\":{\"message\":\"no\"}}\n\n";
    for (name, script, expected) in [
        ("cut", vec![text(&hi)], "Cut(\"it ended too early\")"),
        (
            "cut inside an event",
            vec![text(&hi), text("data: {\"choi")],
            "Cut(\"it ended too early\")",
        ),
        (
            "broken",
            vec![text(&hi), Then::Break],
            "Cut(\"reset by peer\")",
        ),
        ("empty", vec![], "Empty"),
        ("blank", vec![text("\n \r\n")], "Empty"),
        ("comments only", vec![text(": ping\n\n")], "Empty"),
        ("plain text", vec![text("hello there\n")], "Empty"),
        ("a page", vec![text("\n<!DOCTYPE html><p>")], "Html"),
        (
            "an error",
            vec![text(&hi), text(refused)],
            "Refused(\"{\\\"error\\\":{\\\"message\\\":\\\"no\\\"}}\")",
        ),
        (
            "an error event",
            vec![text("event: error\ndata: bad\n\n")],
            "Refused(\"bad\")",
        ),
    ] {
        let (reply, _) = run(script).await;
        assert_eq!(answer(&reply), expected, "{name}");
    }
    let (reply, _) = run(vec![text(&hi), text("data: {\"choices\": nonsense}\n\n")]).await;
    assert!(
        matches!(reply, Err(BrokenResponse::Garbled(_))),
        "{reply:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn silence_ends_and_comments_are_no_silence() {
    let almost = IDLE - Duration::from_secs(1);
    let start = Instant::now();
    let (reply, deltas) = run(vec![text(&said("hi")), Then::Hang]).await;
    assert_eq!(reply, Err(BrokenResponse::Idle(IDLE)));
    assert_eq!(deltas.len(), 1, "what came before was handed on");
    assert_eq!(start.elapsed(), IDLE);

    let mut script = vec![text(&said("hi"))];
    for _ in 0..SILENCES_AN_EVENT - 1 {
        script.extend([Then::Wait(almost), text(": still here\n\n")]);
    }
    script.extend([Then::Wait(almost), text(STOP), text(END)]);
    let (reply, _) = run(script).await;
    assert_eq!(answer(&reply), "hi/0");

    // Comments alone do not keep a call alive.
    for before in [text(&said("hi")), text(" \n\n")] {
        let start = Instant::now();
        let drip = (0..100_000).flat_map(|_| {
            let comment = text(": still here\n\n");
            [Then::Wait(Duration::from_secs(1)), comment]
        });
        let script = std::iter::once(before).chain(drip).collect();
        let (reply, _) = run(script).await;
        let patience = IDLE * SILENCES_AN_EVENT;
        assert_eq!(reply, Err(BrokenResponse::Wordless(patience)));
        assert_eq!(start.elapsed(), patience);
    }

    let mut script = Vec::new();
    for byte in format!("{}{STOP}{END}", said("hi")).bytes() {
        script.extend([Then::Wait(IDLE / 20), Then::Bytes(vec![byte])]);
    }
    let (reply, _) = run(script).await;
    assert_eq!(answer(&reply), "hi/0", "slow is not silent");
}

#[tokio::test(start_paused = true)]
async fn after_the_reply_no_one_waits_long() {
    for (last, most) in [(STOP, USAGE_GRACE), (END, DRAIN_TIMEOUT)] {
        let start = Instant::now();
        let (reply, _) = run(vec![text(&said("hi")), text(last), Then::Hang]).await;
        assert!(reply.is_ok());
        assert!(start.elapsed() <= most, "{:?}", start.elapsed());
    }
}

/// Usage is passed on even if the connection breaks afterwards.
#[tokio::test(start_paused = true)]
async fn what_was_used_is_told_even_where_no_reply_follows() {
    let head = r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":105000,"output_tokens":1}}}"#;
    let head = format!("event: message_start\ndata: {head}\n\n");
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let error = format!("event: error\ndata: {error}\n\n");
    for (name, script) in [
        ("broken", vec![text(&head), Then::Break]),
        ("ended", vec![text(&head)]),
        ("silent", vec![text(&head), Then::Hang]),
        ("refused", vec![text(&format!("{head}{error}"))]),
        ("garbled", vec![text(&head), text("data: {nonsense\n\n")]),
    ] {
        let (reply, deltas) = hear(
            script,
            Box::new(plimsoll_wire::anthropic::MessagesStreamState::new()),
        )
        .await;
        assert!(reply.is_err(), "{name}: {reply:?}");
        let [Delta::Used { usage }] = deltas.as_slice() else {
            panic!("{name}: {deltas:?}");
        };
        assert_eq!(usage.total_tokens(), Tokens(105_001), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_in_one_piece_becomes_the_same_deltas() {
    let body = r#" {"model":"m","choices":[{"message":{"role":"assistant","reasoning_content":"hm",
        "content":"hi","tool_calls":[{"id":"c1","type":"function",
        "function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]},"finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
    let (half, rest) = body.split_at(80);
    let (reply, deltas) = run(vec![text(half), text(rest)]).await;
    let reply = reply.unwrap();
    assert_eq!(reply.stop, StopReason::ToolCalls);
    assert_eq!(reply.usage.unwrap().total_tokens(), Tokens(9));
    let kinds: Vec<String> = deltas
        .iter()
        .map(|delta| serde_json::to_value(delta).unwrap()["type"].to_string())
        .collect();
    assert_eq!(
        kinds,
        [
            "\"thinking\"",
            "\"text\"",
            "\"call_started\"",
            "\"call_arguments\""
        ]
    );
    let (reply, _) = run(vec![text(half), Then::Break]).await;
    assert!(matches!(reply, Err(BrokenResponse::Cut(_))));
    let (reply, _) = run(vec![text(half)]).await;
    assert!(matches!(reply, Err(BrokenResponse::Cut(_))), "{reply:?}");
    let (reply, _) = run(vec![text(r#"{"error":{"message":"no"}}"#)]).await;
    assert!(matches!(reply, Err(BrokenResponse::Refused(_))));
}

#[tokio::test(start_paused = true)]
async fn more_than_a_reply_may_hold_is_not_kept() {
    let long = vec![b'x'; MAX_EVENT / 2];
    for begin in ["data: ", "{\"a\":\""] {
        let script = vec![
            text(begin),
            Then::Bytes(long.clone()),
            Then::Bytes(long.clone()),
            Then::Hang,
        ];
        let (reply, _) = run(script).await;
        assert!(matches!(reply, Err(BrokenResponse::TooLarge(_))), "{begin}");
    }
}

#[test]
fn all_that_arrives_is_bounded() {
    let mut receiver = Receiver {
        events: EventReader::Sse(SseReader::default()),
        form: AnswerForm::Unknown,
        decoder: Box::new(ChatStreamState::new()),
        sink: &|_| {},
        bytes: MAX_STREAM.0 - 1,
        used: None,
        told: Instant::now(),
    };
    assert_eq!(receiver.take(b":"), Ok(false));
    assert!(matches!(
        receiver.take(b":"),
        Err(BrokenResponse::TooLarge(_))
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The reply and the deltas do not depend on how the bytes are split.
    #[test]
    fn cuts_change_nothing(cuts in prop::collection::vec(0usize..600, 0..12)) {
        let bytes = format!("{}{}{STOP}{USAGE}{END}", said("hä"), said("🦀")).into_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let script = cuts.windows(2).map(|ends| Then::Bytes(bytes[ends[0]..ends[1]].to_vec()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (reply, deltas) = runtime.block_on(run(script.collect()));
        prop_assert_eq!(answer(&reply), "hä🦀/9");
        // Two words and the usage.
        prop_assert_eq!(deltas.len(), 3);
    }
}
