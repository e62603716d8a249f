//! Tests of rows: parsing, precedence, and errors with their places.

use std::path::Path;
use std::time::Duration;

use plimsoll_context::{Money, PriceSheet, Tokens};
use plimsoll_testkit::cases;
use plimsoll_wire::Effort;
use plimsoll_wire::anthropic;

use super::*;

fn dollars(dollars: f64) -> Option<Money> {
    Money::from_dollars(dollars).ok()
}

fn model(name: &str) -> ModelRef {
    ModelRef::parse(name).unwrap()
}

fn book(text: &str, from: Origin) -> ModelBook {
    ModelBook::parse(text, from).unwrap()
}

fn window(name: &str) -> Option<u64> {
    let window = ModelBook::built_in().facts(&model(name)).window;
    window.map(|fact| fact.value.0)
}

fn known_prices(model: &ModelRef) -> Option<PriceSheet> {
    ModelBook::built_in().facts(model).sheet()
}

#[test]
fn our_data_is_sound() {
    let text = include_str!("../../data/models.toml");
    let read = book(text, Origin::BuiltIn);
    assert_eq!(&read, ModelBook::built_in());
    assert!(read.len() > 80, "{}", read.len());
    let mut unpriced = Vec::new();
    for (vendor, name) in read.models() {
        let facts = read.find(vendor, name);
        let window = facts.window.as_ref().unwrap().value;
        assert!((4_096..=4_000_000).contains(&window.0), "{name}");
        if let Some(most) = &facts.max_output {
            assert!(most.value <= window, "{name}");
        }
        let Some(sheet) = facts.sheet() else {
            unpriced.push(format!("{vendor}/{name}"));
            continue;
        };
        let rates = sheet.rates;
        assert!(
            rates.cache_read.is_none_or(|read| read < rates.input),
            "{name}"
        );
        assert!(
            rates.cache_write.is_none_or(|write| write >= rates.input),
            "{name}"
        );
        assert!(rates.output > rates.input, "{name}");
        if let Some(long) = sheet.long {
            assert!(
                long.above <= window && long.rates.input > rates.input,
                "{name}"
            );
            assert!(long.rates.output >= rates.output, "{name}");
            assert!(long.rates.cache_read >= rates.cache_read, "{name}");
        }
        let longer = sheet.longer.map(|longer| longer.cache_write);
        assert!(longer.is_none() || longer >= rates.cache_write, "{name}");
    }
    // Neither of the sources has prices of these.
    assert_eq!(unpriced, ["openai/gpt-6.2-astra"]);
}

/// Messages requests are rendered with a table of `wire`, which must agree with this data.
#[test]
fn our_data_and_the_profiles_of_anthropic_say_the_same() {
    let read = ModelBook::built_in();
    for (_, name) in read.models().filter(|(vendor, _)| *vendor == "anthropic") {
        let facts = read.find("anthropic", name);
        let profile = anthropic::MessagesProfile::of_model(name);
        assert_ne!(profile.name, "claude", "{name}");
        if let Some(most) = &facts.max_output {
            assert_eq!(Some(most.value.0), profile.max_output, "{name}");
        }
        if let Some(least) = &facts.min_cacheable {
            assert_eq!(least.value, profile.min_cacheable, "{name}");
        }
        if facts.thinking.is_some() {
            assert_ne!(profile.thinking, anthropic::ThinkingStyle::None, "{name}");
        }
    }
}

