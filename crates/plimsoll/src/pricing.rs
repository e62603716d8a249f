//! Prices of models per million tokens, and the cost of usage.
//!
//! ```
//! use plimsoll::pricing::Rates;
//! use plimsoll::{Money, Usage};
//!
//! let rates = Rates {
//!     input: Money::from_dollars(2.50).unwrap(),
//!     output: Money::from_dollars(10.00).unwrap(),
//!     ..Rates::FREE
//! };
//! let usage = Usage {
//!     input: plimsoll::Tokens(1_000),
//!     output: plimsoll::Tokens(100),
//!     ..Usage::default()
//! };
//! assert_eq!(usage.estimated_cost(&rates), Some(Money::from_dollars(0.0035).unwrap()));
//! ```

pub use plimsoll_agent::{Cost, Spend};
pub use plimsoll_context::{InvalidMoney, LongPrompt, LongerCache, PriceSheet, Rates};
