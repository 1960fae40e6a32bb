//! Every flow of a comparison as a row of one file (`--flows`).
//!
//! Each run writes its rows to a part during the run ([`headstart_study::flow_rows`]). Parts are
//! joined in the order of the runs. The first columns are constant in a run: number, seed and
//! conditions. In memory, for other languages, the conditions are left out: one race has them once.

use std::path::PathBuf;

use anyhow::Result;
use headstart_report::jobs::JobStore;
use headstart_report::rows::{Column, Kind, RowFile, RowWriter, TypedRows};

use crate::conditions::conditions;
use headstart_study::flow_rows::{self, PartFolder};
use headstart_study::runner::{Job, JobResult, keys};
use headstart_study::setup::Setup;

/// Columns that identify a run, before the conditions.
pub const RUN_COLUMNS: [(&str, Kind); 3] =
    [("run", Kind::Text), ("run_scheme", Kind::Text), ("seed", Kind::Count)];

/// The file of flows, while it is written.
#[derive(Debug)]
pub struct Flows {
    to: To,
    parts: PartFolder,
}

#[derive(Debug)]
enum To {
    File(RowWriter),
    Memory(TypedRows),
}

fn columns(of_setup: Vec<Column>) -> Vec<Column> {
    let of_run = RUN_COLUMNS.map(|(name, kind)| Column::new(name, kind));
    let of_flow = flow_rows::COLUMNS.map(|(name, kind)| Column::new(name, kind));
    of_run.into_iter().chain(of_setup).chain(of_flow).collect()
}

impl Flows {
    /// Begins the file, if requested. Conditions have the same columns for every setup.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn open(file: Option<&RowFile>, setup: &Setup, store: &JobStore) -> Result<Option<Self>> {
        let Some(file) = file else { return Ok(None) };
        let of_setup = conditions(setup).into_iter().map(|one| Column::new(one.name, one.value.kind()));
        let to = To::File(file.create(columns(of_setup.collect()))?);
        Ok(Some(Self { to, parts: PartFolder::open(store.folder())? }))
    }

    /// Flows of a race that are kept in memory, without its conditions.
    ///
    /// # Errors
    /// If parts cannot be written into the store's folder.
    pub fn in_memory(store: &JobStore) -> Result<Self> {
        let to = To::Memory(TypedRows::new(columns(vec![])));
        Ok(Self { to, parts: PartFolder::open(store.folder())? })
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
            let part = self.parts.file(&key);
            match &mut self.to {
                To::File(writer) => {
                    constants.extend(conditions.iter().cloned());
                    writer.append(&constants, &part)?;
                }
                To::Memory(rows) => rows.append(&constants, &part)?,
            }
        }
        Ok(())
    }

    /// Puts the file in its place, and returns its number of rows; `None` where there is no file.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn finish(self) -> Result<Option<(PathBuf, u64)>> {
        let Self { to, parts } = self;
        let To::File(writer) = to else { return Ok(None) };
        let rows = writer.rows();
        let path = writer.finish()?;
        parts.remove()?;
        Ok(Some((path, rows)))
    }

    /// The rows that are kept in memory.
    #[must_use]
    pub fn into_rows(self) -> Option<TypedRows> {
        if let To::Memory(rows) = self.to { Some(rows) } else { None }
    }
}
