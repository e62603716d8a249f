//! The output of `plimsoll compact --explain`: the thresholds of a budget, and the effect of each
//! stage.

use std::cmp::Ordering;

use plimsoll::Tokens;
use plimsoll::context::{Budget, Transcript};
use plimsoll::policy::{self, Mark, PlanContext, Policy, Trigger};

use crate::config::grouped;

/// Maximum width of a strip in columns. It fits beside the figures on a narrow terminal.
const COLUMNS: usize = 48;

/// Describes the effect of a policy on a chat: its thresholds, and one line for each stage.
pub(crate) fn effect(policy: &Policy, view: &Transcript, budget: &Budget) -> String {
    let steps = policy::explain(
        policy,
        view,
        budget,
        Trigger::Asked,
        &PlanContext::default(),
    );
    let sent = |tokens: Tokens| match tokens {
        Tokens::MAX => "none".to_owned(),
        tokens => grouped(tokens + budget.overhead),
    };
    let max_result = match budget.max_result {
        Tokens::MAX => "without a bound".to_owned(),
        tokens => format!("{} at most", grouped(tokens)),
    };
    let head = format!(
        "explain: limit {} tokens │ compacts above {} │ ends at {} │ tools {} │ one result {max_result}",
        sent(budget.limit),
        sent(budget.trigger),
        sent(budget.target),
        grouped(budget.overhead),
    );
    let line = |name: &str, before: Tokens, after: Tokens, marks: &[Mark]| {
        let change = match after.cmp(&before) {
            Ordering::Equal => String::new(),
            Ordering::Less => format!("−{}", grouped(before.minus(after))),
            Ordering::Greater => format!("+{}", grouped(after.minus(before))),
        };
        let tokens = grouped(after + budget.overhead);
        format!("  {name:<10}{tokens:>10} {change:>10}  {}", strip(marks))
    };
    let all = view.items().len();
    let mut lines = vec![
        head,
        line("", view.tokens(), view.tokens(), &vec![Mark::Kept; all]),
    ];
    let stages = steps.iter();
    lines.extend(stages.map(|step| line(&step.stage, step.before, step.after, &step.marks)));
    let marks = steps.last().map_or(&[][..], |step| &step.marks);
    let count = |wanted: Mark| marks.iter().filter(|mark| **mark == wanted).count();
    let gone = count(Mark::Gone);
    lines.push(format!(
        "  {} of {all} messages are left │ ▒ shortened: {} │ S summaries: {} │ · removed: {gone}",
        all - gone,
        count(Mark::Shortened),
        count(Mark::Summary),
    ));
    lines.join("\n")
}

/// Draws one character per message, or per group of messages if there are many.
fn strip(marks: &[Mark]) -> String {
    let group = marks.len().div_ceil(COLUMNS).max(1);
    let sign = |marks: &[Mark]| {
        let all = |wanted: Mark| marks.iter().all(|mark| *mark == wanted);
        if marks.contains(&Mark::Summary) {
            'S'
        } else if all(Mark::Kept) {
            '█'
        } else if all(Mark::Gone) {
            '·'
        } else {
            '▒'
        }
    };
    marks.chunks(group).map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strip_is_short_however_long_the_chat() {
        assert_eq!(strip(&[]), "");
        let marks = [Mark::Kept, Mark::Summary, Mark::Gone, Mark::Shortened];
        assert_eq!(strip(&marks), "█S·▒");
        let mut many = vec![Mark::Kept; 400];
        many.extend([Mark::Gone; 600]);
        let strip = strip(&many);
        assert!(strip.chars().count() <= COLUMNS);
        assert!(strip.starts_with('█') && strip.ends_with('·'));
    }
}
