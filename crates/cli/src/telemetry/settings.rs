//! [`Settings`]: the destinations of spans and the log, from environment variables. The exporter
//! itself reads OpenTelemetry's other variables.

use std::time::Duration;

/// The environment variable that turns on the log.
const LOG_VARIABLE: &str = "PLIMSOLL_LOG";
/// The default of `OTEL_EXPORTER_OTLP_TIMEOUT`: the timeout of one export. The value is the default
/// of OpenTelemetry's specification.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// The destinations of spans and the log.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// The full address for spans, such as `http://localhost:4318/v1/traces`. `None` sends none.
    pub(super) traces: Option<String>,
    /// The protocol. Default: `http/protobuf`.
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
        let traces = find("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(|| {
            let base = find("OTEL_EXPORTER_OTLP_ENDPOINT")?;
            Some(format!("{}/v1/traces", base.trim_end_matches('/')))
        });
        let off = is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none");
        let timeout = find("OTEL_EXPORTER_OTLP_TIMEOUT").and_then(|ms| ms.parse().ok());
        Self {
            traces: traces.filter(|_| !off),
            protocol: find("OTEL_EXPORTER_OTLP_PROTOCOL"),
            timeout: timeout.map_or(EXPORT_TIMEOUT, Duration::from_millis),
            log: find(LOG_VARIABLE),
        }
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
    fn variables_give_the_address_of_spans() {
        const BASE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
        const TRACES: (&str, &str) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1/x");
        for (variables, expected) in [
            (vec![], None),
            (vec![("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], None),
            (vec![BASE], Some("http://c:4318/v1/traces")),
            (vec![TRACES], Some("http://t:1/x")),
            (vec![BASE, TRACES], Some("http://t:1/x")),
            (vec![BASE, ("OTEL_TRACES_EXPORTER", "None")], None),
            (vec![BASE, TRACES, ("OTEL_SDK_DISABLED", "TRUE")], None),
        ] {
            let read = read(&variables);
            assert_eq!(read.traces.as_deref(), expected, "{variables:?}");
        }
        let read = read(&[
            ("PLIMSOLL_LOG", "debug"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
        ]);
        assert_eq!(
            (read.log.as_deref(), read.timeout.as_millis()),
            (Some("debug"), 250)
        );
    }
}
