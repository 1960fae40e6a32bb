//! Write a report as one HTML file that needs nothing else: no network, no font.
//!
//! It reads on a phone, prints, and follows the reader's choice of light or dark. All text is
//! escaped; the only markup taken as it is comes from [`crate::figure`] and [`crate::table`], whose
//! types vouch for it. A content security policy in the file forbids loading anything, should one
//! of these ever be wrong, and every script but `page/script.js`, which it names by its hash. That
//! script sorts tables, greys what is not picked, reads values from figures and lays two flows over
//! one another. Without it all can be read, and only that is missing.

use std::fmt::Write as _;

use crate::figure::{Svg, style_sheet};
use crate::markup::escape;
use crate::table::Table;

/// A report: what was asked, what came out, and how to get it again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The head of the page.
    pub title: String,
    /// The answer in at most three lines, before anything else.
    pub answer: Vec<String>,
    /// A paragraph on what was asked and what came out.
    pub lead: String,
    /// The body.
    pub sections: Vec<Section>,
    /// Origin of the numbers; the foot of the page.
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
        /// Content of the figure, and its main finding.
        caption: String,
    },
    /// Pictures over time, a row for each subject.
    Film {
        /// Times of the columns.
        times: Vec<String>,
        /// Names of the rows and what they show, in order.
        rows: Vec<(String, Vec<Shot>)>,
    },
    /// Names that the reader can pick: the rest then goes grey in every figure and table, where a
    /// series or a row's first cell has the name. Nothing is seen of it without the script.
    Picks(Vec<String>),
    /// Drawings of two subjects over one another
    /// ([`Figure::overlay`](crate::figure::Figure::overlay)), each view in a drawing of its own.
    /// The reader can choose any two of those whose own drawings are in the page.
    Overlay {
        /// Names and notes of the two that are overlaid at first, e.g. when each was complete.
        subjects: [(String, String); 2],
        /// The views, each with its caption.
        views: Vec<(Svg, String)>,
    },
    /// A part that is closed until asked for, e.g. one for each scheme.
    Details {
        /// Text shown while it is closed.
        summary: String,
        /// Sections inside.
        sections: Vec<Section>,
    },
    /// Text as it is, in fixed width.
    Pre(String),
}

/// A picture of a film, over one or more columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shot {
    /// Columns in which it does not change.
    pub columns: usize,
    /// A JPEG in base64; `None` before the first.
    pub jpeg: Option<String>,
    /// Description of the picture for those who do not see it.
    pub says: String,
}

/// Data needed to run it again and to recognise the same result.
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
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             img-src data:; script-src 'sha256-{SCRIPT_HASH}'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n",
            style_sheet()
        );
        for line in &self.answer {
            let _ = writeln!(out, "<p class=\"answer\">{}</p>", escape(line));
        }
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
        let _ = write!(out, "<script>{SCRIPT}</script>\n</body>\n</html>\n");
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

/// The style sheet of reports, with the colours of series: for pages that show their figures.
#[must_use]
pub fn style() -> String {
    format!("{STYLE}{}", style_sheet())
}

/// The one style sheet; colours of series follow it.
const STYLE: &str = include_str!("page/style.css");

const SCRIPT: &str = include_str!("page/script.js");

/// The script's SHA-256 in base64: the page runs no other. A test says what it should be.
const SCRIPT_HASH: &str = "UXC3HhtkK8YIQLgGKkWDcxyvkTfq6j1u2DSsnGDIDA4=";

