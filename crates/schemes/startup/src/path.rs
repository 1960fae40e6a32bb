//! Measurement of the path, shared by all schemes.

pub mod bdp;
pub mod floor;
pub mod rate;
pub mod round;
pub mod rtt;
pub mod sending;
pub mod train;
pub mod trend;
pub mod windowed;

pub use bdp::{LARGEST_WINDOW, bdp};
pub use floor::Floor;
pub use rate::{RateEstimator, RateSample, SendStamp};
pub use round::Round;
pub use rtt::Rtt;
pub use sending::SendRate;
pub use train::{Arrival, FlightTrain, PacketTrain};
pub use trend::Trend;
pub use windowed::WindowedMax;
