//! Schemes by name, as far as s2n-quic can carry them.

/// s2n-quic, which carries whatever a congestion controller can do.
#[derive(Clone, Copy, Debug)]
pub struct S2nQuic;

/// A scheme that s2n-quic carries.
pub type Choice = headstart_adapter::ChoiceOn<S2nQuic>;

impl headstart_adapter::Stack for S2nQuic {
    const NAME: &'static str = "s2n-quic";
}