#[test]
fn a_dated_name_has_its_own_row_or_that_without_the_date() {
    let first = known_prices(&model("openai/gpt-4o-2024-05-13")).unwrap();
    assert_eq!(Some(first.rates.input), dollars(5.0));
    assert_eq!(Some(first.rates.output), dollars(15.0));
    assert_eq!((first.rates.cache_read, first.cache_lives), (None, None));
    let facts = ModelBook::built_in().facts(&model("openai/gpt-4o-2024-05-13"));
    assert_eq!(facts.max_output.unwrap().value, Tokens(4_096));
    for (name, tokens) in [
        ("openai/gpt-4-0613", Some(8_192)),
        ("openai/gpt-4-1106-preview", Some(128_000)),
        ("openai/gpt-3.5-turbo-0125", Some(16_385)),
        ("openai/gpt-5.6-terra", Some(922_000)),
        ("xai/grok-4-0709", Some(256_000)),
        ("deepseek/deepseek-v4-flash-0731", Some(1_000_000)),
        ("anthropic/claude-sonnet-4-20250514", Some(200_000)),
        // A month and a year, and suffixes that are not dates.
        ("openai/gpt-4-2508", None),
        ("openai/gpt-4-0000", None),
        ("openai/gpt-4-1331", None),
    ] {
        assert_eq!(window(name), tokens, "{name}");
    }
}

#[test]
fn a_model_that_stands_there_twice_says_the_same_both_times() {
    let twice = |one: u64, other: u64| {
        let text =
            format!("[openai.\"gpt-4o\"]\nwindow = {one}\n[openai.\"GPT-4o\"]\nwindow = {other}");
        ModelBook::parse(&text, Origin::Configuration)
    };
    let error = twice(9_000, 8_000).unwrap_err().to_string();
    assert!(
        error.contains("twice") && error.contains("gpt-4o"),
        "{error}"
    );
    assert!(twice(9_000, 9_000).is_ok());
}

#[test]
fn what_is_not_known_stays_unknown() {
    let dated = known_prices(&model("openai/gpt-4o-2024-08-06")).unwrap();
    assert_eq!(Some(dated.rates.input), dollars(2.5));
    assert_eq!(dated.rates.cache_write, dollars(2.5), "nothing extra");
    assert_eq!(dated.min_cacheable, Some(Tokens(1_024)));
    assert_eq!(known_prices(&model("openai/new")), None);
    for here in ["llama.cpp/x", "local"] {
        let prices = known_prices(&model(here)).unwrap();
        assert_eq!(prices.rates, Rates::FREE, "{here}");
    }
    let claude = known_prices(&model("anthropic/claude-sonnet-4-5-20250929")).unwrap();
    assert_eq!(claude.cache_lives, Some(Duration::from_secs(300)));
    let longer = claude.longer.unwrap();
    assert_eq!(Some(longer.cache_write), dollars(6.0));
    assert_eq!(longer.lives, Duration::from_secs(3_600));
}

#[test]
fn names_are_found_with_and_without_a_date() {
    assert_eq!(window("openai/gpt-4o"), Some(128_000));
    assert_eq!(window("openai/GPT-4o-2024-08-06"), Some(128_000));
    assert_eq!(window("openai-responses/gpt-4o"), Some(128_000));
    assert_eq!(window("anthropic/claude-opus-4-5-20251101"), Some(200_000));
    assert_eq!(window("groq/openai/gpt-oss-20b"), Some(131_072));
    assert_eq!(window("vertex/gemini-2.5-pro"), Some(1_048_576));
    assert_eq!(window("bedrock/eu.amazon.nova-pro-v1:0"), Some(300_000));
    for unknown in [
        "openai/gpt-4o-next",
        "openai/gpt-4o-2024-8-06",
        "openai/gpt-99",
        "openai-compatible/gpt-4o",
        "ollama/qwen3",
        "bedrock/mars.amazon.nova-pro-v1:0",
        "openai/ä-2024-08-06",
    ] {
        assert_eq!(window(unknown), None, "{unknown}");
    }
    assert_eq!(provider_of("gpt-4o"), Some("openai"));
    assert_eq!(provider_of("qwen3"), None);
}

