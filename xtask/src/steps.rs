//! Runs checks one after the other. Each prints its name, time and result. All checks run even if
//! one fails.

use std::time::{Duration, Instant};

use crate::error::Error;

/// The result of a step: a note for the summary (possibly empty), or an error.
pub(crate) type Outcome = Result<String, Error>;

/// One step.
pub(crate) struct Step<'a> {
    /// The step's name in the output.
    pub(crate) name: &'static str,
    /// The function that performs the step.
    pub(crate) act: Box<dyn Fn() -> Outcome + 'a>,
}

/// The result of one step.
#[derive(Debug)]
struct Report {
    name: &'static str,
    took: Duration,
    result: Result<String, String>,
}

/// Runs every step and prints the summary, which reports if `budget` is exceeded.
///
/// # Errors
/// If a step failed. The error contains the names of the failed steps.
pub(crate) fn run(steps: &[Step<'_>], budget: Option<Duration>) -> Result<(), Error> {
    let mut reports = Vec::new();
    for (number, step) in (1..).zip(steps) {
        println!("\n==> [{number}/{}] {}", steps.len(), step.name);
        let start = Instant::now();
        let result = (step.act)().map_err(|error| error.to_string());
        let took = start.elapsed();
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        println!("<== {}: {word}, {:.1} s", step.name, took.as_secs_f64());
        let name = step.name;
        reports.push(Report { name, took, result });
    }
    print!("{}", summary(&reports, budget));
    let failed: Vec<&str> = reports
        .iter()
        .filter(|report| report.result.is_err())
        .map(|report| report.name)
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Error::Checks {
        failed: failed.join(", "),
    })
}

/// Formats the summary.
fn summary(reports: &[Report], budget: Option<Duration>) -> String {
    let mut text = String::from("\nsummary\n");
    for report in reports {
        let (word, note) = match &report.result {
            Ok(note) => ("ok", note),
            Err(said) => ("FAILED", said),
        };
        let seconds = report.took.as_secs_f64();
        let row = format!("  {:<8} {seconds:>7.1} s  {word:<6}  {note}", report.name);
        text.push_str(row.trim_end());
        text.push('\n');
    }
    let total: Duration = reports.iter().map(|report| report.took).sum();
    text.push_str(&format!(
        "  {:<8} {:>7.1} s\n",
        "total",
        total.as_secs_f64()
    ));
    if let Some(budget) = budget.filter(|budget| total > *budget) {
        let minutes = budget.as_secs() / 60;
        text.push_str(&format!(
            "  slower than the {minutes} minutes this is meant to take\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn every_step_runs_and_those_that_failed_are_listed() {
        let ran = RefCell::new(Vec::new());
        let step = |name: &'static str, outcome: fn() -> Outcome| {
            let ran = &ran;
            let act = Box::new(move || {
                ran.borrow_mut().push(name);
                outcome()
            });
            Step { name, act }
        };
        let steps = [
            step("one", || Err(Error::Untidy(3))),
            step("two", || Ok("a note".to_owned())),
            step("three", || Err(Error::Missed(1))),
        ];
        let error = run(&steps, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "failed: one, three; see the summary above"
        );
        assert_eq!(*ran.borrow(), ["one", "two", "three"]);
        run(&steps[1..2], None).unwrap();
    }

    #[test]
    fn the_summary_says_what_passed_and_what_failed() {
        let report = |name, seconds, result| Report {
            name,
            took: Duration::from_secs(seconds),
            result,
        };
        let reports = [
            report("format", 2, Ok(String::new())),
            report("clippy", 60, Err("`cargo clippy` failed".to_owned())),
            report("deny", 1, Ok("advisories skipped".to_owned())),
        ];
        let text = summary(&reports, Some(Duration::from_secs(60)));
        assert_eq!(
            text,
            "\nsummary\n\
             \x20 format       2.0 s  ok\n\
             \x20 clippy      60.0 s  FAILED  `cargo clippy` failed\n\
             \x20 deny         1.0 s  ok      advisories skipped\n\
             \x20 total       63.0 s\n\
             \x20 slower than the 1 minutes this is meant to take\n"
        );
    }
}
