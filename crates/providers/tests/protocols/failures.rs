//! Failing calls: on every API each failure has its own kind, gives advice and contains no key.

use plimsoll_agent::Failure;
use plimsoll_context::Tokens;
use plimsoll_core::Provider;
use plimsoll_providers::{MAX_ERROR_BODY, ModelClient, Secret};
use serde_json::json;

use super::eventstream;
use super::fake::FakeAnswer;
use super::{CONVERSE, GEMINI, KEY, builder, call, hasty, provider, request, server};

const ALL: [&str; 2] = [GEMINI, CONVERSE];

async fn failure(model: &str, answer: FakeAnswer) -> Failure {
    let fake = server(model, [answer]).await;
    let failure = call(&provider(model, &fake), &request()).await.0;
    let failure = failure.unwrap_err();
    assert_eq!(fake.asked().len(), 1, "nothing is retried here");
    let told = format!("{failure} {failure:?}");
    assert!(!told.contains("hush"), "{told}");
    failure
}

/// A stream that says "hi" and goes no further.
fn begun(model: &str) -> FakeAnswer {
    match model {
        CONVERSE => {
            let mut frames = eventstream::reply(&[json!({"text": "hi"})], "end_turn", &json!({}));
            frames.truncate(2);
            eventstream::stream(frames)
        }
        _ => FakeAnswer::events(&[
            r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]}}]}"#,
        ]),
    }
}

