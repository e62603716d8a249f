//! Layer 1 of Plimsoll: messages, token counting, transcript, budget, plans and stages.
//!
//! Contains only values and pure functions: no files, clocks, threads, sockets, random sources or
//! async code.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod bpe;
mod budget;
mod cache;
mod calibration;
mod compat;
mod counter;
mod display;
mod draft;
mod estimate;
mod exchange;
mod fingerprint;
mod handover;
mod hosted_tool;
mod item;
mod memory;
mod message;
mod nearest;
mod plan;
mod plan_price;
mod policy;
mod price;
mod prominent_names;
mod removal_marker;
mod reply;
mod setting_fault;
mod stages;
mod strategy;
mod tokens;
mod tool_spec;
mod transcript;
mod truncate;
mod usage;

pub use bpe::Bpe;
pub use budget::{
    Budget, COLD_TARGET, CannotFit, FALLBACK_WINDOW, LEAST_TARGET, LEAST_TARGET_SHARE, MAX_RESULT,
    OUTPUT_RESERVE, RESULT_SHARE, TARGET, TARGET_OF_EXPLICIT, TRIGGER, Threshold, ViewLimits,
    WORKING_TARGET, WORKING_TRIGGER,
};
pub use cache::{
    Breakpoint, CacheConfig, CachePlan, CacheRetention, CacheRules, CacheStrategy, CacheView,
    LOOK_BACK, MAX_BREAKPOINTS, USUAL_MINIMUM, breakpoints,
};
pub use calibration::Calibration;
pub use compat::{CompactionConfig, CompactionScope, ContextConfig, Counts, OwnStages, Thresholds};
pub use counter::{
    CALL_OVERHEAD, Chars4, IMAGE_DEFAULT, MEMO_ENTRIES, MEMO_MIN_LEN, MESSAGE_OVERHEAD, Memo,
    SUMMARY_FRAME, TOOL_OVERHEAD, TokenCounter,
};
pub use display::counted;
pub use draft::Draft;
pub use estimate::Estimate;
pub use exchange::{Exchange, ExchangeKind};
pub use fingerprint::Fingerprint;
pub use handover::{
    TextAuthor, authored, each_name, extract, split_model_text, typed_words, with_model_text,
    without_frames,
};
pub use hosted_tool::HostedTool;
pub use item::{Form, Item, Pin, Seq};
pub use message::{
    CallId, File, Image, Message, MessageList, Opaque, Part, Source, Thinking, ToolCall, ToolResult,
};
pub use nearest::{nearest, snake_case};
pub use plan::{
    Edit, Plan, PlanContext, PlanError, ReadySummary, Recall, Rendition, SeqRange, SummaryRange,
    Trigger,
};
pub use plan_price::{Price, PriceFacts, Reason};
pub use policy::{Policy, Proposal, Stage};
pub use price::{InvalidMoney, LongPrompt, LongerCache, Money, PriceSheet, Rates};
pub use removal_marker::Gap;
pub use reply::{Delta, Reply, StopReason};
pub use setting_fault::SettingFault;
pub use stages::{
    ARGUMENT_CHARS, ArgumentDigest, Author, Cap, EXTRACT_SHARE, Evict, Fill, Fit, HistoryLimit,
    LEAST_ARGUMENT_CHARS, LEAST_SUMMARY, LINE_BYTES, Lines, MAX_SUMMARY, Prune, SUMMARY_SHARE,
    Section, Sections, SessionPruneConfig, Summarize, SummaryConfig,
};
pub use strategy::ContextStrategy;
pub use tokens::{Bytes, Ppm, Tokens};
pub use tool_spec::ToolSpec;
pub use transcript::{RemovedMessages, Transcript};
pub use truncate::{MIN_SIDE, Marker, NOTE_MAX, clip, head_tail, shorten, shorten_bytes};
pub use usage::{MAX_USAGE, Usage};
