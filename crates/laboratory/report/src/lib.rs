//! Tables, figures, pages and result files. Nothing here knows what was measured.
//!
//! | module | holds |
//! |---|---|
//! | [`statistics`] | means, quantiles, confidence intervals |
//! | [`table`] | one table, three outputs: terminal, HTML, CSV |
//! | [`figure`] | figures as SVG |
//! | [`page`] | a report as one HTML file |
//! | [`jobs`] | results of finished jobs, so that an interrupted run goes on |
//! | [`markup`] | the escaping that figures and pages share |
//! | [`output`] | result files, each whole or not there |
//! | [`rows`] | files of many rows, written as they come: CSV or Parquet |

pub mod errors;
pub mod figure;
pub mod jobs;
pub mod markup;
pub mod output;
pub mod page;
pub mod rows;
pub mod statistics;
pub mod table;