#[tokio::test]
async fn a_refused_key_says_where_it_comes_from() {
    let google = format!(
        r#"{{"error":{{"code":400,"message":"API key not valid. Please pass a valid API key. {KEY}","status":"INVALID_ARGUMENT","details":[{{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}}]}}}}"#
    );
    let amazon = r#"{"Message":"Authentication failed: Please make sure your API Key is valid."}"#;
    for (model, answer) in [
        (GEMINI, FakeAnswer::new(400, google)),
        (
            CONVERSE,
            FakeAnswer::new(403, amazon).header("x-amzn-errortype", "AccessDeniedException"),
        ),
    ] {
        let Failure::Auth { message } = failure(model, answer).await else {
            panic!("{model}: not the key");
        };
        assert!(
            message.contains("(the key is that in the settings)"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn an_overflow_brings_the_servers_numbers() {
    let google = r#"{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}"#;
    let amazon = r#"{"message":"prompt is too long: 200049 tokens > 200000 maximum"}"#;
    let mute = r#"{"message":"Input is too long for requested model."}"#;
    let validation =
        |body| FakeAnswer::new(400, body).header("x-amzn-errortype", "ValidationException");
    let none = (None, None);
    for (model, answer, numbers) in [
        (
            GEMINI,
            FakeAnswer::new(400, google),
            (Some(1_196_265), Some(1_048_575)),
        ),
        // Also as an event of a stream that began well.
        (
            GEMINI,
            FakeAnswer::events(&[r#"{"candidates":[]}"#, google]),
            (Some(1_196_265), Some(1_048_575)),
        ),
        (CONVERSE, validation(amazon), (Some(200_049), Some(200_000))),
        (CONVERSE, validation(mute), none),
    ] {
        let failure = failure(model, answer).await;
        let Failure::Overflow { used, window, .. } = failure else {
            panic!("{model}: {failure:?}");
        };
        assert_eq!(
            (used, window),
            (numbers.0.map(Tokens), numbers.1.map(Tokens))
        );
    }
    let large = r#"{"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}"#;
    let large = failure(GEMINI, FakeAnswer::new(400, large)).await;
    assert!(matches!(large, Failure::BodyTooLarge { .. }), "{large:?}");
}

#[tokio::test]
async fn a_rate_limit_says_how_long_to_wait() {
    let google = r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"26s"}]}}"#;
    let amazon = r#"{"message":"Too many tokens, please wait before trying again."}"#;
    let throttled = || {
        FakeAnswer::new(429, amazon)
            .header("x-amzn-errortype", "ThrottlingException:http://internal/")
    };
    for (model, answer, wait) in [
        (GEMINI, FakeAnswer::new(429, google), Some(26_000)),
        (CONVERSE, throttled(), None),
        (
            CONVERSE,
            throttled().header("retry-after", "2"),
            Some(2_000),
        ),
    ] {
        let failure = failure(model, answer).await;
        let Failure::RateLimited { retry_after_ms, .. } = failure else {
            panic!("{model}: {failure:?}");
        };
        assert_eq!(retry_after_ms, wait, "{model}");
    }
}

#[tokio::test]
async fn a_servers_fault_may_pass_and_an_invalid_request_does_not() {
    for model in ALL {
        let oops = failure(model, FakeAnswer::new(500, "oops")).await;
        assert!(
            matches!(&oops, Failure::Transient { status: Some(500), message, .. } if message == "oops"),
            "{model}: {oops:?}"
        );
        let busy = FakeAnswer::new(503, r#"{"message":"busy"}"#)
            .header("retry-after", "3")
            .header("x-amzn-errortype", "ServiceUnavailableException");
        let busy = failure(model, busy).await;
        assert_eq!(busy.retry_after_ms(), Some(3_000), "{busy:?}");
        let missing = failure(model, FakeAnswer::new(404, r#"{"message":"no"}"#)).await;
        assert!(
            missing.to_string().contains("check the model's name"),
            "{missing}"
        );
        let bad = failure(model, FakeAnswer::new(400, r#"{"message":"bad"}"#)).await;
        assert!(
            matches!(
                bad,
                Failure::Refused {
                    status: Some(400),
                    ..
                }
            ),
            "{bad:?}"
        );
    }
}

#[tokio::test]
async fn what_breaks_on_the_way_may_pass() {
    for model in ALL {
        for (name, answer, says) in [
            ("cut", begun(model).then_cut(), "was cut in the middle"),
            ("ended", begun(model), "was cut in the middle"),
            ("empty", FakeAnswer::new(200, ""), "without a reply"),
        ] {
            let failure = failure(model, answer).await;
            assert!(
                matches!(failure, Failure::Transient { .. }),
                "{model} {name}: {failure:?}"
            );
            assert!(failure.to_string().contains(says), "{name}: {failure}");
        }
    }
    let cut = failure(
        GEMINI,
        FakeAnswer::new(200, "data: {\"candidates\":[{\"con"),
    )
    .await;
    assert!(matches!(cut, Failure::Transient { .. }), "{cut:?}");
    let garbled = failure(GEMINI, FakeAnswer::events(&["{nonsense", "{}"])).await;
    assert!(matches!(garbled, Failure::Garbled { .. }), "{garbled:?}");
    let overloaded =
        r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#;
    let overloaded = failure(GEMINI, FakeAnswer::events(&[overloaded])).await;
    assert!(
        matches!(overloaded, Failure::Transient { .. }),
        "{overloaded:?}"
    );
}

#[tokio::test]
async fn silence_ends_before_and_inside_a_reply() {
    for model in ALL {
        let (never, _shut) = begun(model).gate(0);
        for answer in [never, begun(model).then_hang()] {
            let fake = server(model, [answer]).await;
            let failure = call(&hasty(model, &fake), &request()).await.0.unwrap_err();
            assert!(
                matches!(failure, Failure::Transient { .. }),
                "{model}: {failure:?}"
            );
            assert!(failure.to_string().contains("0.03 s"), "{model}: {failure}");
        }
    }
}

#[tokio::test]
async fn a_frame_without_an_end_counts_as_silence() {
    // Bytes come all the time and never make a frame.
    let drip = (0..200).map(|_| b"x".to_vec()).collect();
    let fake = server(GEMINI, [FakeAnswer::bytes(drip).then_hang()]).await;
    let failure = call(&hasty(GEMINI, &fake), &request()).await.0.unwrap_err();
    assert!(matches!(failure, Failure::Transient { .. }), "{failure:?}");
}

#[tokio::test]
async fn a_huge_error_is_kept_to_a_bound() {
    for model in ALL {
        let huge = FakeAnswer::new(500, "ä".repeat(MAX_ERROR_BODY.0 as usize));
        let text = failure(model, huge).await.to_string();
        assert!(
            text.len() < MAX_ERROR_BODY.0 as usize + 200,
            "{}",
            text.len()
        );
        assert!(text.ends_with("[the rest of this error was not read]"));
    }
}

#[tokio::test]
async fn a_redirect_is_told_and_never_followed() {
    for model in ALL {
        let elsewhere = server(model, []).await;
        let to = format!("{}/v1/elsewhere", elsewhere.address);
        let failure = failure(model, FakeAnswer::new(307, "").header("location", &to)).await;
        assert!(matches!(failure, Failure::Refused { .. }), "{failure:?}");
        assert!(failure.to_string().contains("--base-url"), "{failure}");
        assert!(elsewhere.asked().is_empty(), "nor does the key go there");
    }
}

#[tokio::test]
async fn a_page_is_no_api() {
    let page = || {
        FakeAnswer::new(200, "<!doctype html>\n\n<title>Sign in</title>")
            .header("content-type", "text/html")
    };
    for model in ALL {
        let failure = failure(model, page()).await;
        assert!(!matches!(failure, Failure::Auth { .. }), "{failure:?}");
        assert!(!failure.to_string().contains("Sign in"), "{failure}");
    }
    let failure = failure(GEMINI, page()).await;
    assert!(
        failure.to_string().contains("check --base-url"),
        "{failure}"
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_the_cure() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for model in ALL {
        let builder = ModelClient::builder(model);
        let builder = builder.base_url(&address).key(Secret::new(KEY));
        let nobody = builder.build_with(&|_| None).unwrap();
        let failure = nobody.call(&request(), &|_| {}).await.unwrap_err();
        assert!(matches!(failure, Failure::Transient { .. }));
        let told = failure.to_string();
        assert!(told.contains("no server listens at"), "{told}");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_is_over() {
    for model in ALL {
        let fake = server(model, [begun(model).then_hang()]).await;
        let provider = provider(model, &fake);
        let (began, mut first) = tokio::sync::mpsc::unbounded_channel();
        let sink = move |_| began.send(()).unwrap();
        let request = request();
        tokio::select! {
            _ = provider.call(&request, &sink) => panic!("{model}: it hangs"),
            _ = first.recv() => {}
        }
    }
}

#[tokio::test]
async fn a_request_that_breaks_a_rule_is_refused_in_the_servers_words() {
    // The fake is of another model than is asked: it wants signatures where none are sent.
    let fake = server("gemini/gemini-3-pro-preview", []).await;
    let older = builder("gemini/gemini-2.5-pro", &fake);
    let older = older.build_with(&|_| None).unwrap();
    let mut request = request();
    request.dynamic_context = None;
    let failure = call(&older, &request).await.0.unwrap_err();
    assert!(
        failure.to_string().contains("thought_signature"),
        "{failure}"
    );
    // And what a call needs besides is asked for before it is made.
    let keyless = ModelClient::builder("gemini/m");
    let keyless = keyless.build_with(&|_| None).unwrap_err().to_string();
    assert!(keyless.contains("set GEMINI_API_KEY"), "{keyless}");
}
