//! Text within a given width.

/// Columns of all text output.
pub(crate) const WIDTH: usize = 80;

/// Breaks at spaces, though not between a number and its unit, so that no line is longer than
/// `width`; a longer word is cut, since some come from the network.
pub(crate) fn lines(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for word in words(text) {
        let mut word: Vec<char> = netaware_record::printable(&word).chars().collect();
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + 1 + word.len() > width {
            lines.push(String::new());
        }
        while word.len() > width {
            let rest = word.split_off(width);
            push(&mut lines, &word);
            lines.push(String::new());
            word = rest;
        }
        push(&mut lines, &word);
    }
    lines
}

/// "100 %" and "9.41 Gbit/s" are one word each.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '%'));
        match words.last_mut().filter(|last| is_unit && last.ends_with(|c: char| c.is_ascii_digit())) {
            Some(number) => *number = format!("{number} {word}"),
            None => words.push(word.to_owned()),
        }
    }
    words
}

const UNITS: &[&str] = &[
    "%", "ns", "us", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s",
    "Tbit/s",
];

fn push(lines: &mut [String], word: &[char]) {
    if let Some(line) = lines.last_mut() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word);
    }
}

/// `text` after `lead` ("  ! "), continued below the text's first column, in [`WIDTH`] columns.
pub(crate) fn paragraph(lead: &str, text: &str) -> String {
    let indent = lead.chars().count();
    let mut shown = String::new();
    for (n, line) in lines(text, WIDTH - indent.min(WIDTH - 1)).iter().enumerate() {
        if n > 0 {
            shown.push('\n');
        }
        let lead = if n == 0 { lead.to_owned() } else { " ".repeat(indent) };
        shown.push_str(format!("{lead}{line}").trim_end());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_longer_than_asked() {
        assert_eq!(lines("one two three", 7), ["one two", "three"]);
        assert_eq!(lines("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(lines("", 5), [""]);
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(lines("core at 100 %; done", 12), ["core at", "100 %; done"]);
        assert_eq!(lines("it took 5.0 ms, no", 11), ["it took", "5.0 ms, no"]);
    }

    #[test]
    fn terminal_escapes_do_not_survive() {
        assert_eq!(lines("a\u{1b}[31mb\u{7}", 80), ["a\u{fffd}[31mb\u{fffd}"]);
    }

    #[test]
    fn a_paragraph_hangs_below_its_lead() {
        let text = "word ".repeat(20);
        let shown = paragraph("  ! ", &text);
        assert!(shown.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(shown.lines().nth(1).unwrap().starts_with("    word"));
    }
}
