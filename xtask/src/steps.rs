//! Steps in a row: each prints its name, time and result; the first that fails ends the row.
//! Knows nothing of what a step does.

use std::time::{Duration, Instant};

use crate::error::Error;

/// A step passes with a note for the summary (empty: nothing to add), or fails.
pub(crate) type Outcome = Result<String, Error>;

/// One step of a row.
pub(crate) struct Step<'a> {
    /// What the output calls it.
    pub(crate) name: &'static str,
    /// What it does.
    pub(crate) act: Box<dyn Fn() -> Outcome + 'a>,
}

/// How one step ended.
#[derive(Debug)]
struct Report {
    name: &'static str,
    took: Duration,
    result: Result<String, String>,
}

/// Runs the row and prints the summary. The note of the step called `last_word`, if it ran,
/// is the closing line, so that a reader of the log finds the count of tests there.
pub(crate) fn run(steps: &[Step<'_>], budget: Duration, last_word: &str) -> Result<(), Error> {
    let mut reports = Vec::new();
    let mut failure = None;
    for (number, step) in (1..).zip(steps) {
        println!("\n==> [{number}/{}] {}", steps.len(), step.name);
        let start = Instant::now();
        let outcome = (step.act)();
        let took = start.elapsed();
        let (word, result) = match outcome {
            Ok(note) => ("ok", Ok(note)),
            Err(error) => {
                let said = error.to_string();
                failure = Some(error);
                ("FAILED", Err(said))
            }
        };
        println!("<== {}: {word}, {:.1} s", step.name, took.as_secs_f64());
        let name = step.name;
        reports.push(Report { name, took, result });
        if failure.is_some() {
            break;
        }
    }
    let not_run: Vec<_> = steps.iter().skip(reports.len()).map(|s| s.name).collect();
    print!("{}", summary(&reports, &not_run, budget));
    let closing = reports.iter().find(|report| report.name == last_word);
    if let Some(Ok(note)) = closing.map(|report| &report.result)
        && !note.is_empty()
    {
        println!("{note}");
    }
    failure.map_or(Ok(()), Err)
}

/// The table at the end.
fn summary(reports: &[Report], not_run: &[&str], budget: Duration) -> String {
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
    for name in not_run {
        text.push_str(&format!("  {name:<8} {:>9}  not run\n", "-"));
    }
    let total: Duration = reports.iter().map(|report| report.took).sum();
    text.push_str(&format!(
        "  {:<8} {:>7.1} s\n",
        "total",
        total.as_secs_f64()
    ));
    if total > budget {
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

    const HOUR: Duration = Duration::from_secs(3600);

    fn step<'a>(name: &'static str, act: impl Fn() -> Outcome + 'a) -> Step<'a> {
        let act = Box::new(act);
        Step { name, act }
    }

    #[test]
    fn the_first_failure_ends_the_row_and_is_returned() {
        let ran = RefCell::new(Vec::new());
        let note = |name: &'static str| {
            ran.borrow_mut().push(name);
            Ok(String::new())
        };
        let steps = [
            step("one", || note("one")),
            step("two", || Err(Error::Untidy(3))),
            step("three", || note("three")),
        ];
        let error = run(&steps, HOUR, "one").unwrap_err();
        assert_eq!(error.to_string(), "tidy found 3 fault(s), listed above");
        assert_eq!(*ran.borrow(), ["one"]);
    }

    #[test]
    fn the_summary_says_what_passed_failed_and_was_not_run() {
        let report = |name, seconds, result| Report {
            name,
            took: Duration::from_secs(seconds),
            result,
        };
        let reports = [
            report("format", 2, Ok(String::new())),
            report("deny", 1, Ok("advisories skipped".to_owned())),
            report("clippy", 60, Err("`cargo clippy` failed".to_owned())),
        ];
        let text = summary(&reports, &["test", "docs"], Duration::from_secs(60));
        assert_eq!(
            text,
            "\nsummary\n\
             \x20 format       2.0 s  ok\n\
             \x20 deny         1.0 s  ok      advisories skipped\n\
             \x20 clippy      60.0 s  FAILED  `cargo clippy` failed\n\
             \x20 test             -  not run\n\
             \x20 docs             -  not run\n\
             \x20 total       63.0 s\n\
             \x20 slower than the 1 minutes this is meant to take\n"
        );
    }
}
