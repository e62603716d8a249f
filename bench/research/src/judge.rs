//! `cargo xtask judge`: measures how much of real sessions a summary without a model keeps,
//! compared with the agents' own summaries and a mechanical rule at the same budget.
//!
//! It judges the content of the texts, not how well an agent continues with them.

mod authors;
mod canary;
mod handover;
mod kit;
mod lines;
mod made;
mod measure;
mod outcomes;
mod report;
mod rivals;
mod sessions;
mod text;
mod through;
mod whole;

use std::path::Path;
use std::time::Instant;

use plimsoll_context::{Bpe, Message, TokenCounter, Tokens, extract};

use crate::error::Error;
use crate::recordings::DATA;

use canary::{PERCENT, SurvivalRates};
use lines::LineScanner;
use measure::{Finder, Score, WantedContent};
use report::{Figures, Loss, ReportRow};
use sessions::Session;

/// Budgets in tokens of o200k, besides the size of the agent's own summary.
const BUDGETS: [u64; 2] = [8_000, 20_000];
/// Budgets of the cuts that no agent made, in tokens.
const MADE_BUDGETS: [u64; 4] = [1_000, 3_000, 8_000, 20_000];
/// The places of those cuts, in percent of the session's messages.
const MADE_CUTS: [usize; 2] = [50, 75];
/// Sessions with fewer tokens than this are never compacted.
const LARGE: u64 = 20_000;
/// A span is only cut if it is at least this many times the budget.
const SPAN: u64 = 2;

/// Amount of text for the measurement of time, in bytes.
const SPEED_BYTES: usize = 5_000_000;

/// A place in a session. All earlier messages are replaced by a text.
struct SessionCut<'s> {
    session: &'s Session,
    at: usize,
    wanted: WantedContent,
}

/// Judges the sessions of `data`, or those of the default folder beside the workspace.
pub(crate) fn run(
    root: &Path,
    data: Option<&Path>,
    texts: Option<&Path>,
    seed: u64,
) -> Result<(), Error> {
    let beside = root.join(DATA);
    let folder = data.unwrap_or(&beside);
    let Some(sessions) = sessions::load(folder)? else {
        println!("skipped: there are no sessions at {}", folder.display());
        return Ok(());
    };
    let finder = Finder::new()?;
    let mut judge = Judge {
        texts,
        lines: LineScanner::new()?,
        rows: Vec::new(),
        losses: Vec::new(),
    };
    judge.compactions(&sessions, &finder)?;
    judge.made_cuts(&sessions, &finder)?;
    let figures = Figures {
        rows: judge.rows,
        losses: judge.losses,
        canaries: canaries(&sessions),
        outcomes: outcomes::outcomes(&sessions, &ours)?,
        survivals: kit::survivals(root, seed)?,
        wholes: whole::wholes(root, &sessions)?,
        handovers: handover::handovers(&sessions, &ours)?,
    };
    if let Some(folder) = texts {
        report::faults(folder, &figures.handovers.faults, &figures.survivals)?;
    }
    report::tables(&figures);
    println!("\n{}", speed(&sessions));
    Ok(())
}

/// A function that turns a span into a text within a budget.
type Rule<'a> = &'a dyn Fn(&[&Message], Tokens) -> String;

struct Judge<'a> {
    texts: Option<&'a Path>,
    lines: LineScanner,
    rows: Vec<ReportRow>,
    losses: Vec<Loss>,
}

