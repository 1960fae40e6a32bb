//! Setters that the set-ups of all stacks have.

/// The setters of [`Rules`](crate::Rules), for a type with a method `rules_mut`. They consume and
/// return it.
#[doc(hidden)]
#[macro_export]
macro_rules! rule_setters {
    () => {
        /// Store of records. None by default: no records are kept.
        #[must_use]
        pub fn history(mut self, store: ::std::sync::Arc<dyn $crate::Store>) -> Self {
            self.rules_mut().store = Some(store);
            self
        }

        /// Conditions for the use of a record and of a fast start.
        #[must_use]
        pub fn gates(mut self, gates: $crate::Gates) -> Self {
            self.rules_mut().gates = gates;
            self
        }

        /// Share of the connections that run the scheme. A clone of the `Arc` changes it at run
        /// time.
        #[must_use]
        pub fn rollout(mut self, rollout: ::std::sync::Arc<$crate::Rollout>) -> Self {
            self.rules_mut().rollout = rollout;
            self
        }

        /// Watches the arms, and stops the rollout that it was made for. None by default.
        #[must_use]
        pub fn guard(mut self, guard: ::std::sync::Arc<$crate::Guard>) -> Self {
            self.rules_mut().guard = Some(guard);
            self
        }

        /// The base controller for congestion avoidance. CUBIC by default.
        #[must_use]
        pub fn base_controller(mut self, base: $crate::BaseKind) -> Self {
            self.rules_mut().base = base;
            self
        }

        /// Caps on hints and records; `Policy` has the defaults.
        #[must_use]
        pub fn limits(mut self, policy: $crate::Policy) -> Self {
            self.rules_mut().limits = $crate::Limits::new(policy);
            self
        }

        /// Cap in bytes on a first flight that is limited by nothing but the flow's size
        /// (JumpStart, Halfback). 141 kB by default, the receive window of Halfback §4.1.
        #[must_use]
        pub fn flight_limit(mut self, bytes: u64) -> Self {
            self.rules_mut().flight_limit = $crate::Bytes::new(bytes);
            self
        }

        /// Counters of connections. Several endpoints may share one.
        #[must_use]
        pub fn metrics(mut self, metrics: ::std::sync::Arc<$crate::Metrics>) -> Self {
            self.rules_mut().metrics = metrics;
            self
        }
    };
}

/// The methods of a server's set-up with the fields `rules` and `draws`, whose schemes are of the
/// type `Choice`.
#[doc(hidden)]
#[macro_export]
macro_rules! setup_methods {
    () => {
        fn rules_mut(&mut self) -> &mut $crate::Rules {
            ::std::sync::Arc::make_mut(&mut self.rules)
        }

        $crate::rule_setters!();

        /// A scheme in place of the one that was named, such as one of the caller's own.
        #[must_use]
        pub fn scheme(mut self, choice: Choice) -> Self {
            self.rules_mut().choice = choice.choice();
            self
        }

        /// The control arm's scheme. Slow start from ten packets by default.
        #[must_use]
        pub fn control(mut self, choice: Choice) -> Self {
            self.rules_mut().control = choice.choice();
            self
        }

        /// Draws the arms from a seed instead of a secret: for repeatable runs.
        #[must_use]
        pub fn seed(mut self, seed: u64) -> Self {
            self.draws = ::std::sync::Arc::new($crate::Draws::of_seed(seed));
            self
        }

        /// The counters.
        #[must_use]
        pub fn counted(&self) -> &::std::sync::Arc<$crate::Metrics> {
            &self.rules.metrics
        }

        /// The input that the scheme cannot do without.
        #[must_use]
        pub fn needs(&self) -> $crate::Needs {
            self.rules.choice.needs
        }
    };
}
