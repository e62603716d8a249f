//! The library as a program uses it: its names, the effects of every key of a configuration, the
//! pages for users of other systems, and telemetry.

#[cfg(feature = "config")]
mod coming_from;
mod display;
#[cfg(feature = "config")]
mod effects;
mod root;
mod telemetry;
