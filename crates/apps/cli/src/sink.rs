//! Where results go: standard output, or a file of which a killed run leaves whole lines.

use std::error::Error;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, IsTerminal as _, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::flags::output::Format;
use crate::render::csv;
use crate::terminal::{self, Pieces};

/// Written to in whole lines.
#[derive(Debug)]
pub(crate) enum Sink {
    Stdout,
    File(OutputFile),
}

/// A file that the user named.
#[derive(Debug)]
pub(crate) struct OutputFile {
    file: File,
    path: PathBuf,
    /// Its first line before we began; `None` for an empty file.
    heading: Option<String>,
    /// Made by us: it goes again if nothing comes to stand in it.
    is_ours: bool,
}

/// Standard output, for as long as this is held. If its reader has gone, its error holds
/// [`ReaderGone`], which tells it from that of a socket or of a child's pipe. If it is a terminal,
/// nothing that is written steers it.
#[derive(Debug)]
pub(crate) struct Stdout {
    out: io::StdoutLock<'static>,
    /// Of a terminal.
    pieces: Option<Pieces>,
}

/// Nobody reads standard output any more.
#[derive(Debug)]
pub(crate) struct ReaderGone;

impl fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads standard output any more")
    }
}

impl Error for ReaderGone {}

/// Standard output.
pub(crate) fn stdout() -> Stdout {
    let out = io::stdout().lock();
    let pieces = out.is_terminal().then(Pieces::default);
    Stdout { out, pieces }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(pieces) = &mut self.pieces else { return self.out.write(bytes).map_err(of_stdout) };
        self.out.write_all(pieces.pass(bytes).as_bytes()).map_err(of_stdout)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(of_stdout)
    }
}

impl Drop for Stdout {
    fn drop(&mut self) {
        if let Some(pieces) = &mut self.pieces {
            // Whole text leaves nothing.
            let _ = self.out.write_all(pieces.end().as_bytes());
        }
    }
}

/// Standard output for a writer that is sent among threads: it is held for each write alone. Each
/// write is whole text.
#[derive(Debug)]
pub(crate) struct UnlockedStdout;

impl Write for UnlockedStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = io::stdout().lock();
        if !out.is_terminal() {
            return out.write(bytes);
        }
        out.write_all(terminal::safe(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

fn of_stdout(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::BrokenPipe { io::Error::new(error.kind(), ReaderGone) } else { error }
}

/// Prints where a server listens. A script that has read the port may close the pipe, and that is
/// no reason to end.
///
/// # Errors
/// It cannot be written for another reason.
pub(crate) fn announce(text: &str) -> anyhow::Result<()> {
    announce_to(&mut stdout(), text)
}

fn announce_to(out: &mut impl Write, text: &str) -> anyhow::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            tracing::info!("nobody reads standard output any more");
            Ok(())
        }
        written => written.context("stdout"),
    }
}

/// What to do with a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    Refuse,
    Append,
}

impl Sink {
    /// Standard output without a path. Told now, before anything is measured, that a file cannot be
    /// written.
    ///
    /// # Errors
    /// The file is there already and must not be, holds something else than results in `format`, or
    /// cannot be made, opened or read.
    pub(crate) fn open(path: Option<&Path>, existing: Existing, format: Format) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::Stdout) };
        let shown = path.display();
        let made = OpenOptions::new().append(true).read(true).create_new(true).open(path);
        let (mut file, is_ours) = match made {
            Ok(file) => (file, true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && existing == Existing::Append => {
                let opened = OpenOptions::new().append(true).read(true).open(path);
                (opened.with_context(|| format!("cannot open {shown}"))?, false)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("{shown} is there already: add to it with --append, or name another file")
            }
            Err(error) => return Err(error).with_context(|| format!("cannot make {shown}")),
        };
        if !is_ours && is_no_text(&mut file).with_context(|| format!("cannot read {shown}"))? {
            bail!("{shown} is no text file, such as a store of results, and nothing can be added to it");
        }
        let heading =
            if is_ours { None } else { first_line(&file).with_context(|| format!("cannot read {shown}"))? };
        if let Some(found) = heading.as_deref() {
            let (held, added) = (content_of(found), content_in(format));
            if held != added {
                bail!("{shown} holds {held}, and {added} cannot be added to it: name another file");
            }
        }
        if heading.is_some() && !ends_a_line(&mut file).with_context(|| format!("cannot read {shown}"))? {
            // A line that was cut off stays alone.
            file.write_all(b"\n").with_context(|| format!("cannot write to {shown}"))?;
        }
        Ok(Self::File(OutputFile { file, path: path.to_path_buf(), heading, is_ours }))
    }

    /// Whether it is standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// The line that stood first in the file before; `None` where a heading is due.
    pub(crate) fn heading(&self) -> Option<&str> {
        match self {
            Self::Stdout => None,
            Self::File(file) => file.heading.as_deref(),
        }
    }

    /// Rows may only stand below the heading that they were made for.
    ///
    /// # Errors
    /// The file begins with another one.
    pub(crate) fn check_heading(&self, heading: &str) -> anyhow::Result<()> {
        match self {
            Self::File(OutputFile { heading: Some(found), path, .. }) if found != heading => {
                bail!("{} has other columns than these results: name another file", path.display())
            }
            _ => Ok(()),
        }
    }

    /// Whole lines, in one call: whoever ends this program in between ends it before or after them.
    pub(crate) fn write(&self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut out = stdout();
                out.write_all(lines)?;
                out.flush()
            }
            Self::File(OutputFile { file, path, .. }) => {
                let mut file = file;
                file.write_all(lines)
                    .map_err(|e| io::Error::new(e.kind(), format!("cannot write to {}: {e}", path.display())))
            }
        }
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_ours && self.file.metadata().is_ok_and(|about| about.len() == 0) {
            // An empty file left behind is a blemish, no failure.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// What a file holds, by its first line.
fn content_of(first_line: &str) -> &'static str {
    match first_line {
        "{" | "[" => "JSON",
        line if line.starts_with('{') => "NDJSON",
        line if csv::is_heading(line) => "CSV of results",
        _ => "plain text",
    }
}

