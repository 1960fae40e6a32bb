//! Every flow of a comparison as a row of one file (`--flows`).
//!
//! Each run writes its rows to a part during the run ([`crate::flow_rows`]). Parts are joined in
//! the order of the runs. The first columns are constant in a run: number, seed and conditions.

use std::path::PathBuf;

use anyhow::Result;
use headstart_report::jobs::JobStore;
use headstart_report::rows::{Column, Kind, RowFile, RowWriter};

use crate::conditions::conditions;
use crate::flow_rows::{self, PartFolder};
use crate::runner::{Job, JobResult, keys};
use crate::setup::Setup;

/// Columns that identify a run, before the conditions.
pub const RUN_COLUMNS: [(&str, Kind); 3] =
    [("run", Kind::Text), ("run_scheme", Kind::Text), ("seed", Kind::Count)];

/// The file of flows, while it is written.
#[derive(Debug)]
pub struct Flows {
    writer: RowWriter,
    parts: PartFolder,
}

impl Flows {
    /// Begins the file, if requested. Conditions have the same columns for every setup.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn open(file: Option<&RowFile>, setup: &Setup, store: &JobStore) -> Result<Option<Self>> {
        let Some(file) = file else { return Ok(None) };
        let of_run = RUN_COLUMNS.map(|(name, kind)| Column::new(name, kind));
        let of_setup = conditions(setup).into_iter().map(|one| Column::new(one.name, one.value.kind()));
        let of_flow = flow_rows::COLUMNS.map(|(name, kind)| Column::new(name, kind));
        let writer = file.create(of_run.into_iter().chain(of_setup).chain(of_flow).collect())?;
        Ok(Some(Self { writer, parts: PartFolder::open(store.folder())? }))
    }

    /// Parts that runs write.
    #[must_use]
    pub const fn parts(&self) -> &PartFolder {
        &self.parts
    }

    /// Adds the flows of a race's runs, of which the first `references` are those with the
    /// reference only. Those of a run for which the machine was too busy are left out.
    ///
    /// # Errors
    /// If a part cannot be read, or the disk is full.
    pub fn append(
        &mut self,
        setup: &Setup,
        jobs: &[Job],
        results: &[JobResult],
        references: usize,
    ) -> Result<()> {
        let conditions: Vec<String> = conditions(setup).iter().map(|one| one.value.to_string()).collect();
        for (number, (job, key)) in jobs.iter().zip(keys(setup, jobs)).enumerate() {
            if results[number].invalid.is_some() {
                continue;
            }
            let run = match job.mix.beside {
                _ if number < references => "reference",
                None => "alone",
                Some(_) => "mixed",
            };
            let mut constants = vec![run.to_owned(), job.mix.tested.name.to_string(), job.seed.to_string()];
            constants.extend(conditions.iter().cloned());
            self.writer.append(&constants, &self.parts.file(&key))?;
        }
        Ok(())
    }

    /// Puts the file in its place, and returns its number of rows.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn finish(self) -> Result<(PathBuf, u64)> {
        let Self { writer, parts } = self;
        let rows = writer.rows();
        let path = writer.finish()?;
        parts.remove()?;
        Ok((path, rows))
    }
}
