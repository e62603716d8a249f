//! The results of `plimsoll compact` on short chats and on recorded sessions, as tables.

use super::percent;
use crate::judge::kit::{KINDS, PERCENT, Survival};
use crate::judge::measure::Share;
use crate::judge::whole::Whole;

/// Prints the table. The last rows combine all languages.
pub(super) fn tables(survivals: &[Survival]) {
    println!("\n### Short chats, compacted: what was said once\n");
    println!("Required: 40 % at 10 %, 80 % at 20 %, 100 % at 30 %, and no old value.\n");
    let kinds = KINDS.join(" | ");
    println!("| language | budget | all | {kinds} | old values there | 95 % used | refused |");
    println!("|---|--:|--:|{}--:|--:|--:|", "--:|".repeat(KINDS.len()));
    for one in survivals.iter().chain(&together(survivals)) {
        let kinds: Vec<String> = one
            .kinds
            .iter()
            .map(|share| percent(share.part()))
            .collect();
        println!(
            "| {} | {} % | {} of {} | {} | {} of {} | {} | {} |",
            one.language,
            one.percent,
            percent(one.all().part()),
            one.all().of,
            kinds.join(" | "),
            percent(one.stale.part()),
            one.stale.of,
            percent(one.used.part()),
            one.refused
        );
    }
}

/// Prints the results of recorded sessions.
pub(super) fn whole_tables(wholes: &[Whole]) {
    println!("\n### Recorded sessions, compacted: the summary and the kept messages together\n");
    println!(
        "| budget | sessions | refused | over | 95 % used | least used | summaries cut | short user messages | user sentences | words through tools |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for one in wholes {
        let cell = |share: Share| format!("{} of {}", percent(share.part()), share.of);
        println!(
            "| {} % | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            one.percent,
            one.sessions,
            one.refused,
            one.over,
            cell(one.used),
            percent(one.least),
            cell(one.cut),
            cell(one.messages),
            cell(one.sentences),
            cell(one.words)
        );
    }
}

/// Combines all languages, by budget.
fn together(survivals: &[Survival]) -> Vec<Survival> {
    PERCENT
        .iter()
        .map(|percent| {
            let mut sum = Survival {
                language: "all",
                percent: *percent,
                kinds: [Share::default(); 5],
                stale: Share::default(),
                used: Share::default(),
                refused: 0,
                faults: Vec::new(),
            };
            for one in survivals.iter().filter(|one| one.percent == *percent) {
                for (kind, other) in sum.kinds.iter_mut().zip(one.kinds) {
                    kind.add(other);
                }
                sum.stale.add(one.stale);
                sum.used.add(one.used);
                sum.refused += one.refused;
            }
            sum
        })
        .collect()
}