#[test]
fn a_users_rows_go_before_ours_figure_by_figure() {
    let mine = "
        [openai.\"GPT-4o\"]
        input = 1
        output = 2
        [grok.grok-9]
        input = 0.5
        output = 0
        cache_read = 0.05
        [openai.gpt-5]
        window = 400_000
        max_output = 64_000
        min_cacheable = 2048
        images = false
        efforts = [\"high\", \"low\"]
        [ollama.\"qwen3:8b\"]
        input = 0.01
        output = 0.02";
    let both = ModelBook::built_in()
        .clone()
        .overlay(book(mine, Origin::Configuration));
    let gpt = both.facts(&model("openai/gpt-4o"));
    let sheet = gpt.sheet().unwrap();
    assert_eq!(Some(sheet.rates.input), dollars(1.0));
    assert_eq!(sheet.rates.cache_read, None, "prices go together");
    assert_eq!(sheet.rates.cache_write, None);
    assert_eq!(gpt.window.unwrap().from, Origin::BuiltIn);
    assert_eq!(gpt.prices.unwrap().from, Origin::Configuration);
    let five = both.facts(&model("openai-responses/gpt-5"));
    assert_eq!(five.window.unwrap().value, Tokens(400_000));
    assert_eq!(
        five.max_output.as_ref().unwrap().own(),
        Some(Tokens(64_000))
    );
    assert_eq!(five.sheet().unwrap().min_cacheable, Some(Tokens(2_048)));
    assert_eq!(five.prices.unwrap().from, Origin::BuiltIn);
    assert!(!five.images.unwrap().value);
    assert_eq!(five.efforts.unwrap().value, [Effort::Low, Effort::High]);
    assert!(five.thinking.unwrap().own().is_none(), "ours is no order");
    let grok = both.facts(&model("xai/grok-9")).sheet().unwrap();
    assert_eq!(grok.rates.cache_write, dollars(0.5));
    assert_eq!(grok.rates.output, Money(0), "nothing is a price");
    let local = both.facts(&model("ollama/qwen3:8b")).sheet().unwrap();
    assert_eq!(Some(local.rates.input), dollars(0.01));
    assert!(book("", Origin::Configuration).is_empty());
    let short = book("[openai.\"gpt-9\"]\nwindow = 9000", Origin::Configuration);
    assert_eq!(
        short.facts(&model("openai/gpt-9")).window.unwrap().value,
        Tokens(9_000)
    );
}

#[test]
fn each_invalid_row_is_refused_with_its_place() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/models.txt");
    cases::check(&file, |case| {
        let text: Vec<&str> = case.all("-").collect();
        let error = ModelBook::parse(&text.join("\n"), Origin::Configuration);
        let error = error.unwrap_err().to_string();
        error.lines().map(str::to_owned).collect()
    });
}

/// Anthropic's longer lifetime can be requested at each mark, even if nothing is known about the
/// model. Without its length the cost of a run would be unknown.
#[test]
fn own_prices_without_the_longer_life_have_its_usual_price() {
    let mine = "[anthropic.\"claude-of-tomorrow\"]
        input = 1.0
        output = 5.0
        cache_read = 0.1
        cache_write = 1.25
        [openrouter.\"anthropic/claude-of-tomorrow\"]
        input = 1.0
        output = 5.0
        cache_read = 0.1
        cache_write = 1.25
        [openai.\"gpt-of-tomorrow\"]
        input = 1.0
        output = 5.0
        cache_read = 0.1";
    let book = book(mine, Origin::Configuration);
    let longer = |name: &str| book.facts(&model(name)).sheet().unwrap().longer;
    for name in [
        "anthropic/claude-of-tomorrow",
        "openrouter/anthropic/claude-of-tomorrow",
    ] {
        let longer = longer(name).unwrap();
        assert_eq!(longer.lives.as_secs(), 3_600, "{name}");
        assert_eq!(Some(longer.cache_write), dollars(2.0), "{name}");
    }
    assert!(longer("openai/gpt-of-tomorrow").is_none());
}
