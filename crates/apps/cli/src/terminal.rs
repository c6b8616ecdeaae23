//! The last look at what goes to a terminal or into a log.
//!
//! Text from outside is made printable where it becomes part of a line
//! ([`netaware_record::printable`]). One place that forgot it would let a stranger steer the
//! terminal, so everything that is written comes through here as well: colours, ends of lines and
//! tabs stay, and every other character that is not printable becomes U+FFFD.

use netaware_record::is_printable;

/// Returns whole text as a terminal may have it.
pub(crate) fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = colour(rest);
        if colour > 0 {
            safe.push_str(&rest[..colour]);
            rest = &rest[colour..];
            continue;
        }
        safe.push(if is_printable(c) || matches!(c, '\n' | '\t') { c } else { char::REPLACEMENT_CHARACTER });
        rest = &rest[c.len_utf8()..];
    }
    safe
}

/// Returns a line of a log, with its end: what was logged can neither steer a terminal nor begin a
/// line of its own.
pub(crate) fn log_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.strip_suffix('\n').unwrap_or(&text);
    safe(&line.replace('\n', "\u{fffd}")) + "\n"
}

/// Returns the length of the sequence that sets a colour (ECMA-48 SGR) with which the text begins,
/// and 0 if it begins with something else.
fn colour(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix(BEGIN) else { return 0 };
    let after = parameters.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
    let taken = parameters.len() - after.len();
    if after.starts_with('m') && taken <= LONGEST_COLOUR { BEGIN.len() + taken + 1 } else { 0 }
}

/// The same for text that comes in pieces, cut anywhere.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// The beginning of a character, or of what may become a colour.
    pending: Vec<u8>,
}

impl Pieces {
    /// Returns what can be written of a piece and of what was kept of the one before.
    pub(crate) fn pass(&mut self, piece: &[u8]) -> String {
        self.pending.extend_from_slice(piece);
        let whole = whole(&self.pending);
        let passed = safe(&String::from_utf8_lossy(&self.pending[..whole]));
        self.pending.drain(..whole);
        passed
    }

    /// Returns what was kept, since nothing follows.
    pub(crate) fn end(&mut self) -> String {
        safe(&String::from_utf8_lossy(&std::mem::take(&mut self.pending)))
    }
}

/// Returns how many bytes end neither within a character nor within what may become a colour.
fn whole(bytes: &[u8]) -> usize {
    let characters = match str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    let tail = characters.saturating_sub(BEGIN.len() + LONGEST_COLOUR);
    let Some(at) = bytes[tail..characters].iter().rposition(|byte| *byte == ESCAPE) else {
        return characters;
    };
    let begun = &bytes[tail + at + 1..characters];
    let may_go_on = match begun.split_first() {
        None => true,
        Some((first, rest)) => *first == b'[' && rest.iter().all(|it| it.is_ascii_digit() || *it == b';'),
    };
    if may_go_on { tail + at } else { characters }
}

const ESCAPE: u8 = 0x1b;
const BEGIN: &str = "\u{1b}[";
/// Between the beginning and the end of a colour: "38;2;255;255;255" and some more.
const LONGEST_COLOUR: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_made_printable_keeps_its_colours_and_cannot_steer_a_terminal() {
        for (text, want) in [
            ("\u{1b}[1;31mbad\u{1b}[0m\n\tnext\n", "\u{1b}[1;31mbad\u{1b}[0m\n\tnext\n"),
            ("\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}2J\r", "\u{fffd}[2J\u{fffd}]0;x\u{fffd}\u{fffd}2J\u{fffd}"),
            ("evil\u{202e}txt.", "evil\u{fffd}txt."),
            ("\u{1b}", "\u{fffd}"),
        ] {
            assert_eq!(safe(text), want);
        }
    }

    #[test]
    fn a_stranger_cannot_add_a_line_to_the_log() {
        let said = log_line(b"refused 'a\n2026-01-01 INFO all is well\x1b[2J'\n");
        assert_eq!(said, "refused 'a\u{fffd}2026-01-01 INFO all is well\u{fffd}[2J'\n");
    }

    #[test]
    fn where_text_is_cut_changes_nothing() {
        let text = "é\u{1b}[1;31mö\u{1b}[2J\u{202e}\u{1b}";
        for cut in 0..=text.len() {
            let (first, second) = text.as_bytes().split_at(cut);
            let mut pieces = Pieces::default();
            let passed = pieces.pass(first) + &pieces.pass(second) + &pieces.end();
            assert_eq!(passed, safe(text), "cut at {cut}");
        }
    }
}
