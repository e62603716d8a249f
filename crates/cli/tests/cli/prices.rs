//! What a run costs, by the user's own prices, and what becomes of prices that are of no use.

use super::command::Home;
use super::fake::{Answer, Fake};

fn home(prices: &str) -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(home.data().join("prices.toml"), prices).unwrap();
    home
}

fn fake() -> Fake {
    Fake::new([Answer::say("Done.")])
}

#[test]
fn a_users_prices_are_used() {
    // 60 tokens fresh, 40 from the cache, 10 written.
    let prices = "[openai-compatible.m]\ninput = 1000.0\noutput = 2000.0\ncache_read = 500.0";
    let said = home(prices).agent(&fake(), &["Say it."]).done();
    assert!(said.err.contains("$0.1000"), "{}", said.err);
}

#[test]
fn what_is_not_known_is_not_nothing() {
    let prices = "[openai-compatible.m]\ninput = 1000.0\noutput = 2000.0";
    let said = home(prices).agent(&fake(), &["Say it."]).done();
    assert!(said.err.contains("price unknown"), "{}", said.err);
    let said = Home::new().agent(&fake(), &["Say it."]).done();
    assert!(said.err.contains("price unknown"), "{}", said.err);
}

#[test]
fn bad_prices_end_the_run_before_it_begins() {
    let table = [
        (
            "[openai-compatible.m]\ninput = -1\noutput = 1",
            "m, input: -1 is no price",
        ),
        ("[openai-compatible.m]\ninput = 1", "m: `output` is missing"),
        (
            "[openai-compatible.m]\ninput = 1\noutput = 1\ncache = 1",
            "m, cache: there is no such key",
        ),
        ("no toml", "line 1: no TOML"),
    ];
    for (prices, part) in table {
        let fake = fake();
        let said = home(prices).agent(&fake, &["Say it."]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.contains("prices.toml"), "{}", said.err);
        assert!(said.err.contains(part), "{}", said.err);
        assert!(fake.asked().is_empty());
    }
}