fn write_section(out: &mut String, section: &Section, level: usize) {
    match section {
        Section::Heading(text) => {
            let _ = writeln!(out, "<h{level}>{}</h{level}>", escape(text));
        }
        Section::Text(text) => paragraphs(out, text, ""),
        Section::Definitions(pairs) => definitions(out, pairs),
        Section::Table(table) => out.push_str(&table.html()),
        Section::Figure { svg, caption } => {
            write_figure(out, svg, caption);
        }
        Section::Film { times, rows } => film(out, times, rows),
        // One alone is nothing to pick from.
        Section::Picks(names) if names.len() < 2 => {}
        Section::Picks(names) => {
            let names = serde_json::to_string(names).unwrap_or_default();
            let _ = writeln!(out, "<div class=\"picks\" data-picks=\"{}\" hidden></div>", escape(&names));
        }
        Section::Overlay { subjects, views } => {
            out.push_str("<div class=\"overlay\">\n<p>");
            for (side, (name, note)) in subjects.iter().enumerate() {
                let _ = write!(
                    out,
                    "<span class=\"side\" data-side=\"{side}\"><i class=\"k{side}\"></i><b>{}</b> <output>{}</output></span> ",
                    escape(name),
                    escape(note)
                );
            }
            out.push_str("</p>\n");
            for (svg, caption) in views {
                write_figure(out, svg, caption);
            }
            out.push_str("</div>\n");
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

fn write_figure(out: &mut String, svg: &Svg, caption: &str) {
    out.push_str("<figure>\n");
    let (shown, all) = svg.series();
    if shown < all {
        let _ = writeln!(
            out,
            "<label class=\"all\"><input type=\"checkbox\"> show all {all}, not only these {shown}</label>"
        );
    }
    out.push_str(&svg.inline());
    if !caption.is_empty() {
        let _ = writeln!(out, "<figcaption>{}</figcaption>", escape(caption));
    }
    out.push_str("</figure>\n");
}

fn film(out: &mut String, times: &[String], rows: &[(String, Vec<Shot>)]) {
    // Without a head, so that no script sorts it. On a narrow screen time goes down, and a cell's
    // height is its share of all columns.
    let _ =
        writeln!(out, "<div class=\"wide film\" tabindex=\"0\"><table style=\"--columns:{}\">", times.len());
    out.push_str("<tbody><tr><th></th>");
    for time in times {
        let _ = write!(out, "<td>{}</td>", escape(time));
    }
    out.push_str("</tr>\n");
    for (name, shots) in rows {
        let _ = write!(out, "<tr><th>{}</th>", escape(name));
        for Shot { columns, jpeg, says } in shots {
            let _ = write!(out, "<td colspan=\"{columns}\" style=\"--columns:{columns}\">");
            if let Some(jpeg) = jpeg {
                let (jpeg, says) = (escape(jpeg), escape(says));
                let _ = write!(out, "<img src=\"data:image/jpeg;base64,{jpeg}\" alt=\"{says}\">");
            }
            out.push_str("</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
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
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    use sha2::{Digest as _, Sha256};

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
        Report { title: text.into(), answer: vec![text.into()], lead: text.into(), sections, provenance }
    }

    #[test]
    fn text_is_escaped_as_markup() {
        let html = report_of("</pre></title><script>alert(1)</script>\"'&").html();
        assert_eq!(html.matches("<script").count(), 1, "{html}");
        assert!(!html.contains("alert(1)</script>") && !html.contains("\"'&\""));
        assert_eq!(html.matches("</title>").count(), report_of("x").html().matches("</title>").count());
    }

    #[test]
    fn the_file_loads_nothing_from_outside() {
        let html = report_of("plain").html();
        let without_namespace = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        // The script names the namespace of SVG once, to make an element.
        let without_namespace = without_namespace.replace("'http://www.w3.org/2000/svg'", "");
        for reference in ["http:", "https:", "src=", "url(", "@import", "<link", "fetch(", "import("] {
            assert!(!without_namespace.contains(reference), "{reference}");
        }
        assert!(html.contains("default-src 'none'"));
    }

    #[test]
    fn the_policy_allows_the_script_of_the_page_and_no_other() {
        let html = report_of("plain").html();
        let (_, rest) = html.split_once("<script>").expect("a script");
        let (script, _) = rest.split_once("</script>").expect("its end");
        let hash = BASE64_STANDARD.encode(Sha256::digest(script));
        assert!(html.contains(&format!("script-src 'sha256-{hash}'\">")), "SCRIPT_HASH should be {hash}");
    }

    #[test]
    fn an_overlay_names_its_two_and_picks_are_hidden_without_the_script() {
        let figure = Figure::new("", Axis::linear("x", ""), Axis::linear("y", ""));
        let mut out = String::new();
        let subjects = [("a<", "after 1 ms"), ("b", "")].map(|(name, note)| (name.into(), note.into()));
        write_section(&mut out, &Section::Overlay { subjects, views: vec![(figure.svg(), "c".into())] }, 3);
        let side = "<span class=\"side\" data-side=\"0\"><i class=\"k0\"></i><b>a&lt;</b> <output>after 1 ms</output></span>";
        assert!(out.contains(side) && out.contains("<figcaption>c</figcaption>"), "{out}");
        out.clear();
        write_section(&mut out, &Section::Picks(vec!["a\"".into()]), 3);
        assert_eq!(out, "", "one alone is nothing to pick from");
        write_section(&mut out, &Section::Picks(vec!["a\"".into(), "b".into()]), 3);
        let list = "[&quot;a\\&quot;&quot;,&quot;b&quot;]";
        assert_eq!(out, format!("<div class=\"picks\" data-picks=\"{list}\" hidden></div>\n"));
    }

    #[test]
    fn a_picture_fills_the_columns_in_which_it_does_not_change() {
        let shot =
            |columns, jpeg: Option<&str>| Shot { columns, jpeg: jpeg.map(str::to_owned), says: "<a".into() };
        let rows = vec![("b&".into(), vec![shot(1, None), shot(2, Some("QUJD"))])];
        let mut out = String::new();
        write_section(&mut out, &Section::Film { times: vec!["0 ms".into(); 3], rows }, 3);
        assert!(out.contains("<table style=\"--columns:3\">"), "{out}");
        let row = "<tr><th>b&amp;</th><td colspan=\"1\" style=\"--columns:1\"></td><td colspan=\"2\" style=\"--columns:2\">\
                   <img src=\"data:image/jpeg;base64,QUJD\" alt=\"&lt;a\"></td></tr>";
        assert!(out.contains(row) && out.matches("<td>0 ms</td>").count() == 3, "{out}");
    }

    #[test]
    fn a_figure_with_series_on_demand_offers_all() {
        let mut figure = Figure::new("", Axis::linear("x", ""), Axis::linear("y", ""));
        figure.series.push(Series::new("a", Style::line(), [(0.0, 1.0), (1.0, 2.0)]));
        let written = |figure: &Figure| {
            let mut out = String::new();
            write_figure(&mut out, &figure.svg(), "");
            out
        };
        assert!(!written(&figure).contains("checkbox"));
        figure.series.push(Series::new("b", Style::line().on_demand(), [(0.0, 1.0), (1.0, 2.0)]));
        let both = written(&figure);
        assert!(
            both.contains("show all 2, not only these 1") && both.contains("class=\"k1 more\""),
            "{both}"
        );
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
    fn blank_lines_separate_paragraphs() {
        let mut out = String::new();
        paragraphs(&mut out, "one\ntwo\n\n\n\nthree\n", "");
        assert_eq!(out, "<p>one\ntwo</p>\n<p>three</p>\n");
    }
}
