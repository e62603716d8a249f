//! The output of `plimsoll compact --explain`: the thresholds of a budget, and the effect of each
//! stage.

use std::cmp::Ordering;
use std::fmt::Write;

use plimsoll::Tokens;
use plimsoll::context::{Budget, Transcript};
use plimsoll::policy::{Mark, PlanContext, Policy, StageStep, Trigger};
use serde_json::{Value, json};

use crate::config::grouped;

/// Maximum width of a strip in columns. It fits beside the figures on a narrow terminal.
const COLUMNS: usize = 48;

/// The effect of a policy on a chat, stage by stage.
pub(crate) struct PolicyEffect {
    budget: Budget,
    before: Tokens,
    messages: usize,
    steps: Vec<StageStep>,
}

impl PolicyEffect {
    pub(crate) fn new(policy: &Policy, view: &Transcript, budget: Budget) -> Self {
        let steps = plimsoll::policy::explain(
            policy,
            view,
            &budget,
            Trigger::Asked,
            &PlanContext::default(),
        );
        Self {
            budget,
            before: view.tokens() + budget.overhead,
            messages: view.items().len(),
            steps,
        }
    }

    pub(crate) fn as_text(&self) -> String {
        let budget = &self.budget;
        let sent = |tokens: Tokens| match tokens {
            Tokens::MAX => "none".to_owned(),
            tokens => grouped(tokens + budget.overhead),
        };
        let mut text = format!(
            "explain: limit {} tokens │ compacts above {} │ ends at {} │ tools {} │ one result \
             {}\n",
            sent(budget.limit),
            sent(budget.trigger),
            sent(budget.target),
            grouped(budget.overhead),
            match budget.max_result {
                Tokens::MAX => "without a bound".to_owned(),
                tokens => format!("{} at most", grouped(tokens)),
            },
        );
        let mut line = |name: &str, tokens: Tokens, before: Tokens, strip: &str| {
            let change = match tokens.cmp(&before) {
                Ordering::Equal => String::new(),
                Ordering::Less => format!("−{}", grouped(before.minus(tokens))),
                Ordering::Greater => format!("+{}", grouped(tokens.minus(before))),
            };
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "  {name:<10}{:>10} {change:>10}  {strip}",
                grouped(tokens)
            );
        };
        let untouched = vec![Mark::Kept; self.messages];
        line("", self.before, self.before, &strip(&untouched));
        for step in &self.steps {
            let tokens = step.after + budget.overhead;
            line(
                &step.stage,
                tokens,
                step.before + budget.overhead,
                &strip(&step.marks),
            );
        }
        let gone = self.count(Mark::Gone);
        let _ = write!(
            text,
            "  {} of {} messages are left │ ▒ shortened: {} │ S summaries: {} │ · removed: {gone}",
            self.messages - gone,
            self.messages,
            self.count(Mark::Shortened),
            self.count(Mark::Summary),
        );
        text
    }

    pub(crate) fn as_json(&self) -> Value {
        let budget = &self.budget;
        let sent = |tokens: Tokens| (tokens != Tokens::MAX).then(|| tokens + budget.overhead);
        let steps: Vec<Value> = self
            .steps
            .iter()
            .map(|step| {
                json!({
                    "stage": step.stage,
                    "before": step.before + budget.overhead,
                    "after": step.after + budget.overhead,
                    "freed": step.before.minus(step.after),
                    "added": step.after.minus(step.before),
                    "messages": step.marks,
                })
            })
            .collect();
        let gone = self.count(Mark::Gone);
        json!({
            "limit": sent(budget.limit),
            "fires_above": sent(budget.trigger),
            "ends_at": sent(budget.target),
            "tools": budget.overhead,
            "before": self.before,
            "stages": steps,
            "messages": {
                "before": self.messages,
                "left": self.messages - gone,
                "shortened": self.count(Mark::Shortened),
                "summaries": self.count(Mark::Summary),
                "gone": gone,
            },
        })
    }

    /// Counts the messages that end in a state.
    fn count(&self, wanted: Mark) -> usize {
        let marks = self.steps.last().map(|step| step.marks.as_slice());
        let marks = marks.unwrap_or_default().iter();
        marks.filter(|mark| **mark == wanted).count()
    }
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
