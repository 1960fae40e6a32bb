//! Make any text safe to stand in HTML or SVG, as content or inside a quoted attribute.

/// Escapes `text` for markup; what XML 1.0 cannot hold at all becomes U+FFFD.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            // One bad character in a name must not make a whole figure unreadable to an XML parser.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_text_is_inert() {
        assert_eq!(escape("<b a=\"1\" c='2'>&"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;");
    }

    #[test]
    fn characters_invalid_in_xml_are_replaced() {
        assert_eq!(escape("a\u{1b}[1m\u{0}b\nc\u{ffff}"), "a\u{fffd}[1m\u{fffd}b\nc\u{fffd}");
    }

    #[test]
    fn text_of_other_scripts_is_unchanged() {
        assert_eq!(escape("Größe 速度 ≥ 2"), "Größe 速度 ≥ 2");
    }
}
