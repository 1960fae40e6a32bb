//! Settings that all figures of a paper share.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use headstart_startup::catalogue::Entry;
use serde::Deserialize;
use toml::{Table, Value};

use super::from_toml;
use headstart_study::schemes;
use headstart_study::settings::{Settings, Tables};

/// Settings that all figures of a paper share.
#[derive(Clone, Debug)]
pub struct Paper {
    /// Title of the publication.
    pub title: String,
    /// Place of publication.
    pub citation: String,
    /// Description of the model.
    pub about: String,
    /// The results that a reader looks for first.
    pub headlines: Vec<Headline>,
    /// Results that nobody can reproduce, each with the reason.
    pub out_of_scope: Vec<String>,
    /// The variant whose numbers stand beside the judge's, which it does not judge.
    pub beside: Option<String>,
    pub(super) settings: Settings,
    schemes: Vec<Scheme>,
    pub(super) variants: Vec<Variant>,
    /// Wrong versions of schemes, in words.
    pub(super) mutants: Vec<(String, Scheme)>,
}

/// A result that a reader of the paper looks for first.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    /// The result, in words.
    pub result: String,
    /// The author's numbers or words.
    pub paper: String,
    /// The claims that it stands for.
    pub claims: Vec<NamedClaim>,
    /// Why it does not come out, in a sentence.
    #[serde(default)]
    pub reason: String,
}

/// A claim by its figure and its sentence.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedClaim {
    /// The figure's folder.
    pub figure: String,
    /// The claim's sentence.
    pub says: String,
}

/// A scheme under the paper's name.
#[derive(Clone, Debug)]
pub struct Scheme {
    /// As the paper calls it.
    pub name: String,
    /// The catalogue's entry.
    pub entry: &'static Entry,
}

/// Settings that are all run.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Name of the variant.
    pub name: String,
    /// The difference, in words.
    pub about: String,
    pub(super) settings: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PaperText {
    title: String,
    citation: String,
    about: String,
    #[serde(default)]
    path: Table,
    #[serde(default)]
    transport: Table,
    #[serde(default)]
    workload: Table,
    #[serde(default)]
    run: Table,
    schemes: Table,
    variants: Table,
    #[serde(default, rename = "headline")]
    headlines: Vec<Headline>,
    #[serde(default, rename = "out-of-scope")]
    out_of_scope: Vec<String>,
    beside: Option<String>,
    #[serde(default)]
    mutants: BTreeMap<String, BTreeMap<String, String>>,
}

/// A variant as it is written: its words, the variant it is like, and the four tables of options
/// that are different in it.
///
/// It can only be like one of those `above`, so that nobody has to look further down for what it
/// is, and none can be like itself.
fn variant(name: String, value: Value, above: &[Variant]) -> Result<Variant> {
    let Value::Table(mut table) = value else { bail!("found `{value}`, expected a table") };
    let about = table.remove("about").context("found no key `about`, expected what is different in words")?;
    let about =
        about.as_str().with_context(|| format!("about: found `{about}`, expected a text"))?.to_owned();
    let like = match table.remove("like") {
        None => Settings::default(),
        Some(Value::String(name)) => {
            named("variant", above, &name, |variant| &variant.name)
                .context("like, of the variants above this one")?
                .settings
        }
        Some(other) => bail!("like: found `{other}`, expected the name of a variant"),
    };
    let tables: Tables = Value::Table(table).try_into()?;
    let settings = like.with(&Settings::read(&tables, None)?);
    Ok(Variant { name, about, settings })
}

impl Paper {
    /// Reads `paper.toml`.
    ///
    /// # Errors
    /// With key, found and expected.
    pub fn read(text: &str) -> Result<Self> {
        let text: PaperText = from_toml(text)?;
        let tables =
            Tables { path: text.path, transport: text.transport, workload: text.workload, run: text.run };
        let schemes = text
            .schemes
            .iter()
            .map(|(name, value)| {
                let text = value
                    .as_str()
                    .with_context(|| format!("schemes.{name}: found `{value}`, expected a scheme as text"))?;
                let entry = schemes::find(text).with_context(|| format!("schemes.{name}"))?;
                Ok(Scheme { name: name.clone(), entry })
            })
            .collect::<Result<_>>()?;
        let mut variants = vec![];
        for (name, value) in text.variants {
            let at = format!("variants.{name}");
            variants.push(variant(name, value, &variants).context(at)?);
        }
        ensure!(!variants.is_empty(), "variants: found none, expected one at least");
        if let Some(name) = &text.beside {
            named("variant", &variants, name, |variant: &Variant| &variant.name).context("beside")?;
        }
        let mut paper = Self {
            title: text.title,
            citation: text.citation,
            about: text.about,
            headlines: text.headlines,
            out_of_scope: text.out_of_scope,
            beside: text.beside,
            settings: Settings::read(&tables, None)?,
            schemes,
            variants,
            mutants: vec![],
        };
        for (subject, versions) in text.mutants {
            paper.scheme(&subject).with_context(|| format!("mutants.{subject}"))?;
            for (name, text) in versions {
                let entry = schemes::find(&text).with_context(|| format!("mutants.{subject}.{name}"))?;
                paper.mutants.push((subject.clone(), Scheme { name, entry }));
            }
        }
        Ok(paper)
    }

    /// A scheme by the paper's name for it.
    pub(super) fn scheme(&self, name: &str) -> Result<Scheme> {
        named("scheme", &self.schemes, name, |scheme| &scheme.name)
    }

    /// Several schemes; `key` says where they are named.
    pub(super) fn schemes(&self, key: &str, names: &[String]) -> Result<Vec<Scheme>> {
        names.iter().map(|name| self.scheme(name)).collect::<Result<_>>().with_context(|| key.to_owned())
    }

    pub(super) fn variants(&self, key: &str, names: &[String]) -> Result<Vec<Variant>> {
        names
            .iter()
            .map(|name| named("variant", &self.variants, name, |variant| &variant.name))
            .collect::<Result<_>>()
            .with_context(|| key.to_owned())
    }
}

fn named<T: Clone>(what: &str, known: &[T], name: &str, name_of: impl Fn(&T) -> &String) -> Result<T> {
    known.iter().find(|one| name_of(one) == name).cloned().with_context(|| {
        let known: Vec<&str> = known.iter().map(|one| name_of(one).as_str()).collect();
        let known = if known.is_empty() { "none at all".to_owned() } else { known.join(", ") };
        format!("found the {what} `{name}`, expected one of {known}")
    })
}