impl Judge<'_> {
    /// Judges the cuts that the agents made themselves.
    fn compactions(&mut self, sessions: &[Session], finder: &Finder) -> Result<(), Error> {
        for session in sessions {
            for (i, cut) in session.compactions.iter().enumerate() {
                let next = session.compactions.get(i + 1);
                let until = next.map_or(session.messages.len(), |next| next.at);
                let from = cut.at.max(cut.summary_at + 1);
                let cut_here = SessionCut {
                    session,
                    at: cut.at,
                    wanted: finder.wanted(session, cut.at, from, until),
                };
                let Some(summary) = session.messages.get(cut.summary_at).map(Message::text) else {
                    continue;
                };
                let own = Bpe::o200k().text(&summary).0;
                self.take(
                    "compactions",
                    "own size",
                    "agent's own summary",
                    &cut_here,
                    &summary,
                )?;
                for budget in [own].into_iter().chain(BUDGETS) {
                    let name = match budget {
                        size if size == own => "own size".to_owned(),
                        size => size.to_string(),
                    };
                    let views: Vec<&Message> = before(session, cut.at).iter().collect();
                    self.both("compactions", &name, Tokens(budget), &views, &cut_here)?;
                }
            }
        }
        Ok(())
    }

    /// Judges cuts at half and three quarters of every large session.
    fn made_cuts(&mut self, sessions: &[Session], finder: &Finder) -> Result<(), Error> {
        for session in sessions {
            let total = session.messages.len();
            if session.span(total) < LARGE {
                continue;
            }
            for percent in MADE_CUTS {
                let at = total * percent / 100;
                let cut = SessionCut {
                    session,
                    at,
                    wanted: finder.wanted(session, at, at, total),
                };
                let views: Vec<&Message> = before(session, at).iter().collect();
                for budget in MADE_BUDGETS {
                    if session.span(at) >= SPAN * budget {
                        self.both(
                            "made cuts",
                            &budget.to_string(),
                            Tokens(budget),
                            &views,
                            &cut,
                        )?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Judges the mechanical rule and `extract` at one budget.
    fn both(
        &mut self,
        table: &'static str,
        budget: &str,
        max: Tokens,
        views: &[&Message],
        cut: &SessionCut<'_>,
    ) -> Result<(), Error> {
        let counter = Bpe::o200k();
        let text = rivals::mechanical(views, max, &counter);
        self.take(table, budget, "mechanical rule", cut, &text)?;
        let text = ours(views, max);
        self.take(table, budget, "`extract`", cut, &text)
    }

    fn take(
        &mut self,
        table: &'static str,
        budget: &str,
        rule: &'static str,
        cut: &SessionCut<'_>,
        text: &str,
    ) -> Result<(), Error> {
        if let Some(folder) = self.texts {
            let name = format!("{table} {} {} {budget} {rule}.md", cut.session.id, cut.at);
            let name = name.replace(['/', ' ', '`', '\''], "_");
            std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(Error::file(&path))?;
            let path = path.with_extension("lost.txt");
            std::fs::write(&path, cut.wanted.lost(text)).map_err(Error::file(&path))?;
        }
        if ["`extract`", "mechanical rule"].contains(&rule) {
            let loss = Loss::of(table, rule, budget, &cut.wanted, text);
            self.losses.push(loss);
        }
        self.rows.push(ReportRow {
            table,
            budget: budget.to_owned(),
            rule,
            tokens: Bpe::o200k().text(text).0,
            score: cut.wanted.score(text, &self.lines.without_lists(text)),
        });
        Ok(())
    }
}

/// Returns the canaries that survived, by budget and rule.
fn canaries(sessions: &[Session]) -> Vec<(u64, &'static str, SurvivalRates)> {
    let mut found = Vec::new();
    let large: Vec<&Session> = sessions
        .iter()
        .filter(|session| session.span(session.messages.len()) >= LARGE)
        .collect();
    let counter = Bpe::o200k();
    let mechanical = |views: &[&Message], max: Tokens| rivals::mechanical(views, max, &counter);
    let rules: [(&'static str, Rule<'_>); 2] =
        [("mechanical rule", &mechanical), ("`extract`", &ours)];
    for percent in PERCENT {
        for (name, rule) in rules {
            let mut sum = SurvivalRates::default();
            for (n, session) in large.iter().enumerate() {
                sum.add(canary::survived(session, n, percent, rule));
            }
            found.push((percent, name, sum));
        }
    }
    found
}

/// Measures the time of `extract` on all sessions together, up to 5 MB of text, with a budget of
/// 4,000 tokens.
fn speed(sessions: &[Session]) -> String {
    let mut bytes = 0;
    let all = sessions.iter().flat_map(|session| &session.messages);
    let views: Vec<&Message> = all
        .take_while(|message| {
            bytes += message.text().len();
            bytes <= SPEED_BYTES
        })
        .collect();
    let bytes: usize = views.iter().map(|message| message.text().len()).sum();
    let began = Instant::now();
    let text = ours(&views, Tokens(4_000));
    format!(
        "{:.1} MB of text in {} messages: {} ms, {} bytes told.",
        bytes as f64 / 1e6,
        views.len(),
        began.elapsed().as_millis(),
        text.len()
    )
}

fn ours(views: &[&Message], max: Tokens) -> String {
    extract(views, max, &Bpe::o200k()).unwrap_or_default()
}

fn before(session: &Session, at: usize) -> &[Message] {
    session.messages.get(..at).unwrap_or_default()
}

/// Returns the mean of the shares that are defined.
fn mean(scores: &[Score], share: fn(&Score) -> measure::Share) -> Option<f64> {
    let shares: Vec<f64> = scores
        .iter()
        .filter_map(|score| share(score).part())
        .collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}
