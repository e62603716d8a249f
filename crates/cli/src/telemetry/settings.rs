//! [`Settings`]: the destinations of spans, metrics and the log, from environment variables. The
//! exporter itself reads OpenTelemetry's other variables.

use std::time::Duration;

/// The environment variable that turns on the log.
const LOG_VARIABLE: &str = "PLIMSOLL_LOG";
/// The default of `OTEL_EXPORTER_OTLP_TIMEOUT`: the timeout of one export. The value is the default
/// of OpenTelemetry's specification.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// The destinations of spans, metrics and the log.
#[derive(Debug, Clone)]
#[cfg_attr(
    not(feature = "otlp"),
    allow(dead_code, reason = "only exporters read all of it")
)]
pub(super) struct Settings {
    /// The full address for spans, such as `http://localhost:4318/v1/traces`. `None` sends none.
    pub(super) traces: Option<String>,
    /// The full address for metrics. `None` sends none.
    pub(super) metrics: Option<String>,
    /// The protocol of both. Default: `http/protobuf`.
    pub(super) protocol: Option<String>,
    /// The timeout of one export.
    pub(super) timeout: Duration,
    /// The filter of the log: a level, or targets with levels. `None` turns the log off.
    pub(super) log: Option<String>,
}

impl Settings {
    /// Reads the settings from the environment.
    pub(super) fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Reads the settings with a custom lookup of variables. An empty variable counts as unset.
    pub(super) fn from_variables(look_up: impl Fn(&str) -> Option<String>) -> Self {
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

    /// Checks whether spans or metrics are to be sent.
    pub(super) fn exports(&self) -> bool {
        self.traces.is_some() || self.metrics.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Settings {
        Settings::from_variables(|name| {
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
        assert!(!read.exports());
    }
}
