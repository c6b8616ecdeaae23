//! Makes text from outside fit to be shown: names of hosts and software, reasons of the other end,
//! answers of the DNS, names of files, labels of records.
//!
//! A terminal obeys control characters, and the bidirectional ones of Unicode let a name look like
//! another one (CVE-2021-42574). Characters without a width do the same. Each of them is replaced
//! by U+FFFD, one by one: the reader sees that there was something, and the number of characters
//! stays.

/// Returns the text with U+FFFD in place of each character that is not printable.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(shown).collect()
}

/// Returns the beginning of a text, of at most `longest` characters, printable as above.
#[must_use]
pub fn excerpt(text: &str, longest: usize) -> String {
    text.chars().map(shown).take(longest).collect()
}

/// Whether a character is shown as one and does nothing else. The ends of lines and the tab are
/// not.
#[must_use]
pub fn is_printable(c: char) -> bool {
    !matches!(c,
        // C0, DEL and C1.
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Marks, embeddings, overrides and isolates of direction (UAX #9 §2).
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // What has no width: spaces, joiners, invisible operators, deprecated controls.
        | '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
        | '\u{feff}'
        // Separators of lines and paragraphs, annotations, tags.
        | '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn shown(c: char) -> char {
    if is_printable(c) { c } else { char::REPLACEMENT_CHARACTER }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_outside_can_neither_steer_a_terminal_nor_look_like_another() {
        for (text, want) in [
            ("a\u{1b}[2Jb", "a\u{fffd}[2Jb"),
            ("a\u{9b}2J\u{7f}", "a\u{fffd}2J\u{fffd}"),
            ("two\nlines\r\t", "two\u{fffd}lines\u{fffd}\u{fffd}"),
            ("gnp.\u{202e}exe\u{2069}", "gnp.\u{fffd}exe\u{fffd}"),
            (
                "\u{61c}\u{200e}\u{200f}\u{200b}\u{200d}\u{feff}",
                "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
            ("Müller, 大厅, зал, שלום", "Müller, 大厅, зал, שלום"),
        ] {
            assert_eq!(printable(text), want);
        }
        assert_eq!(excerpt("a\u{1b}bc", 3), "a\u{fffd}b");
    }
}
