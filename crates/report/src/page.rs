//! Write a report as one HTML file that needs nothing else: no network, no font, no script.
//!
//! It reads on a phone, prints, and follows the reader's choice of light or dark. All text is escaped; the
//! only markup taken as it is comes from [`crate::figure`] and [`crate::table`], whose types vouch for it. A
//! content security policy in the file forbids loading anything, should one of these ever be wrong.

use std::fmt::Write as _;

use crate::figure::Svg;
use crate::markup::escape;
use crate::table::Table;

/// A report: what was asked, what came out, and how to get it again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The head of the page.
    pub title: String,
    /// The answer in one paragraph, before anything else.
    pub lead: String,
    /// The body.
    pub sections: Vec<Section>,
    /// How the numbers came about; the foot of the page.
    pub provenance: Provenance,
}

/// A part of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Section {
    /// The name of what follows. On the top level it also gets a link at the head of the page.
    Heading(String),
    /// Paragraphs, parted by blank lines.
    Text(String),
    /// Words and their meaning ("what the numbers mean").
    Definitions(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// A figure.
    Figure {
        /// The drawing.
        svg: Svg,
        /// What it shows, and what the reader should notice.
        caption: String,
    },
    /// A part that is closed until asked for, e.g. one for each scheme.
    Details {
        /// What can be read while it is closed.
        summary: String,
        /// What is inside.
        sections: Vec<Section>,
    },
    /// Text as it is, in fixed width.
    Pre(String),
}

/// What someone needs to run it again and to know that it is the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Names and values: seeds, versions, fingerprint.
    pub facts: Vec<(String, String)>,
    /// The plan that was run, all defaults spelled out.
    pub plan: String,
}

impl Report {
    /// The whole file.
    #[must_use]
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let mut out = String::new();
        // Writing to a string cannot fail, here and below.
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
        );
        paragraphs(&mut out, &self.lead, " class=\"lead\"");
        self.contents(&mut out);
        out.push_str("</header>\n<main>\n");
        let mut heading = 0;
        for section in &self.sections {
            if let Section::Heading(text) = section {
                heading += 1;
                let _ = writeln!(out, "<h2 id=\"part-{heading}\">{}</h2>", escape(text));
            } else {
                write_section(&mut out, section, 3);
            }
        }
        out.push_str("</main>\n");
        self.provenance.write(&mut out);
        out.push_str("</body>\n</html>\n");
        out
    }

    /// Links to the parts, where there are enough of them to get lost.
    fn contents(&self, out: &mut String) {
        let headings: Vec<&String> = self
            .sections
            .iter()
            .filter_map(|section| if let Section::Heading(text) = section { Some(text) } else { None })
            .collect();
        if headings.len() < 3 {
            return;
        }
        out.push_str("<nav aria-label=\"Contents\">");
        for (index, text) in headings.iter().enumerate() {
            let _ = write!(out, "<a href=\"#part-{}\">{}</a> ", index + 1, escape(text));
        }
        out.push_str("</nav>\n");
    }
}

impl Provenance {
    fn write(&self, out: &mut String) {
        if self.facts.is_empty() && self.plan.is_empty() {
            return;
        }
        out.push_str("<footer>\n<h2>How to get these numbers again</h2>\n");
        definitions(out, &self.facts);
        if !self.plan.is_empty() {
            let _ = writeln!(
                out,
                "<details><summary>Plan</summary>\n<pre>{}</pre>\n</details>",
                escape(&self.plan)
            );
        }
        out.push_str("</footer>\n");
    }
}

/// The one style sheet.
const STYLE: &str = include_str!("page/style.css");

fn write_section(out: &mut String, section: &Section, level: usize) {
    match section {
        Section::Heading(text) => {
            let _ = writeln!(out, "<h{level}>{}</h{level}>", escape(text));
        }
        Section::Text(text) => paragraphs(out, text, ""),
        Section::Definitions(pairs) => definitions(out, pairs),
        Section::Table(table) => out.push_str(&table.html()),
        Section::Figure { svg, caption } => {
            let _ = write!(out, "<figure>\n{svg}");
            if !caption.is_empty() {
                let _ = writeln!(out, "<figcaption>{}</figcaption>", escape(caption));
            }
            out.push_str("</figure>\n");
        }
        Section::Details { summary, sections } => {
            let _ = writeln!(out, "<details><summary>{}</summary>", escape(summary));
            for section in sections {
                write_section(out, section, (level + 1).min(6));
            }
            out.push_str("</details>\n");
        }
        // The parser drops a line end right after the tag: ours, so that the text keeps its own.
        Section::Pre(text) => {
            let _ = writeln!(out, "<pre>\n{}</pre>", escape(text));
        }
    }
}

fn paragraphs(out: &mut String, text: &str, attributes: &str) {
    for paragraph in text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
        let _ = writeln!(out, "<p{attributes}>{}</p>", escape(paragraph));
    }
}

fn definitions(out: &mut String, pairs: &[(String, String)]) {
    if pairs.is_empty() {
        return;
    }
    out.push_str("<dl>\n");
    for (word, meaning) in pairs {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(word), escape(meaning));
    }
    out.push_str("</dl>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, Figure, Series, Style};
    use crate::table::{Cell, Column};

    fn report_of(text: &str) -> Report {
        let mut figure = Figure::new(text, Axis::linear(text, "s"), Axis::linear("y", ""));
        figure.series.push(Series::new(text, Style::line(), [(0.0, 1.0), (1.0, 2.0)]));
        let mut table = Table::new(text, [Column::text(text)]);
        table.row([Cell::text(text)]);
        let inner = vec![
            Section::Heading(text.into()),
            Section::Text(text.into()),
            Section::Definitions(vec![(text.into(), text.into())]),
            Section::Table(table),
            Section::Figure { svg: figure.svg(), caption: text.into() },
            Section::Pre(text.into()),
        ];
        let mut sections = inner.clone();
        sections.extend([Section::Heading("2".into()), Section::Heading("3".into())]);
        sections.push(Section::Details { summary: text.into(), sections: inner });
        let provenance = Provenance { facts: vec![(text.into(), text.into())], plan: text.into() };
        Report { title: text.into(), lead: text.into(), sections, provenance }
    }

    #[test]
    fn no_text_is_taken_for_markup() {
        let html = report_of("</pre></title><script>alert(1)</script>\"'&").html();
        assert!(!html.contains("<script"), "{html}");
        assert!(!html.contains("\"'&\""));
        assert_eq!(html.matches("</title>").count(), report_of("x").html().matches("</title>").count());
    }

    #[test]
    fn the_file_asks_for_nothing_outside_itself() {
        let html = report_of("plain").html();
        let without_namespace = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for reference in ["http:", "https:", "src=", "url(", "@import", "<link", "<script"] {
            assert!(!without_namespace.contains(reference), "{reference}");
        }
        assert!(html.contains("default-src 'none'"));
    }

    #[test]
    fn headings_are_linked_and_nested_ones_are_smaller() {
        let html = report_of("name").html();
        assert!(html.contains("<a href=\"#part-2\">2</a>") && html.contains("<h2 id=\"part-2\">2</h2>"));
        assert_eq!(html.matches("<h4>name</h4>").count(), 1);
    }

    #[test]
    fn the_same_report_gives_the_same_bytes() {
        assert_eq!(report_of("name").html(), report_of("name").html());
    }

    #[test]
    fn blank_lines_part_paragraphs() {
        let mut out = String::new();
        paragraphs(&mut out, "one\ntwo\n\n\n\nthree\n", "");
        assert_eq!(out, "<p>one\ntwo</p>\n<p>three</p>\n");
    }
}
