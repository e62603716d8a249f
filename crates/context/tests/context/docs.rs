//! The strips in `docs/context.md`: each shows the effect of its stage. Further tests of the stages
//! are the tables in `stages.rs`.

use std::sync::Arc;

use plimsoll_context::{
    ArgumentDigest, Author, Budget, Cap, CompactionScope, Evict, Fill, Fit, HistoryLimit, Lines,
    Policy, Ppm, Prune, Section, Sections, SessionPruneConfig, Stage, Summarize, SummaryConfig,
    Tokens, Trigger,
};
use plimsoll_testkit::notation::{show, view};

const DOC: &str = include_str!("../../../../docs/context.md");

fn stages(name: &str) -> Vec<Arc<dyn Stage>> {
    match name {
        "fill" => vec![Arc::new(Evict::Oldest), Arc::new(Fill)],
        name => vec![stage(name)],
    }
}

fn stage(name: &str) -> Arc<dyn Stage> {
    match name {
        "cap" => Arc::new(Cap::Arrivals),
        "prune" => Arc::new(Prune(SessionPruneConfig::default())),
        "evict" => Arc::new(Evict::Oldest),
        "extract" => Arc::new(Summarize(SummaryConfig {
            author: Author::Extract,
            share: Ppm(500_000),
            ..SummaryConfig::default()
        })),
        "sections" => Arc::new(Sections {
            of: Section::All,
            scope: CompactionScope::default(),
            keep_first_turns: 1,
            keep_recent_turns: 1,
            summary: Some(SummaryConfig {
                author: Author::Extract,
                ..SummaryConfig::default()
            }),
        }),
        "lines" => Arc::new(Lines {
            max: 4,
            of_turns: 10,
            after_turns: 0,
        }),
        "digest" => Arc::new(ArgumentDigest::default()),
        "history" => Arc::new(HistoryLimit(6)),
        "fit" => Arc::new(Fit::Results),
        other => panic!("no stage `{other}`"),
    }
}

fn number(words: &[&str], key: &str) -> Option<Tokens> {
    let value = words
        .iter()
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    value.map(|value| Tokens(value.parse().unwrap()))
}

#[test]
fn every_strip_of_the_guide_is_what_its_stage_does() {
    let mut strips = 0;
    let mut wrong = Vec::new();
    for block in DOC.split("```strip ").skip(1) {
        let block = block.split("```").next().unwrap();
        let mut lines = block.lines();
        let head: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        let (before, after) = (lines.next().unwrap(), lines.next().unwrap());
        let trigger = number(&head, "trigger").unwrap();
        let target = number(&head, "target").unwrap();
        let budget = Budget {
            limit: trigger,
            trigger,
            target,
            max_result: number(&head, "max_result").unwrap_or(Tokens(100)),
            keep_recent: 1,
            overhead: Tokens(0),
            instructions: Tokens(0),
        };
        let old = view(before);
        let mut new = old.clone();
        let policy = Policy::new(stages(head[0]));
        let plan = policy.best_plan(&old, &budget, Trigger::Request);
        new.apply(&plan.expect(before)).unwrap();
        let shown = show(&new, &old);
        if shown != after {
            wrong.push(format!("{head:?}\n{before}\n{shown}\nand not\n{after}"));
        }
        strips += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(strips >= 7, "{strips}");
}
