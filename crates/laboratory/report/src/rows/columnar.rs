//! Rows as Parquet: one row group after the other, each column a chunk.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::{Column, Kind, Sink, check};

/// Rows of a row group: what is kept in memory.
const GROUP: usize = 65_536;

/// Writes rows as Parquet.
pub struct Columnar<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    kept: Vec<Values>,
    rows: usize,
}

/// The fields of a column that wait for their row group.
struct Values {
    name: String,
    /// 1 where there is a value, 0 where there is none.
    levels: Vec<i16>,
    values: ColumnValues,
}

enum ColumnValues {
    Text(Vec<ByteArray>),
    Count(Vec<i64>),
    Number(Vec<f64>),
}

impl<W: Write + Send> Columnar<W> {
    /// A file of these columns.
    pub fn new(file: W, columns: &[Column]) -> io::Result<Self> {
        let field = |column: &Column| {
            let (physical, logical) = match column.kind {
                Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                Kind::Count => (Physical::INT64, None),
                Kind::Number => (Physical::DOUBLE, None),
            };
            Type::primitive_type_builder(&column.name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical)
                .build()
                .map(Arc::new)
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>().map_err(other)?;
        let schema = Type::group_type_builder("row").with_fields(fields).build().map_err(other)?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer =
            SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(other)?;
        let kept = columns.iter().map(|column| Values {
            name: column.name.clone(),
            levels: vec![],
            values: match column.kind {
                Kind::Text => ColumnValues::Text(vec![]),
                Kind::Count => ColumnValues::Count(vec![]),
                Kind::Number => ColumnValues::Number(vec![]),
            },
        });
        Ok(Self { writer, kept: kept.collect(), rows: 0 })
    }

    /// Writes what waits as a row group.
    fn write_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group().map_err(other)?;
        for Values { levels, values, .. } in &mut self.kept {
            let Some(mut column) = group.next_column().map_err(other)? else {
                return Err(io::Error::other("fewer columns than the schema has"));
            };
            match (column.untyped(), values) {
                (ColumnWriter::ByteArrayColumnWriter(to), ColumnValues::Text(values)) => {
                    to.write_batch(values, Some(levels), None).map_err(other)?;
                    values.clear();
                }
                (ColumnWriter::Int64ColumnWriter(to), ColumnValues::Count(values)) => {
                    to.write_batch(values, Some(levels), None).map_err(other)?;
                    values.clear();
                }
                (ColumnWriter::DoubleColumnWriter(to), ColumnValues::Number(values)) => {
                    to.write_batch(values, Some(levels), None).map_err(other)?;
                    values.clear();
                }
                _ => return Err(io::Error::other("a column of another type than the schema has")),
            }
            levels.clear();
            column.close().map_err(other)?;
        }
        group.close().map_err(other)?;
        self.rows = 0;
        Ok(())
    }

    /// Adds a row with a field for each column.
    pub fn row<'a>(&mut self, fields: impl Iterator<Item = &'a str>) -> io::Result<()> {
        self.kept.iter_mut().zip(fields).try_for_each(|(values, field)| values.push(field))?;
        self.rows += 1;
        if self.rows == GROUP { self.write_group() } else { Ok(()) }
    }

    /// Completes the file.
    pub fn close(mut self) -> io::Result<W> {
        self.write_group()?;
        self.writer.into_inner().map_err(other)
    }
}

impl Values {
    fn push(&mut self, field: &str) -> io::Result<()> {
        self.levels.push(i16::from(!field.is_empty()));
        if field.is_empty() {
            return Ok(());
        }
        let expected =
            |what: &str| io::Error::other(format!("{}: found `{field}`, expected {what}", self.name));
        match &mut self.values {
            ColumnValues::Text(values) => values.push(ByteArray::from(field)),
            ColumnValues::Count(values) => {
                values.push(field.parse().map_err(|_| expected("a whole number"))?)
            }
            ColumnValues::Number(values) => values.push(field.parse().map_err(|_| expected("a number"))?),
        }
        Ok(())
    }
}

impl Sink for Columnar<File> {
    /// The schema has the names.
    fn header(&mut self, _: &[&str]) -> io::Result<()> {
        Ok(())
    }

    fn append(&mut self, constants: &[String], columns: usize, part: Box<dyn Read>) -> io::Result<u64> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(part);
        let (mut record, mut rows) = (csv::StringRecord::new(), 0);
        while reader.read_record(&mut record)? {
            check(constants.len() + record.len(), columns)?;
            self.row(constants.iter().map(String::as_str).chain(&record))?;
            rows += 1;
        }
        Ok(rows)
    }

    fn finish(self: Box<Self>) -> io::Result<File> {
        self.close()
    }
}

fn other(error: ParquetError) -> io::Error {
    io::Error::other(error)
}
