//! Recordings from files, and the results of the policies on them: small sessions by table,
//! recorded ones by invariants.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_context::{
    Bpe, ContextStrategy, Memo, Message, Money, Ppm, PriceSheet, Rates, Threshold, TokenCounter,
    Tokens,
};
use plimsoll_replay::{
    Bill, Keep, PlimsollSettings, Reads, Recording, STEADY_PROMPTS, STEADY_RESULT, STEADY_TURNS,
    Share, Times, Way, read, simulate, simulate_with, steady_sessions,
};

fn sheet() -> PriceSheet {
    let cents = |cents: u64| Some(Money(cents * 10_000_000));
    PriceSheet {
        min_cacheable: Some(Tokens(1_024)),
        ..PriceSheet::of(Rates {
            input: cents(300).unwrap(),
            output: cents(1_500).unwrap(),
            cache_read: cents(30),
            cache_write: cents(375),
        })
    }
}

fn ours(policy: ContextStrategy) -> Way {
    Way::Plimsoll(PlimsollSettings {
        policy,
        ..PlimsollSettings::default()
    })
}

/// Our policy that removes on each turn above the trigger.
fn eager() -> Way {
    let size = Some(Threshold::Share(Ppm(800_000)));
    Way::Plimsoll(PlimsollSettings {
        trigger: size,
        target: size,
        ..PlimsollSettings::default()
    })
}

fn ways() -> [Way; 7] {
    [
        Way::default(),
        eager(),
        Way::Fifo,
        Way::SlidingWindow { size: Ppm::ONE },
        Way::Summarize {
            keep: Keep::Target,
            reads: Reads::Cached,
        },
        Way::Summarize {
            keep: Keep::Messages(10),
            reads: Reads::Fresh,
        },
        Way::Hindsight,
    ]
}

/// A session of so many turns, each with a call and a result of 100 lines.
fn session(turns: usize) -> String {
    let mut messages =
        r#"{"role":"system","content":"Be brief."},{"role":"user","content":"Do it."}"#.to_owned();
    for turn in 0..turns {
        let result = format!("line {turn} of the file is here\\n").repeat(100);
        write!(
            messages,
            r#",{{"role":"assistant","content":"Next.","tool_calls":[{{"id":"c{turn}","type":"function","function":{{"name":"read","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c{turn}","content":"{result}"}}"#
        )
        .unwrap();
    }
    format!(r#"{{"id":"s","messages":[{messages},{{"role":"assistant","content":"Done."}}]}}"#)
}

#[test]
fn recordings_come_from_plain_and_packed_files() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{}\n\n{}\n", session(2), session(3));
    let plain = folder.path().join("a.jsonl");
    std::fs::write(&plain, &text).unwrap();
    let packed = folder.path().join("a.jsonl.gz");
    let mut gzip = GzEncoder::new(std::fs::File::create(&packed).unwrap(), Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap();
    for path in [&plain, &packed] {
        let found = read(path).unwrap();
        let sizes: Vec<usize> = found.iter().map(|found| found.messages.len()).collect();
        assert_eq!(sizes, [7, 9]);
    }
    std::fs::write(&plain, format!("{}\n{{}}\n", session(1))).unwrap();
    let error = read(&plain).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
    std::fs::write(&packed, "not packed").unwrap();
    assert!(
        read(&packed)
            .unwrap_err()
            .to_string()
            .contains("a.jsonl.gz")
    );
    assert!(read(&folder.path().join("none.jsonl")).is_err());
}

#[test]
fn summaries_of_the_recorded_agent_are_not_replayed_and_damage_is_repaired() {
    let line = r#"{"id":"s","messages":[
        {"role":"user","content":"a"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"role":"user","content":"sum of all"},
        {"role":"tool","tool_call_id":"gone","content":"x"},
        {"role":"user","content":"b"}],
        "events":[{"kind":"compaction","at":2,"summary_at":2}]}"#;
    let recording = Recording::parse(line).unwrap();
    let texts: Vec<String> = recording
        .messages
        .iter()
        .map(|message| message.text())
        .collect();
    assert_eq!(
        texts.len(),
        4,
        "the open call got a result, the orphan went: {texts:?}"
    );
    assert_eq!(recording.repairs.len(), 2);
    assert!(!texts.iter().any(|text| text.contains("sum of all")));
    assert!(Recording::parse("{}").is_err());
}

