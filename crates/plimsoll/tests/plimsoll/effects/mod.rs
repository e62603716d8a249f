//! Every key of a configuration has an effect: on the provider's requests, or on other observable
//! behaviour of the agent. A key in the table without a row here fails.

mod of_context;
mod of_limits;
mod of_model;
mod scene;
mod server;

use std::collections::BTreeSet;

use plimsoll::config;
use scene::{Scene, SceneOutcome, play};

/// Keys that the command line obeys, after a run: `crates/cli/tests/cli/remove_sessions.rs` tests them.
const OF_COMMAND_LINE: [&str; 2] = ["sessions.keep_days", "sessions.keep_bytes"];

/// What a key changes.
struct KeyEffect {
    key: &'static str,
    /// What stands in the file with it and without it.
    base: &'static str,
    /// What sets it, before the rest; or after a `!`, all of the file with it.
    set: &'static str,
    scene: Scene,
    /// Looks at what is seen without it and with it.
    shows: fn(&SceneOutcome, &SceneOutcome),
}

fn rows() -> impl Iterator<Item = &'static KeyEffect> {
    [of_model::ROWS, of_limits::ROWS, of_context::ROWS]
        .into_iter()
        .flatten()
}

/// Time stands still but for what is waited for, unless commands run.
fn play_both(row: &KeyEffect) -> (SceneOutcome, SceneOutcome) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(!matches!(row.scene, Scene::Commands(_)))
        .build()
        .unwrap();
    runtime.block_on(async {
        let without = play(row.base, row.scene).await;
        assert_eq!(without.error, "", "the base of {}", row.key);
        let set = match row.set.strip_prefix('!') {
            Some(all) => all.to_owned(),
            None => format!("{}\n{}", row.set, row.base),
        };
        let with = play(&set, row.scene).await;
        (without, with)
    })
}

#[test]
fn every_key_has_a_row() {
    let keys: BTreeSet<String> = config::keys().map(config::SettingKey::path).collect();
    let rows: BTreeSet<String> = rows()
        .map(|row| row.key.to_owned())
        .chain(server::KEYS.iter().map(|key| (*key).to_owned()))
        .chain(OF_COMMAND_LINE.map(str::to_owned))
        .collect();
    let missing: Vec<&String> = keys.difference(&rows).collect();
    assert!(
        missing.is_empty(),
        "keys without a test of their effect: {missing:?}"
    );
    let strange: Vec<&String> = rows.difference(&keys).collect();
    assert!(strange.is_empty(), "rows of no key: {strange:?}");
}

#[test]
fn every_key_has_an_effect() {
    let mut without_effect = Vec::new();
    for row in rows() {
        let shown = std::panic::catch_unwind(|| {
            let (without, with) = play_both(row);
            (row.shows)(&without, &with);
        });
        if shown.is_err() {
            without_effect.push(row.key);
        }
    }
    assert!(without_effect.is_empty(), "see above: {without_effect:?}");
}
