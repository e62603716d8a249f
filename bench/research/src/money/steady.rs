//! The steady bench: made-up sessions of constant growth, without recordings.
//!
//! It shows the trade-off between the cost of a session and the content that its views still have.

use std::sync::Arc;

use plimsoll_context::{ContextStrategy, Ppm, Threshold, TokenCounter, Tokens};
use plimsoll_replay::{
    Bill, Keep, PlimsollSettings, Reads, STEADY_TURNS, Way, simulate_with, steady_sessions,
};

use super::{percent, unit_sheet};

/// The window of the steady bench, in tokens.
const WINDOW: Tokens = Tokens(32_000);

/// Prints the table.
pub(super) fn print(counter: &Arc<dyn TokenCounter>) {
    let sessions = steady_sessions();
    println!(
        "\nSteady: {} made-up sessions of {STEADY_TURNS} turns with results of 2 KB, a window of \
         32k\n",
        sessions.len()
    );
    println!(
        "| cost in millions of fresh-input tokens | write 1.25 | write 1 | facts at the end | \
         on average | user messages at the end | on average | plans | prefix breaks | largest \
         view |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for (name, way) in rows() {
        let bill = |write| {
            let sheet = unit_sheet(write, None);
            let bills = sessions
                .iter()
                .filter_map(|session| simulate_with(counter, session, way, WINDOW, &sheet));
            let bill = bills.fold(Bill::default(), Bill::combine);
            (bill, bill.without_answers(&sheet.rates).unwrap_or_default())
        };
        let ((bill, dear), (_, cheap)) = (bill(125), bill(100));
        let kept = bill.retention;
        println!(
            "| {name} | {:.3} | {:.3} | {} of {} | {} | {} of {} | {} | {} | {} | {} |",
            dear.0 as f64 / 1e9,
            cheap.0 as f64 / 1e9,
            kept.last_facts.found,
            kept.last_facts.of,
            percent(kept.facts),
            kept.last_user_messages.found,
            kept.last_user_messages.of,
            percent(kept.user_messages),
            bill.plans,
            bill.prefix_breaks,
            bill.largest,
        );
    }
}

fn rows() -> [(&'static str, Way); 5] {
    let target = |policy, percent: u64| {
        Way::Plimsoll(PlimsollSettings {
            policy,
            target: Some(Threshold::Share(Ppm(percent * 10_000))),
            ..PlimsollSettings::default()
        })
    };
    let extract = ContextStrategy::Extract { max_tokens: None };
    let evict = ContextStrategy::Evict { max_tokens: None };
    let summary = Way::Summarize {
        keep: Keep::Messages(10),
        reads: Reads::Fresh,
    };
    let slide = Way::SlidingWindow { size: Ppm::ONE };
    [
        ("**the default**", Way::default()),
        ("`extract`, target 20 %", target(extract, 20)),
        ("`evict`, target 30 %", target(evict, 30)),
        ("summary, down to 10 messages", summary),
        ("sliding window, each turn", slide),
    ]
}
