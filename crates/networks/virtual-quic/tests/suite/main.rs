//! One program: each integration test by itself would compile the code under it again.

mod amplification;
mod answers;
mod assumptions;
mod early;
mod first_flight;
mod hostile;
mod how_good;
mod marks;
mod simulation;
