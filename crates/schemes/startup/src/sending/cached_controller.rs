//! The controller with its allowance cached: a transport reads it several times per packet.

use core::ops::Deref;

use crate::{Allowance, Controller};

/// A controller, and its allowance since its last event.
#[derive(Clone, Copy, Debug)]
pub struct CachedController {
    controller: Controller,
    allowance: Allowance,
    needs_sent_events: bool,
}

impl CachedController {
    /// A controller before an event, or one taken from another place.
    #[must_use]
    pub fn new(controller: Controller) -> Self {
        Self {
            allowance: controller.allowance(),
            needs_sent_events: controller.needs_sent_events(),
            controller,
        }
    }

    /// Passes it an event: the only way to change it.
    pub fn update<T>(&mut self, what: impl FnOnce(&mut Controller) -> T) -> T {
        let result = what(&mut self.controller);
        self.allowance = self.controller.allowance();
        self.needs_sent_events = self.controller.needs_sent_events();
        result
    }

    /// As [`Controller::allowance`], computed once.
    #[must_use]
    pub const fn allowance(&self) -> Allowance {
        self.allowance
    }

    /// As [`Controller::needs_sent_events`], computed once.
    #[must_use]
    pub const fn needs_sent_events(&self) -> bool {
        self.needs_sent_events
    }
}

impl Deref for CachedController {
    type Target = Controller;

    fn deref(&self) -> &Controller {
        &self.controller
    }
}
