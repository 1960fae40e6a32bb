//! Macros that generate, from the one list of schemes ([`super`]), the modules, the enum, its
//! dispatch and the catalogue's rows.

/// The read-only methods of [`Startup`](super::Startup), forwarded to the scheme that
/// `$each!(self, scheme => call)` reaches.
macro_rules! forward_answers {
    ($each:ident) => {
        fn is_slow_start(&self) -> bool {
            $each!(self, scheme => scheme.is_slow_start())
        }

        fn phase(&self) -> &'static str {
            $each!(self, scheme => scheme.phase())
        }

        #[inline]
        fn needs_sent_events(&self) -> bool {
            $each!(self, scheme => scheme.needs_sent_events())
        }

        fn credit_revision(&self, has_ended: bool) -> Option<Revision> {
            $each!(self, scheme => scheme.credit_revision(has_ended))
        }

        fn record_update(&self, measured: Option<Record>) -> RecordUpdate {
            $each!(self, scheme => scheme.record_update(measured))
        }

        fn requirements(&self) -> Requirements {
            $each!(self, scheme => scheme.requirements())
        }

        fn request(&self, known: &RequestInputs) -> Option<Rate> {
            $each!(self, scheme => scheme.request(known))
        }
    };
}

/// A scheme's variant holds the scheme itself, or a decorator that holds it: the type of that, its
/// value, and from the value the scheme.
macro_rules! held {
    (type $scheme:ident) => { $scheme };
    (type $scheme:ident in $decorator:ident) => { $decorator<$scheme> };
    (new $scheme:expr) => { $scheme };
    (new $scheme:expr, in $decorator:ident) => { $decorator::new($scheme) };
    (scheme $held:expr) => { $held };
    (scheme $held:expr, in $decorator:ident) => { $held.scheme() };
}

/// `module::Type,` for each scheme, or `module::Type in Decorator,`. The module holds the type,
/// with `new(Params)` and `params()`, its [`Params`](crate::parameters) and `ABOUT`, its row of the
/// [catalogue](crate::catalogue). The decorator has `new(scheme)` and `scheme()`.
macro_rules! schemes {
    ($($module:ident :: $scheme:ident $(in $decorator:ident)?,)+) => {
        $(pub mod $module;)+
        $(pub use $module::$scheme;)+

        /// Every scheme, for dispatch without a vtable.
        #[derive(Clone, Copy, Debug)]
        pub enum Scheme {
            $(
                #[doc = concat!("[`", stringify!($module), "`].")]
                $scheme(held!(type $scheme $(in $decorator)?)),
            )+
            /// One of another language.
            Foreign(Foreign),
        }

        macro_rules! each {
            ($self:expr, $inner:ident => $call:expr) => {
                match $self {
                    $(Scheme::$scheme($inner) => $call,)+
                    Scheme::Foreign($inner) => $call,
                }
            };
        }

        /// The catalogue's row of each scheme.
        pub(crate) const FAMILIES: &[Family] = &[$(Family {
            about: &$module::ABOUT,
            describe: crate::parameters::describe::<$module::Params>,
            make: |settings| {
                let params = crate::parameters::read::<$module::Params>($module::ABOUT.name, settings)?;
                Ok(Scheme::$scheme(held!(new $scheme::new(params) $(, in $decorator)?)))
            },
        }),+];

        impl Scheme {
            /// The catalogue's row of the scheme, whatever its parameters are.
            #[must_use]
            pub fn about(&self) -> &'static About {
                match self {
                    $(Self::$scheme(_) => &$module::ABOUT,)+
                    Self::Foreign(scheme) => scheme.about(),
                }
            }

            /// Prints parameters other than defaults: `(additional=25%,burst=10)`, or nothing.
            ///
            /// # Errors
            /// If nothing more can be written.
            pub fn print_parameters(&self, out: &mut dyn fmt::Write) -> fmt::Result {
                match self {
                    $(Self::$scheme(held) => {
                        crate::parameters::print(&held!(scheme held $(, in $decorator)?).params, out)
                    })+
                    Self::Foreign(_) => Ok(()),
                }
            }
        }

        impl Startup for Scheme {
            fn establish(&mut self, prior: &Prior) -> FlightPlan {
                each!(self, scheme => scheme.establish(prior))
            }

            #[inline]
            fn on_sent(&mut self, sent: &Sent) {
                each!(self, scheme => scheme.on_sent(sent));
            }

            #[inline]
            fn on_ack(&mut self, ack: &Ack) -> Next {
                each!(self, scheme => scheme.on_ack(ack))
            }

            fn on_congestion(&mut self, signal: &Congestion) -> Next {
                each!(self, scheme => scheme.on_congestion(signal))
            }

            fn on_timeout(&mut self, timeout: &Timeout) -> Next {
                each!(self, scheme => scheme.on_timeout(timeout))
            }

            fn on_new_data(&mut self, prior: &Prior, so_far: &Progress) -> Option<FlightPlan> {
                each!(self, scheme => scheme.on_new_data(prior, so_far))
            }

            fn end(&mut self) {
                each!(self, scheme => scheme.end());
            }

            #[inline]
            fn allowance(&self) -> Allowance {
                each!(self, scheme => scheme.allowance())
            }

            forward_answers!(each);

            fn repair(&self) -> Repair {
                each!(self, scheme => scheme.repair())
            }

        }
    };
}