/// What a file of results in this format holds, in the same words.
fn content_in(format: Format) -> &'static str {
    match format {
        Format::Json => "JSON",
        Format::Ndjson => "NDJSON",
        Format::Csv => "CSV of results",
        Format::Text | Format::Udpmon => "plain text",
    }
}

/// Longer than any heading of ours; what is longer is none.
const LONGEST_HEADING: u64 = 64 * 1024;

fn first_line(file: &File) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    BufReader::new(file.take(LONGEST_HEADING)).read_until(b'\n', &mut line)?;
    Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).trim_end().to_owned()))
}

/// Whether its beginning holds what no text does.
fn is_no_text(file: &mut File) -> io::Result<bool> {
    let mut beginning = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(512).read_to_end(&mut beginning)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(beginning.contains(&0))
}

fn ends_a_line(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path, existing: Existing) -> Result<Sink, String> {
        open_for(path, existing, Format::Text)
    }

    fn open_for(path: &Path, existing: Existing, format: Format) -> Result<Sink, String> {
        Sink::open(Some(path), existing, format).map_err(|error| format!("{error:#}"))
    }

    /// Takes nothing, for a reason.
    struct Refusing(ErrorKind);

    impl Write for Refusing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_who_has_gone_is_told_from_other_errors() {
        let gone = of_stdout(ErrorKind::BrokenPipe.into());
        assert!(gone.get_ref().is_some_and(|inner| inner.downcast_ref::<ReaderGone>().is_some()));
        assert_eq!(gone.kind(), ErrorKind::BrokenPipe);
        assert!(of_stdout(ErrorKind::StorageFull.into()).get_ref().is_none());
    }

    /// `netaware serve -p 0 | head -1` ended the server.
    #[test]
    fn a_server_outlives_the_reader_of_its_port() {
        let said = |why| announce_to(&mut Refusing(why), "listening on 127.0.0.1:4711\n");
        assert!(said(ErrorKind::BrokenPipe).is_ok());
        assert!(said(ErrorKind::StorageFull).is_err(), "a script would wait for the port for ever");
    }

    #[test]
    fn a_file_that_is_there_is_only_added_to_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        open(&path, Existing::Refuse).unwrap().write(b"id,x\n1,2\n").unwrap();
        let error = open(&path, Existing::Refuse).unwrap_err();
        assert!(
            error.ends_with("a.csv is there already: add to it with --append, or name another file"),
            "{error}"
        );
        let again = open(&path, Existing::Append).unwrap();
        assert_eq!(again.heading(), Some("id,x"));
        again.write(b"3,4\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "id,x\n1,2\n3,4\n");
    }

    #[test]
    fn no_text_is_added_to_a_store_of_results() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.db");
        let store = b"SQLite format 3\0\x10\0\n";
        std::fs::write(&path, store).unwrap();
        let error = open(&path, Existing::Append).unwrap_err();
        assert!(error.contains("results.db is no text file, such as a store of results"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), store, "it is as it was");
    }

    /// Text was added to a CSV file.
    #[test]
    fn results_are_added_only_to_a_file_that_holds_their_form() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let heading = csv::heading("udp", None);
        let held = [
            (Some(Format::Csv), heading.as_str()),
            (Some(Format::Ndjson), "{\"id\":1}\n"),
            (Some(Format::Text), "netaware udp\n"),
            (None, "{\n"),
        ];
        for (of, content) in held {
            for format in [Format::Csv, Format::Ndjson, Format::Text] {
                std::fs::write(&path, content).unwrap();
                let opened = open_for(&path, Existing::Append, format);
                assert_eq!(opened.is_ok(), of == Some(format), "{format:?} to {content}");
                let Err(error) = opened else { continue };
                assert!(error.ends_with("cannot be added to it: name another file"), "{error}");
                assert_eq!(std::fs::read_to_string(&path).unwrap(), content, "it is as it was");
            }
        }
        std::fs::write(&path, "").unwrap();
        assert!(open_for(&path, Existing::Append, Format::Csv).is_ok(), "an empty file is fine");
    }

    #[test]
    fn rows_do_not_come_below_another_heading() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "id,x\n").unwrap();
        let sink = open(&path, Existing::Append).unwrap();
        assert!(sink.check_heading("id,x").is_ok());
        let error = sink.check_heading("id,y").unwrap_err().to_string();
        assert!(error.ends_with("a.csv has other columns than these results: name another file"), "{error}");
    }

    #[test]
    fn a_line_that_was_cut_off_does_not_run_into_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "id,x\n1,").unwrap();
        open(&path, Existing::Append).unwrap().write(b"3,4\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "id,x\n1,\n3,4\n");
    }

    #[test]
    fn a_file_into_which_nothing_came_goes_again_unless_it_was_there_before() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
        std::fs::write(&theirs, "").unwrap();
        drop(open(&ours, Existing::Append).unwrap());
        drop(open(&theirs, Existing::Append).unwrap());
        assert!(!ours.exists() && theirs.exists());
        let error = open(&folder.path().join("none/a"), Existing::Refuse).unwrap_err();
        assert!(error.contains("cannot make") && error.contains("No such file"), "{error}");
    }
}
