//! The output of `plimsoll compact --explain`: the thresholds of a budget, and the effect of each
//! stage.

use std::cmp::Ordering;

use plimsoll::Tokens;
use plimsoll::context::{Budget, Transcript};
use plimsoll::policy::{self, PlanContext, Policy, Trigger};

use crate::config::grouped;

/// Describes the effect of a policy on a chat: its thresholds, and one line for each stage.
pub(crate) fn effect(policy: &Policy, view: &Transcript, budget: &Budget) -> String {
    let context = PlanContext::default();
    let steps = policy::explain(policy, view, budget, Trigger::Asked, &context);
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
    let line = |name: &str, before: Tokens, after: Tokens| {
        let change = match after.cmp(&before) {
            Ordering::Equal => String::new(),
            Ordering::Less => format!("−{}", grouped(before.minus(after))),
            Ordering::Greater => format!("+{}", grouped(after.minus(before))),
        };
        let line = format!("  {name:<10}{:>10} {change:>10}", sent(after));
        line.trim_end().to_owned()
    };
    let mut lines = vec![head, line("before", view.tokens(), view.tokens())];
    lines.extend(
        steps
            .iter()
            .map(|step| line(&step.stage, step.before, step.after)),
    );
    lines.join("\n")
}
