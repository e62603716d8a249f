//! [`Settings`]: where spans, metrics and the log go, as environment variables say. The exporter reads
//! the rest of OpenTelemetry's variables itself.

use std::time::Duration;

/// Where a person asks for the log.
pub const LOG_VARIABLE: &str = "PLIMSOLL_LOG";
/// How long one export may take where `OTEL_EXPORTER_OTLP_TIMEOUT` says nothing else; the
/// specification's own.
pub const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where spans, metrics and the log go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What the process is called where `OTEL_SERVICE_NAME` says nothing else.
    pub service: String,
    /// Where spans go: the whole address, as `http://localhost:4318/v1/traces`.
    pub traces: Option<String>,
    /// Where metrics go, likewise.
    pub metrics: Option<String>,
    /// How one talks to both.
    pub protocol: Option<String>,
    /// How long one export may take.
    pub timeout: Duration,
    /// Which events go to stderr: a level, or targets with levels.
    pub log: Option<String>,
}

impl Settings {
    /// As the environment says.
    #[must_use]
    pub fn from_environment(service: impl Into<String>) -> Self {
        Self::from_variables(service, |name| std::env::var(name).ok())
    }

    /// As variables say that are looked up elsewhere. One that is empty counts as not set.
    #[must_use]
    pub fn from_variables(
        service: impl Into<String>,
        look_up: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let find = |name: &str| {
            let value = look_up(name)?;
            let value = value.trim();
            (!value.is_empty()).then(|| value.to_owned())
        };
        let is = |name: &str, wanted: &str| {
            find(name).is_some_and(|value| value.eq_ignore_ascii_case(wanted))
        };
        let disabled = is("OTEL_SDK_DISABLED", "true");
        let signal = |own: &str, exporter: &str, path: &str| {
            if disabled || is(exporter, "none") {
                return None;
            }
            let whole = find("OTEL_EXPORTER_OTLP_ENDPOINT");
            let whole = whole.map(|base| format!("{}/{path}", base.trim_end_matches('/')));
            find(own).or(whole)
        };
        let timeout = find("OTEL_EXPORTER_OTLP_TIMEOUT").and_then(|ms| ms.parse().ok());
        Self {
            service: service.into(),
            traces: signal(
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "OTEL_TRACES_EXPORTER",
                "v1/traces",
            ),
            metrics: signal(
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
                "OTEL_METRICS_EXPORTER",
                "v1/metrics",
            ),
            protocol: find("OTEL_EXPORTER_OTLP_PROTOCOL"),
            timeout: timeout.map_or(EXPORT_TIMEOUT, Duration::from_millis),
            log: find(LOG_VARIABLE),
        }
    }

    /// Whether spans or metrics are to be sent.
    #[must_use]
    pub fn export(&self) -> bool {
        self.traces.is_some() || self.metrics.is_some()
    }

    /// Whether there is anything to set up.
    #[must_use]
    pub fn ask_for_something(&self) -> bool {
        self.export() || self.log.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Settings {
        Settings::from_variables("test", |name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn variables_say_what_goes_where() {
        const BASE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
        const TRACES: (&str, &str) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1/x");
        let (whole, metrics) = ("http://c:4318/v1/traces", "http://c:4318/v1/metrics");
        for (variables, expected) in [
            (vec![], (None, None)),
            (vec![("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], (None, None)),
            (vec![BASE], (Some(whole), Some(metrics))),
            (vec![TRACES], (Some("http://t:1/x"), None)),
            (vec![BASE, TRACES], (Some("http://t:1/x"), Some(metrics))),
            (
                vec![BASE, ("OTEL_TRACES_EXPORTER", "none")],
                (None, Some(metrics)),
            ),
            (
                vec![BASE, ("OTEL_METRICS_EXPORTER", "None")],
                (Some(whole), None),
            ),
            (
                vec![BASE, TRACES, ("OTEL_SDK_DISABLED", "TRUE")],
                (None, None),
            ),
        ] {
            let read = read(&variables);
            assert_eq!(
                (read.traces.as_deref(), read.metrics.as_deref()),
                expected,
                "{variables:?}"
            );
        }
        let read = read(&[
            ("PLIMSOLL_LOG", "debug"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
        ]);
        assert_eq!(
            (read.log.as_deref(), read.timeout.as_millis()),
            (Some("debug"), 250)
        );
        assert!(read.ask_for_something() && !read.export());
    }
}
