//! Misbehaving collectors: no run becomes slower or changes because of them, and the user is told
//! once.

use std::net::TcpListener;
use std::time::Duration;

use plimsoll::Agent;
use plimsoll::telemetry::{self, Settings, TelemetryError};
use plimsoll::testing::{ScriptedProvider, Turn};

use super::told;

fn settings(address: &str, timeout: Duration) -> Settings {
    let settings = Settings::from_variables("test", |name| {
        (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| address.to_owned())
    });
    Settings {
        timeout,
        ..settings
    }
}

async fn talk() {
    let agent = Agent::builder(ScriptedProvider::new([]).then_always(Turn::say("Land!")));
    let agent = agent.build().unwrap();
    for _ in 0..50 {
        assert_eq!(agent.run("What do you see?").await.unwrap().text, "Land!");
    }
}

#[test]
fn a_collector_that_is_not_there_is_told_of_once() {
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let settings = settings(&format!("http://{address}"), Duration::from_secs(10));
    let warning = told(&settings, talk).unwrap();
    assert!(warning.contains(&address.to_string()), "{warning}");
    assert!(warning.contains("the run is not affected"), "{warning}");
}

/// Longer than any end may last: what bounds it is the end's own bound.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for the end of runs whose collector takes a connection and never answers.
fn wait_in_vain(change: impl FnOnce(&mut Settings)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://user:pass-word@{}", listener.local_addr().unwrap());
    let mut settings = settings(&address, EXPORT_TIMEOUT);
    change(&mut settings);
    let began = std::time::Instant::now();
    let warning = told(&settings, talk).unwrap();
    let took = began.elapsed();
    let most = telemetry::FINISH_TIMEOUT + EXPORT_TIMEOUT / 2;
    assert!(took < most, "{took:?}");
    assert!(!warning.contains("pass-word"), "{warning}");
    assert!(warning.contains("no answer within 3 s"), "{warning}");
}

#[test]
fn a_collector_that_never_answers_is_waited_for_no_longer_than_it_may() {
    wait_in_vain(|_| {});
}

#[test]
fn spans_that_nobody_took_in_time_are_told_of_without_metrics_too() {
    wait_in_vain(|settings| settings.metrics = None);
}

#[test]
fn metrics_that_nobody_took_in_time_are_told_of_without_spans_too() {
    wait_in_vain(|settings| settings.traces = None);
}

// As programs do it that are async: what was begun must not break them where it ends.
#[tokio::test]
async fn settings_that_cannot_be_followed_are_told_and_nothing_is_set_up() {
    let long = Duration::from_secs(1);
    for address in ["localhost:4318", "ftp://x", "no address at all"] {
        let error = telemetry::dispatch(&settings(address, long)).unwrap_err();
        assert!(
            matches!(error, TelemetryError::Address { .. }),
            "{address}: {error}"
        );
        // One that is good does not make the other so.
        let half = Settings {
            traces: Some("http://localhost:4318/v1/traces".into()),
            ..settings(address, long)
        };
        let error = telemetry::dispatch(&half).unwrap_err();
        assert!(error.to_string().contains("metrics"), "{address}: {error}");
    }
    let grpc = Settings {
        protocol: Some("grpc".into()),
        ..settings("http://localhost:4317", long)
    };
    let error = telemetry::dispatch(&grpc).unwrap_err();
    assert!(error.to_string().contains("4318"), "{error}");
    let log = Settings {
        log: Some("plimsoll=loud".into()),
        ..settings("", long)
    };
    let error = telemetry::dispatch(&log).unwrap_err();
    assert!(matches!(error, TelemetryError::Filter { .. }), "{error}");
    let nothing = telemetry::start(&settings("", long)).unwrap();
    assert_eq!(nothing.finish(), None);
}
