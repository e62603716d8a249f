//! Properties of all ways to shorten, and tables of results.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::counter::Chars4;

/// Returns the number in the only marker of `text`.
fn pruned(text: &str) -> u64 {
    let (_, rest) = text.split_once(marker::OPENING).unwrap();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Returns head and tail of a plain text that was cut once.
fn sides(text: &str) -> (&str, &str) {
    let (head, rest) = text.split_once("\n[pruned: ").unwrap();
    (head, rest.split_once("]\n").unwrap().1)
}

/// Generates text with everything that makes cutting hard, and some line ends.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z]{1,12}( [a-z]{1,9}){0,9}",
        "[a-z ]{1,40}\n",
        "[\u{4e00}-\u{4e40}、。]{1,20}",
        Just("🦀👩‍👩‍👧‍👦".to_owned()),
        Just("e\u{301}\u{302}\r\n".to_owned()),
        "[\"\\\\/\u{1}\t{}\\[\\],:0-9]{1,20}",
        "\\PC{0,10}",
    ];
    prop::collection::vec(piece, 0..120).prop_map(|pieces| pieces.concat())
}

/// Generates text that contains imitations of markers at any position.
fn text_with_likenesses() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => any_text(),
        1 => (0..3_000u64).prop_map(|n| format!("\n[pruned: {n} bytes]\n")),
        1 => Just("\n[pruned: 99999999999999999999 bytes]\n".to_owned()),
        1 => Just("\n[pruned: ".to_owned()),
        1 => Just("[pruned: 12 bytes; by you]\n".to_owned()),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any_text().prop_map(Value::from),
        "[a-z]{0,8}".prop_map(Value::from),
        Just(Value::from("[pruned: 12 bytes, 3 items]")),
        Just(Value::from("[pruned: 12 bytes]")),
    ];
    leaf.prop_recursive(5, 120, 12, |inner| {
        let key =
            prop_oneof![4 => "[a-z\"é]{0,9}", 1 => Just("[pruned: 5 bytes, 1 items]".to_owned())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..12)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
    .prop_filter("a document", |value| value.is_array() || value.is_object())
}

fn written(value: &Value, pretty: bool) -> String {
    if pretty {
        serde_json::to_string_pretty(value).unwrap()
    } else {
        value.to_string()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn head_tail_keeps_its_word(text in any_text(), max in 0..2_000u64) {
        match head_tail(&text, Bytes(max)) {
            None => prop_assert!(
                text.len() as u64 <= max || max < 2 * (MIN_SIDE.0 + 1) + 30,
                "{} bytes left as they are under {max}", text.len()
            ),
            Some(short) => {
                prop_assert!(short.len() as u64 <= max);
                prop_assert!(short.len() < text.len());
                let (head, tail) = sides(&short);
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert!(!head.is_empty() && !tail.is_empty());
                prop_assert_eq!(pruned(&short), (text.len() - head.len() - tail.len()) as u64);
                // Most of the bound is used; the rest is lost to line ends and character
                // boundaries.
                prop_assert!(short.len() as u64 >= max * 3 / 4 - 16);
                prop_assert_eq!(head_tail(&short, Bytes(max)), None);
            }
        }
    }

    #[test]
    fn cutting_again_counts_what_the_original_lost(
        text in any_text(), bounds in prop::collection::vec(60..3_000u64, 1..5), noted: bool
    ) {
        let mut current = text.clone();
        let mut bounds = bounds;
        bounds.sort_unstable_by(|a, b| b.cmp(a));
        for (round, max) in bounds.into_iter().enumerate() {
            let marker = if noted && round % 2 == 0 { Marker::with_note("ask for it") } else { Marker::default() };
            if let Some(short) = marker.head_tail(&current, Bytes(max)) {
                let (head, tail) = sides(&short);
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert_eq!(pruned(&short), (text.len() - head.len() - tail.len()) as u64);
                current = short;
            }
        }
    }

    #[test]
    fn a_text_that_looks_like_ours_breaks_nothing(text in text_with_likenesses(), max in 0..800u64) {
        for short in [head_tail(&text, Bytes(max)), shorten_bytes(&text, Bytes(max))].into_iter().flatten() {
            prop_assert!(short.len() as u64 <= max && short.len() < text.len());
            prop_assert_eq!(shorten_bytes(&short, Bytes(max)), None);
        }
    }

    #[test]
    fn clipping_ends_between_characters(text in any_text(), max in 0..200u64) {
        let clipped = clip(&text, Bytes(max));
        prop_assert!(clipped.len() as u64 <= max && text.starts_with(clipped));
        prop_assert!(clipped.len() == text.len() || clipped.len() as u64 + 4 > max);
    }

    #[test]
    fn a_bound_in_tokens_holds(text in any_text(), max in 0..400u64) {
        let weight = Chars4.text(&text);
        match shorten(&text, Tokens(max), &Chars4) {
            None => prop_assert!(weight <= Tokens(max) || max < 60),
            Some(short) => {
                prop_assert!(Chars4.text(&short) <= Tokens(max));
                prop_assert!(short.len() < text.len());
                prop_assert_eq!(shorten(&short, Tokens(max), &Chars4), None);
            }
        }
    }

    #[test]
    fn json_stays_json(value in any_json(), max in 0..1_500u64, pretty: bool) {
        let text = written(&value, pretty);
        let container = Container::read(&text).unwrap();
        if text.len() as u64 > max
            && let Some(short) = container.shorten(max as usize, &Marker::default())
        {
            prop_assert!(short.len() as u64 <= max);
            let read: Value = serde_json::from_str(&short).unwrap();
            prop_assert_eq!(read.is_array(), value.is_array());
            prop_assert_eq!(shorten_bytes(&text, Bytes(max)), Some(short.clone()));
            prop_assert_eq!(shorten_bytes(&short, Bytes(max)), None);
        }
    }

    #[test]
    fn lists_of_records_say_what_they_lost(
        // Each is smaller than a quarter of any bound, so none is shortened itself.
        sizes in prop::collection::vec(1..60usize, 2..80),
        bounds in prop::collection::vec(500..3_000u64, 1..4),
    ) {
        let records = sizes.iter().enumerate().map(|(id, size)| json!({"id": id, "s": "x".repeat(*size)}));
        let value = Value::Array(records.collect());
        let text = value.to_string();
        let mut bounds = bounds;
        bounds.sort_unstable_by(|a, b| b.cmp(a));
        let mut current = text.clone();
        for max in bounds {
            let Some(short) = shorten_bytes(&current, Bytes(max)) else { continue };
            let read: Vec<Value> = serde_json::from_str(&short).unwrap();
            let at = read.iter().position(Value::is_string).unwrap();
            let hole = Hole::read(read[at].as_str().unwrap()).unwrap();
            // Records are whole, and the missing ones are exactly those of the marker.
            prop_assert_eq!(&read[..at], &value.as_array().unwrap()[..at]);
            let kept_after = read.len() - at - 1;
            prop_assert_eq!(&read[at + 1..], &value.as_array().unwrap()[sizes.len() - kept_after..]);
            prop_assert_eq!(hole.items, Some((sizes.len() - at - kept_after) as u64));
            let inserted = read[at].to_string().len();
            prop_assert_eq!(hole.bytes, (text.len() - (short.len() - inserted)) as u64);
            current = short;
        }
    }
}

#[test]
fn ten_thousand_bytes_within_two_hundred() {
    let text: String = ('a'..='z').cycle().take(10_000).collect();
    let short = head_tail(&text, Bytes(200)).unwrap();
    let (head, tail) = sides(&short);
    assert!(short.len() <= 200 && text.starts_with(head) && text.ends_with(tail));
    assert_eq!(
        pruned(&short),
        10_000 - head.len() as u64 - tail.len() as u64
    );
    assert!(head.len() >= 80 && tail.len() >= 80);
}

#[test]
fn no_text_grows() {
    let text = "x".repeat(60);
    assert_eq!(head_tail(&text, Bytes(50)), None);
    for max in 0..=60 {
        if let Some(short) = head_tail(&text, Bytes(max)) {
            assert!(short.len() as u64 <= max);
        }
    }
}

#[test]
fn every_small_bound_is_safe() {
    for unit in ["🦀", "語", "e\u{301}", "👩‍👩‍👧‍👦", "\\u00e9", "\"", "\\"] {
        let text = unit.repeat(1_000);
        let list = json!([text, text]).to_string();
        for max in 0..64 {
            for text in [&text, &list] {
                for short in [
                    head_tail(text, Bytes(max)),
                    shorten_bytes(text, Bytes(max)),
                    shorten(text, Tokens(max), &Chars4),
                ] {
                    assert!(short.is_none_or(|short| short.len() < text.len()));
                }
                assert!(clip(text, Bytes(max)).len() as u64 <= max);
            }
        }
    }
}

#[test]
fn a_cut_moves_to_a_line_end_that_is_near() {
    let text: String = (0..200).map(|n| format!("line {n}\n")).collect();
    let short = head_tail(&text, Bytes(240)).unwrap();
    let (head, tail) = sides(&short);
    assert!(head.starts_with("line 0\n") && tail.ends_with("line 199\n"));
    assert!(
        head.lines()
            .chain(tail.lines())
            .all(|line| text.lines().any(|l| l == line))
    );
}

#[test]
fn one_giant_line_keeps_head_and_tail() {
    let text = format!("BEGIN{}END", "ab ".repeat(133_330));
    let short = shorten(&text, Tokens(12_500), &Chars4).unwrap();
    assert!(Chars4.text(&short) <= Tokens(12_500));
    assert!(Chars4.text(&short) >= Tokens(11_000));
    assert!(short.starts_with("BEGIN") && short.ends_with("END"));
}

#[test]
fn a_bound_in_tokens_is_met_where_the_ends_are_denser_than_the_middle() {
    #[derive(Debug)]
    struct CapitalsWeigh;
    impl TokenCounter for CapitalsWeigh {
        fn name(&self) -> &str {
            "capitals"
        }
        fn text(&self, text: &str) -> Tokens {
            Tokens(
                text.bytes()
                    .map(|b| if b.is_ascii_uppercase() { 50 } else { 1 })
                    .sum(),
            )
        }
    }
    let text = ["X".repeat(2_000), "y".repeat(60_000), "X".repeat(2_000)].concat();
    for max in [5_000, 50_000, 150_000] {
        let short = shorten(&text, Tokens(max), &CapitalsWeigh).unwrap();
        let weight = CapitalsWeigh.text(&short);
        assert!(
            weight <= Tokens(max) && weight >= Tokens(max / 2),
            "{weight} of {max}"
        );
    }
}

#[test]
fn json_comes_out_as_json() {
    let records: Vec<Value> = (0..100).map(|id| json!({"id": id, "ok": true})).collect();
    let log = "é\n".repeat(2_000);
    for (value, max, expected) in [
        (
            json!(records),
            100,
            r#"[{"id":0,"ok":true},{"id":1,"ok":true},"[pruned: 1931 bytes, 97 items]",{"id":99,"ok":true}]"#,
        ),
        (
            json!({"exit": 0, "stdout": log, "path": "/a"}),
            120,
            r#"{"exit":0,"stdout":"é\né\né\né\né\né\né\n[pruned: 5959 bytes]\né\né\né\né\né\né\né\n","path":"/a"}"#,
        ),
    ] {
        let text = value.to_string();
        assert_eq!(shorten_bytes(&text, Bytes(max)).unwrap(), expected);
    }
}

#[test]
fn kept_json_keeps_its_bytes() {
    let text = format!(
        "\n[1.50, 12345678901234567890123,\n  {{\"a\" : 1e5}}, {} 1.0, 2e-0]\n",
        "{\"long\": \"zzzzzzzzzzzzzzzzzzzzz\"}, ".repeat(50)
    );
    let short = shorten_bytes(&text, Bytes(160)).unwrap();
    assert!(short.starts_with("[1.50,12345678901234567890123,{\"a\" : 1e5},"));
    assert!(short.ends_with(",1.0,2e-0]"));
    serde_json::from_str::<Value>(&short).unwrap();
}

#[test]
fn an_item_that_was_shrunk_before_counts_with_what_it_lost() {
    let text = json!([
        "a".repeat(30),
        "b".repeat(5_000),
        "c".repeat(30),
        "d".repeat(30)
    ])
    .to_string();
    let once = shorten_bytes(&text, Bytes(500)).unwrap();
    assert!(once.contains("bbb") && !once.contains("items"), "{once}");
    let twice = shorten_bytes(&once, Bytes(120)).unwrap();
    let read: Vec<String> = serde_json::from_str(&twice).unwrap();
    let hole = read.iter().find_map(|item| Hole::read(item)).unwrap();
    let inserted = Value::from(marker_in(&read)).to_string().len();
    assert_eq!(
        hole.bytes,
        (text.len() - (twice.len() - inserted)) as u64,
        "{twice}"
    );
}

fn marker_in(items: &[String]) -> &str {
    items
        .iter()
        .find(|item| Hole::read(item).is_some())
        .unwrap()
}

#[test]
fn json_without_room_becomes_head_and_tail() {
    let text = json!({"k".repeat(400): 1, "l".repeat(400): 2}).to_string();
    let short = shorten_bytes(&text, Bytes(100)).unwrap();
    assert!(short.len() <= 100 && short.starts_with("{\"kkk") && short.ends_with("lll\":2}"));
}

#[test]
fn brackets_all_the_way_down_are_bounded() {
    let depth = 50_000;
    let text = ["[".repeat(depth), "1".to_owned(), "]".repeat(depth)].concat();
    let short = shorten_bytes(&text, Bytes(1_000)).unwrap();
    assert!(short.len() <= 1_000);
    serde_json::from_str::<Value>(&short).unwrap();
}

/// A note in the place of an image, and a short text, cannot become shorter: the long text beside them does.
#[test]
fn a_long_text_makes_room_for_the_parts_that_cannot_be_cut() {
    let image = Part::Image(crate::message::Image {
        source: Source::Data {
            media_type: "image/png".into(),
            base64: "A".repeat(4_000),
        },
        size: None,
        detail: None,
    });
    let parts = vec![
        Part::text("Look at it:"),
        image,
        Part::text("word ".repeat(3_000)),
    ];
    let message = Message::User { parts };
    for max in [120, 200, 500, 1_000, 3_000] {
        let max = Tokens(max);
        let cut = text_in_tokens(&message, max, &Chars4, &Marker::default()).unwrap();
        assert!(
            Chars4.message(&cut) <= max,
            "{max}: {}",
            Chars4.message(&cut)
        );
        assert_eq!(cut.parts()[0], Part::text("Look at it:"));
    }
}

#[test]
fn the_level_is_the_highest_that_fits() {
    assert_eq!(level(vec![10, 20, 30], 100), u64::MAX);
    assert_eq!(level(vec![10, 20, 30], 50), 20);
    assert_eq!(level(vec![100, 100], 50), 25);
    assert_eq!(level(vec![], 0), u64::MAX);
}