#[test]
fn a_session_that_fits_costs_the_same_whatever_the_way() {
    let recording = Recording::parse(&session(5)).unwrap();
    let bills = ways().map(|way| simulate(&recording, way, Tokens(32_000), &sheet()).unwrap());
    assert_eq!(bills[0].requests, 6);
    assert_eq!(bills[0].plans, 0);
    for bill in bills {
        assert_eq!(bill, bills[0]);
    }
    let answers = bills[0].answers;
    let money = bills[0].money.unwrap();
    let input = bills[0].without_answers(&sheet().rates).unwrap();
    assert_eq!(money, input + sheet().rates.output.of(answers));
}

#[test]
fn a_long_session_is_dearest_where_every_turn_rewrites_it() {
    let recording = Recording::parse(&session(200)).unwrap();
    let money = |way| {
        let bill = simulate(&recording, way, Tokens(32_000), &sheet()).unwrap();
        assert_eq!(bill.unfit, 0, "{way:?}");
        assert!(bill.plans > 0, "{way:?}");
        bill.money.unwrap()
    };
    let [default, eager, fifo, sliding, summed, _, best] = ways().map(money);
    let dropping = money(ours(ContextStrategy::SlidingWindow { max_tokens: None }));
    assert!(
        best <= dropping && dropping.0 * 100 <= best.0 * 108,
        "{dropping} {best}"
    );
    assert!(
        default.0 * 100 <= best.0 * 105,
        "pruning is of another family, and about as cheap here: {default} {best}"
    );
    assert!(
        default.0 * 2 < eager.0 && default.0 * 2 < fifo.0 && default.0 * 2 < sliding.0,
        "{default} {eager} {fifo} {sliding}"
    );
    assert!(default < summed, "{default} {summed}");
    assert_eq!(
        simulate(&recording, Way::Fifo, Tokens(0), &sheet()),
        None,
        "no room"
    );
}

#[test]
fn unknown_prices_stay_unknown() {
    let recording = Recording::parse(&session(5)).unwrap();
    let mut sheet = sheet();
    sheet.rates.cache_read = None;
    let bill = simulate(&recording, Way::default(), Tokens(32_000), &sheet).unwrap();
    assert_eq!(bill.money, None);
    assert!(bill.usage.cache_read > Tokens::ZERO);
    assert_eq!(bill.combine(Bill::default()).money, None);
}

#[test]
fn what_holds_for_every_recorded_session() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/normalized");
    let Ok(entries) = std::fs::read_dir(folder) else {
        println!("skipped: no ../shared/data/normalized");
        return;
    };
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(Bpe::o200k()));
    let (sheet, window) = (sheet(), Tokens(32_000));
    let mut count = 0;
    for entry in entries {
        for recording in read(&entry.unwrap().path()).unwrap() {
            let run = |way| simulate_with(&counter, &recording, way, window, &sheet).unwrap();
            let bills = ways().map(run);
            let best = bills[6];
            for (at, (way, bill)) in ways().into_iter().zip(bills).enumerate() {
                let id = &recording.id;
                assert_eq!(bill.requests, best.requests, "{id} {way:?}");
                assert_eq!(bill.answers, best.answers, "{id} {way:?}");
                if at == count % bills.len() {
                    assert_eq!(bill, run(way), "{id} {way:?}: the same twice");
                }
            }
            if bills[0].plans == 0 && best.plans == 0 {
                assert_eq!(bills[0].money, best.money, "{}", recording.id);
            }
            count += 1;
        }
    }
    println!("{count} sessions");
    assert!(count > 0);
}

