//! The cost of a run by the user's own prices, and the handling of unusable prices.

use super::command::{CommandOutput, Home};
use super::fake::{Fake, FakeAnswer};

fn home(prices: &str) -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(home.data().join("plimsoll.toml"), prices).unwrap();
    home
}

fn fake() -> Fake {
    Fake::new([FakeAnswer::say("Done.")])
}

#[test]
fn a_users_prices_are_used() {
    // 60 tokens fresh, 40 from the cache, 10 written.
    let prices =
        "[models.openai-compatible.m]\ninput = 1000.0\noutput = 2000.0\ncache_read = 500.0";
    let said = home(prices).agent(&fake(), &["Say it."]).done();
    assert!(said.err.contains("$0.1000"), "{}", said.err);
}

#[test]
fn a_price_that_is_not_known_is_not_told() {
    let prices = "[models.openai-compatible.m]\ninput = 1000.0\noutput = 2000.0";
    let said = home(prices).agent(&fake(), &["Say it."]).done();
    assert!(!said.err.contains('$'), "{}", said.err);
    let said = Home::new().agent(&fake(), &["Say it."]).done();
    assert!(!said.err.contains('$'), "{}", said.err);
}

#[test]
fn an_agent_that_is_called_costs_what_its_own_model_costs() {
    let prices =
        "[models.openai-compatible.m]\ninput = 1000.0\noutput = 2000.0\ncache_read = 500.0\n";
    let dear = "[models.openai-compatible.dear]\ninput = 100000.0\noutput = 200000.0\ncache_read = 50000.0\n";
    // Each call: 60 tokens fresh, 40 from the cache, 10 written.
    for (prices, bill) in [
        (format!("{prices}{dear}"), "$10.20"),
        (prices.to_owned(), "$0.2000 and 1 call of unknown price"),
    ] {
        let home = home(&prices);
        let fake = Fake::new([
            FakeAnswer::call(&[("scout", "{\"task\":\"Look.\"}")]),
            FakeAnswer::say("Land."),
            FakeAnswer::say("Done."),
        ]);
        let file = format!(
            "[[agents]]\nname = \"captain\"\ntools = \"none\"\nsub_agents = [\"scout\"]\n\
             [[agents]]\nname = \"scout\"\nmodel = \"openai-compatible/dear\"\nbase_url = \"{}\"\n\
             description = \"Looks.\"\ntools = \"none\"\n",
            fake.url()
        );
        home.file("plimsoll.toml", &file);
        let args = ["--config", "plimsoll.toml", "--agent", "captain", "Look."];
        let said = home.agent(&fake, &args).done();
        let summary = summary(&said);
        assert!(
            summary.contains(&format!("│ {bill} │")),
            "{bill}: {summary}"
        );
    }
}

/// The lines that say how it ended, as one.
fn summary(said: &CommandOutput) -> String {
    let (_, summary) = said.err.rsplit_once("\nanswered │ ").unwrap();
    format!("answered │ {}", summary.replace('\n', " │ "))
}

#[test]
fn what_no_server_said_is_estimated_and_called_so() {
    let prices =
        "[models.openai-compatible.m]\ninput = 1000.0\noutput = 2000.0\ncache_read = 500.0";
    let fake = Fake::new([FakeAnswer::say("Done.").unreported()]);
    let said = home(prices).agent(&fake, &["Say it."]).done();
    let summary = summary(&said);
    assert_eq!(summary.matches("(estimated)").count(), 2, "{summary}");
    let said = home(prices).agent(&fake, &["--json", "Say it."]).done();
    let end = said.out.lines().last().unwrap();
    let end: serde_json::Value = serde_json::from_str(end).unwrap();
    let estimated = &end["outcome"]["estimated"];
    assert!(estimated["input"].as_u64().unwrap() > 0, "{end}");
    assert!(estimated["output"].as_u64().unwrap() > 0, "{end}");
    assert_eq!(end["outcome"]["usage"]["input"], 0, "{end}");
}

#[test]
fn a_limit_on_money_without_prices_says_where_to_write_them() {
    let fake = fake();
    let said = home("").agent(&fake, &["--max-cost", "1", "Say it."]);
    said.refused(
        2,
        &[
            "max_cost requires the prices of `openai-compatible/m`",
            "[models.openai-compatible.\"m\"] with `input = …` and `output = …`",
        ],
    );
    assert!(fake.asked().is_empty());
}

#[test]
fn bad_prices_end_the_run_before_it_begins() {
    let table = [
        (
            "[models.openai-compatible.m]\ninput = -1\noutput = 1",
            "m, input: -1 is no price",
        ),
        (
            "[models.openai-compatible.m]\ninput = 1",
            "m: `output` is missing",
        ),
        (
            "[models.openai-compatible.m]\ninput = 1\noutput = 1\ncache = 1",
            "m, cache: there is no such key",
        ),
    ];
    for (prices, part) in table {
        let fake = fake();
        let said = home(prices).agent(&fake, &["Say it."]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.contains("plimsoll.toml"), "{}", said.err);
        assert!(said.err.contains(part), "{}", said.err);
        assert!(fake.asked().is_empty());
    }
}
