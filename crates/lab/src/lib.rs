//! Which fast start is best on my path, and what does it cost everybody else?
//!
//! The laboratory around the simulator: it runs plans, adds up what happened, and shows it. This much is
//! about showing, and knows nothing of schemes: numbers come in as plain structs, text goes out.
//!
//! | module | holds |
//! |---|---|
//! | [`figure`] | SVG figures: lines, distributions, labelled scatters, time-sequence plots |
//! | [`table`] | one table, three outputs: terminal, HTML, CSV |
//! | [`report`] | one self-contained HTML file of text, tables and figures |
//! | [`markup`] | escaping, shared by everything that writes markup |
//!
//! The same values give the same bytes, on any machine.

pub mod figure;
pub mod markup;
pub mod report;
pub mod table;
