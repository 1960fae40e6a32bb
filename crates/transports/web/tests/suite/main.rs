//! One program: each integration test by itself would compile the code under it again.

mod addresses;
mod admissions;
mod answers;
mod calls;
mod common;
mod hostile;
mod hostile_tcp;
mod identities;
mod limits;
mod logs;
mod pages;
mod proxy;
mod starts;
mod tcp;
mod upstreams;
