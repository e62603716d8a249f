//! `plimsoll models`: the known models with their sources, and their effect on a run.

use serde_json::Value;

use super::command::Home;
use super::fake::{Fake, FakeAnswer};
use super::terminal::Terminal;

fn home(models: &str) -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(home.data().join("plimsoll.toml"), models).unwrap();
    home
}

fn listed(home: &Home, args: &[&str]) -> Vec<Value> {
    let args = [&["models", "--json"], args].concat();
    let out = home.run(args).done().out;
    let lines = out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn one(home: &Home, model: &str) -> Value {
    let mut models = listed(home, &[model]).into_iter();
    models.find(|row| row["model"] == model).unwrap()
}

#[test]
fn what_is_known_is_listed_with_who_says_so() {
    let home = home(
        "[models.openai.gpt-5]\nwindow = 300_000\n[models.xai.grok-9]\ninput = 1.0\noutput = 2.0",
    );
    let five = one(&home, "openai/gpt-5");
    assert_eq!(five["window"]["value"], 300_000);
    assert_eq!(five["window"]["from"], "configuration");
    assert_eq!(five["max_output"]["from"], "built_in");
    let prices = &five["prices"]["value"];
    assert_eq!(prices["rates"]["input"], 1_250_000_000_u64);
    assert!(listed(&home, &[]).len() > 80);
    let said = home.run(["models", "gpt-5-mini"]).done();
    assert!(said.out.contains("openai/gpt-5-mini"), "{}", said.out);
    assert!(
        !said.out.contains("claude") && !said.out.contains('\u{1b}'),
        "{}",
        said.out
    );
    let said = home.run(["models", "grok-9"]).done();
    assert!(
        said.out
            .contains("*: yours; your own values go into [models] of "),
        "{}",
        said.out
    );
    assert_eq!(home.run(["models", "no-such"]).code, Some(1));
    let file = home.file("plimsoll.toml", "[models.openai.gpt-5]\nwindow = 310_000");
    let five = &listed(
        &home,
        &["openai/gpt-5", "--config", &file.display().to_string()],
    );
    assert_eq!(five[0]["window"]["from"], "configuration");
    assert_eq!(five[0]["window"]["value"], 310_000);
}

#[test]
fn a_table_ends_at_the_edge_of_its_terminal() {
    let home =
        home("[models.xai.grok-9]\nwindow = 300_000\ninput = 1.0\noutput = 2.0\nimages = true");
    for columns in [45, 80, 120] {
        let mut models = Terminal::start(home.command(["models", "grok-9"]), &[], columns);
        assert_eq!(models.end(), Some(0));
        let screen = models.screen();
        let row = screen.lines().find(|line| line.starts_with("xai/grok-9"));
        let row = row.unwrap_or_else(|| panic!("{screen}"));
        assert!(row.starts_with("xai/grok-9  1.00*  2.00*"), "{screen}");
        assert!(row.chars().count() < usize::from(columns), "{screen}");
        assert!(row.ends_with(" 300000*"), "{screen}");
    }
}

#[test]
fn a_run_has_the_window_that_is_known_where_its_server_tells_none() {
    let fake = || Fake::new([FakeAnswer::say("Done.")]);
    let mine = "[models.openai-compatible.m]\nwindow = 12_345";
    let said = home(mine).agent(&fake(), &["Say it."]).done();
    assert!(
        said.err
            .contains("window 12345 tokens, from the configuration"),
        "{}",
        said.err
    );
    let here = home(mine);
    here.file(
        "plimsoll.toml",
        "[models.openai-compatible.m]\nwindow = 23_456",
    );
    let said = here
        .agent(&fake(), &["--config", "plimsoll.toml", "Say it."])
        .done();
    assert!(
        said.err.contains("23456 tokens, from the configuration"),
        "{}",
        said.err
    );
    let given = home(mine).agent(&fake(), &["--max-context", "9000", "Say it."]);
    assert!(given.done().err.contains("9000 tokens, as given"));
    let none = Home::new().agent(&fake(), &["Say it."]).done();
    assert!(none.err.contains("200000 tokens, assumed"), "{}", none.err);
}