#[test]
fn a_view_without_plans_contains_everything() {
    let unlimited = Way::Plimsoll(PlimsollSettings {
        policy: ContextStrategy::Unlimited {},
        ..PlimsollSettings::default()
    });
    for session in steady_sessions() {
        let results = session.messages.iter();
        let results = results.filter(|message| matches!(***message, Message::ToolResult(_)));
        let lengths: Vec<usize> = results.map(|result| result.text().len()).collect();
        assert_eq!(lengths.len(), STEADY_TURNS);
        let is_full = |length: &usize| (STEADY_RESULT - 150..=STEADY_RESULT).contains(length);
        assert!(lengths.iter().all(is_full), "{lengths:?}");
        let bill = simulate(&session, unlimited, Tokens(32_000), &sheet()).unwrap();
        let all = |of| Share { found: of, of };
        assert_eq!(bill.retention.last_facts, all(STEADY_TURNS as u64));
        let prompts = STEADY_PROMPTS as u64;
        assert_eq!(bill.retention.last_user_messages, all(prompts));
        assert_eq!(bill.retention.facts.fraction(), 1.0);
        assert_eq!(bill.prefix_breaks, 0);
    }
}

#[test]
fn what_leaves_the_view_is_not_counted_as_kept() {
    let session = steady_sessions().remove(0);
    let evict = Way::Plimsoll(PlimsollSettings {
        policy: ContextStrategy::Evict { max_tokens: None },
        ..PlimsollSettings::default()
    });
    for way in [evict, Way::SlidingWindow { size: Ppm::ONE }] {
        let bill = simulate(&session, way, Tokens(32_000), &sheet()).unwrap();
        let facts = bill.retention.last_facts;
        assert_eq!(facts.of, STEADY_TURNS as u64);
        assert!(
            (1..STEADY_TURNS as u64 / 2).contains(&facts.found),
            "{facts:?}"
        );
        assert!(bill.prefix_breaks >= bill.plans, "{bill:?}");
        assert!(bill.largest <= Tokens(28_000), "{bill:?}");
    }
}

/// The second answer comes 10 minutes after the first: longer than one cache lives, not the other.
#[test]
fn a_cache_expires_by_the_times_of_the_agents_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.jsonl");
    let line = |call: &str, time: &str| {
        format!(
            r#"{{"timestamp":"2026-02-28T23:{time}.5Z","message":{{"role":"assistant","content":[{{"type":"tool_use","id":"{call}"}}]}}}}"#
        )
    };
    let lines = [
        line("c0", "54:00"),
        "{\"timestamp\":\"never\",\"message\":{\"content\":\"text\"}}".to_owned(),
        line("c1", "55:00"),
        line("c2", "59:59").replace("02-28T23:59:59", "03-01T00:05:00"),
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let mut times = Times::default();
    times.read(&file).unwrap();
    let recording = Recording::parse(&session(3)).unwrap();
    assert!(!recording.is_timed());
    let timed = recording.clone().with_times(&times);
    assert!(timed.is_timed());
    let bill = |recording: &Recording, seconds| {
        let sheet = PriceSheet {
            cache_lives: Some(Duration::from_secs(seconds)),
            min_cacheable: None,
            ..sheet()
        };
        simulate(recording, Way::default(), Tokens(32_000), &sheet).unwrap()
    };
    assert_eq!(bill(&timed, 599).expired, 1);
    assert_eq!(bill(&timed, 601).expired, 0);
    assert_eq!(bill(&recording, 599).expired, 0);
    assert!(bill(&timed, 599).money > bill(&timed, 601).money);
}

/// Another library's default costs 1.23 million tokens on sessions of this kind and keeps 111 of 600
/// facts in view at the end.
#[test]
fn the_default_is_cheap_and_keeps_much_of_steady_sessions() {
    let dollars = |dollars: f64| Money::from_dollars(dollars).unwrap();
    let units = PriceSheet {
        min_cacheable: Some(Tokens(1_024)),
        ..PriceSheet::of(Rates {
            input: dollars(1.0),
            output: dollars(0.0),
            cache_read: Some(dollars(0.1)),
            cache_write: Some(dollars(1.25)),
        })
    };
    let bills = steady_sessions().into_iter().map(|session| {
        let bill = simulate(&session, Way::default(), Tokens(32_000), &units);
        bill.unwrap()
    });
    let bill = bills.fold(Bill::default(), Bill::combine);
    assert_eq!(bill.unfit, 0);
    let cost = bill.money.unwrap();
    assert!(cost < dollars(1.16), "{cost}");
    let kept = bill.retention;
    assert!(kept.last_facts.found > 240, "{kept:?}");
    assert!(kept.facts.fraction() > 0.7, "{kept:?}");
    assert_eq!(kept.user_messages.found, kept.user_messages.of, "{kept:?}");
}
