//! Error responses and the failures that they become. Uses no network.
//!
//! In a case of `tests/cases/refusals.txt`, `status`, `header` and `body` are the response; without a status it is an
//! event of a stream. `weight`, `previous`, `window` and `max_output` are facts of the request, in tokens, and with
//! `base` the client has no key. The outcome says whether the call may pass later, and has the failure and its text.

use std::path::Path;

use plimsoll_testkit::cases::{self, Case};

use super::*;

const KEY: &str = "sk-0123456789-hush";

#[test]
fn each_refusal_becomes_its_failure() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/refusals.txt");
    cases::check(&file, |case| {
        let failure = failure(case);
        let text = format!("says {failure}");
        assert!(!text.contains("hush"), "{text}");
        let again = if failure.is_retryable() {
            "may pass"
        } else {
            "is final"
        };
        vec![format!("{again}: {failure:?}"), text]
    });
}

fn failure(case: &Case) -> Failure {
    let model: ModelRef = case.get("model").unwrap().parse().unwrap();
    let usual = model.vendor().base_url.unwrap_or("http://127.0.0.1:1/v1");
    let base = BaseUrl::parse(case.get("base").unwrap_or(usual), None).unwrap();
    let tokens = |key: &str| case.get(key).map(|tokens| Tokens(tokens.parse().unwrap()));
    let secrets = [Secret::new(KEY)];
    let facts = RequestFacts {
        max_output: tokens("max_output"),
        weight: tokens("weight"),
        previous: tokens("previous"),
        window: tokens("window"),
    };
    let call = match case.get("base") {
        None => CallContext {
            model: &model,
            base: &base,
            key_from: Some("OPENAI_API_KEY"),
            secrets: &secrets,
            facts,
        },
        Some(_) => without_key(&model, &base),
    };
    let mut headers = HeaderMap::new();
    for header in case.all("header") {
        let (name, value) = header.split_once(": ").unwrap();
        let name: reqwest::header::HeaderName = name.parse().unwrap();
        headers.insert(name, value.parse().unwrap());
    }
    let body = case.get("body").unwrap();
    match case.get("status") {
        Some(status) => call.refused(status.parse().unwrap(), &headers, body),
        None => call.broken(BrokenResponse::Refused(body.to_owned())),
    }
}

fn without_key<'a>(model: &'a ModelRef, base: &'a BaseUrl) -> CallContext<'a> {
    CallContext {
        model,
        base,
        key_from: None,
        secrets: &[],
        facts: RequestFacts::default(),
    }
}

#[test]
fn a_cure_is_said_once() {
    let model: ModelRef = "openai/m".parse().unwrap();
    let base = BaseUrl::parse("127.0.0.1:8000", None).unwrap();
    let call = without_key(&model, &base);
    let limit = plimsoll_wire::WireError::TooLarge {
        limit: plimsoll_context::Bytes(9),
    };
    for why in [limit.to_string(), "the answer exceeds 9 bytes".to_owned()] {
        let text = call.broken(BrokenResponse::TooLarge(why)).to_string();
        assert_eq!(text.matches("fewer output tokens").count(), 1, "{text}");
    }
    let many = plimsoll_wire::WireError::TooManyParts { limit: 1_024 };
    let text = call.broken(BrokenResponse::from(many)).to_string();
    assert!(text.contains("more than 1024 tool calls"), "{text}");
    assert!(
        !text.contains("bytes") && !text.contains("output tokens"),
        "{text}"
    );
    let packed = call.packed("gzip");
    assert!(!packed.is_retryable() && packed.to_string().contains("`gzip`"));
}

#[test]
fn a_kind_in_a_header_is_part_of_the_error() {
    let mut headers = HeaderMap::new();
    let plain = r#"{"message":"no"}"#;
    assert_eq!(with_error_type(plain, &headers), plain);
    let kind = "ThrottlingException:http://internal/coral/";
    headers.insert(ERROR_TYPE, kind.parse().unwrap());
    let coded = r#"{"message":"no","code":"ThrottlingException"}"#;
    assert_eq!(with_error_type(plain, &headers), coded);
    assert_eq!(with_error_type("no JSON", &headers), "no JSON");
}
