//! Errors of a scenario that cannot run.

use headstart_quic::ChoiceError;
use headstart_quic::server::SetupError;

use crate::identity::IdentityError;

/// Errors of a scenario that cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The scheme is not available here.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The endpoint cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The numbers of schemes and groups differ.
    #[error("found {found} schemes, expected {expected}: one for each group")]
    SchemeCount {
        /// Number of schemes.
        found: usize,
        /// Number of groups.
        expected: usize,
    },
    /// The certificate could not be created.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}
