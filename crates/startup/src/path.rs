//! Measurement of the path, shared by all schemes.

pub mod rate;
pub mod round;
pub mod rtt;
pub mod trend;
pub mod windowed;

pub use rate::{RateEstimator, RateSample, SendStamp};
pub use round::Round;
pub use rtt::Rtt;
pub use trend::Trend;
pub use windowed::WindowedMax;
