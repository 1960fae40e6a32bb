//! The controller with its allowance cached: the stack reads it several times per packet.

use std::ops::Deref;

use headstart_startup::{Allowance, Controller};

/// A controller, and its allowance since its last event.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedController {
    controller: Controller,
    allowance: Allowance,
    watches_sending: bool,
}

impl CachedController {
    pub fn new(controller: Controller) -> Self {
        Self { allowance: controller.allowance(), watches_sending: controller.watches_sending(), controller }
    }

    /// Passes it an event: the only way to change it.
    pub fn update<T>(&mut self, what: impl FnOnce(&mut Controller) -> T) -> T {
        let result = what(&mut self.controller);
        self.allowance = self.controller.allowance();
        self.watches_sending = self.controller.watches_sending();
        result
    }

    /// As [`Controller::allowance`], computed once.
    pub const fn allowance(&self) -> Allowance {
        self.allowance
    }

    /// As [`Controller::watches_sending`], computed once.
    pub const fn watches_sending(&self) -> bool {
        self.watches_sending
    }
}

impl Deref for CachedController {
    type Target = Controller;

    fn deref(&self) -> &Controller {
        &self.controller
    }
}
