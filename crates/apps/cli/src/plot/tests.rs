//! Pictures are read back: points stand where their figures put them, and nothing lies outside.

use clap::ValueEnum;
use netaware_record::{Outcome, SeriesKind, SeriesPoint};
use uuid::Uuid;

use super::file::to_png;
use super::sample;
use super::source::{Series, Source};
use super::{Kind, Size, font, picture, to_svg};
use crate::render::fixture;

const USUAL: Size = Size { width: 1200, height: 750 };
const V4: &str = "#0072B2";
const V6: &str = "#D55E00";
const GUIDE: &str = "#6E6E6E";

fn svg(source: &Source, size: Size) -> String {
    to_svg(&picture(source, None).unwrap(), size).unwrap()
}

/// A tag with its attributes, and the text in it.
struct Element<'a> {
    head: &'a str,
    text: &'a str,
}

impl<'a> Element<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        let start = self.head.find(&format!(" {name}=\""))? + name.len() + 3;
        self.head[start..].split('"').next()
    }

    fn number(&self, name: &str) -> f64 {
        self.get(name).and_then(|value| value.parse().ok()).unwrap_or(f64::NAN)
    }

    fn has_colour(&self, colour: &str) -> bool {
        self.get("fill") == Some(colour) || self.get("stroke") == Some(colour)
    }
}

fn elements<'a>(svg: &'a str, tag: &str) -> Vec<Element<'a>> {
    let open = format!("<{tag}");
    let parts = svg.split(&open).skip(1);
    parts
        .map(|part| {
            let (head, rest) = part.split_once('>').unwrap();
            Element { head: &part[..head.len()], text: rest.split('<').next().unwrap().trim() }
        })
        .collect()
}

/// Centres of the filled marks of one colour, without the one of the legend.
fn discs(svg: &str, colour: &str) -> Vec<(f64, f64)> {
    let all = elements(svg, "circle");
    let of_colour = all.iter().filter(|circle| circle.get("fill") == Some(colour));
    of_colour.skip(1).map(|circle| (circle.number("cx"), circle.number("cy"))).collect()
}

fn points(of: &Element<'_>) -> Vec<(f64, f64)> {
    let pairs = of.get("points").unwrap_or_default().split_whitespace();
    pairs
        .map(|pair| pair.split_once(',').unwrap())
        .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
        .collect()
}

#[test]
fn every_source_has_the_picture_that_is_made_for_it() {
    for (word, source) in sample::all() {
        let kind = Kind::from_str(word, false).unwrap();
        // As text, because gaps are not a number and unequal to themselves.
        let drawn = |kind| format!("{:?}", picture(&source, kind).unwrap());
        assert_eq!(drawn(None), drawn(Some(kind)), "{word}");
    }
}

#[test]
fn points_of_a_scan_stand_where_their_logarithms_put_them() {
    let text = svg(&sample::spacing_scan(8), USUAL);
    // Received: 8 points above, and their loss below.
    let found = discs(&text, V4);
    assert_eq!((found.len(), discs(&text, V6).len()), (16, 16));
    let received = &found[..8];
    let octave = received[1].0 - received[0].0;
    for pair in received.windows(2) {
        assert!(
            (pair[1].0 - pair[0].0 - octave).abs() <= 1.0,
            "each spacing is twice the one before: {received:?}"
        );
    }
    // From 16 us on all of 736 Mbit/s and less arrives: each half of the one before.
    let halves: Vec<f64> = received[4..].windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    assert!(halves.iter().all(|half| *half > 5.0 && (half - halves[0]).abs() <= 1.0), "{halves:?}");
    // Below that the limit: a flat line.
    assert!(received[..4].iter().all(|point| (point.1 - received[0].1).abs() <= 1.0), "{received:?}");
}

#[test]
fn the_guide_has_the_slope_of_one_over_t() {
    let text = svg(&sample::spacing_scan(8), USUAL);
    let received = &discs(&text, V4)[..8];
    let per_octave = (received[7].0 - received[4].0, received[7].1 - received[4].1);
    let dashes: Vec<(f64, f64)> = elements(&text, "polyline")
        .iter()
        .filter(|line| line.has_colour(GUIDE))
        .skip(3)
        .flat_map(points)
        .collect();
    let (first, last) = (dashes[0], dashes[dashes.len() - 1]);
    let slope = ((last.1 - first.1) / per_octave.1) / ((last.0 - first.0) / per_octave.0);
    // Positive in pixels, whose y grows downwards, over octaves that fall by the same: a slope of
    // -1.
    assert!((slope - 1.0).abs() < 0.02, "{slope}");
    assert!(last.1 > first.1 && dashes.len() > 40);
}

#[test]
fn the_fit_ignores_outliers_and_says_what_it_found() {
    let text = svg(&sample::size_scan(), USUAL);
    let names: Vec<&str> = elements(&text, "text").iter().map(|element| element.text).collect();
    assert!(names.contains(&"IPv4 fit: 50 us + 8 ns/B"), "{names:?}");
    assert!(names.contains(&"IPv6 fit: 60 us + 8 ns/B"), "{names:?}");
}

fn legend(source: &Source, kind: Option<Kind>) -> Vec<String> {
    let picture = picture(source, kind).unwrap();
    let mut names: Vec<String> = picture
        .panels
        .iter()
        .flat_map(|panel| &panel.layers)
        .filter_map(|layer| layer.name.clone())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn lines_of_a_scan_over_two_options_say_which_they_are() {
    let spacing = legend(&sample::two_option_scan(), None);
    for name in ["IPv4, length 200 B received", "IPv6, length 1.4 kB received", "200 B / t", "1400 B / t"] {
        assert!(spacing.iter().any(|known| known == name), "{name}: {spacing:?}");
    }
    let option = legend(&sample::two_option_scan(), Some(Kind::Option));
    assert_eq!(option.len(), 4, "{option:?}");
}

#[test]
fn a_record_with_two_transports_has_both_in_every_picture() {
    let mut record = fixture::latency();
    for version in &mut record.versions {
        version.latency_tcp.clone_from(&version.latency);
    }
    let want = ["IPv4 TCP", "IPv4 UDP", "IPv6 TCP", "IPv6 UDP"];
    assert_eq!(legend(&sample::again(&record), Some(Kind::Time)), want);
    assert_eq!(legend(&Source::One(Box::new(record)), Some(Kind::Histogram)), want);
}

#[test]
fn a_repeated_matrix_is_drawn_over_time() {
    let names = legend(&sample::again(&fixture::matrix()), None);
    let want = ["IPv4 TCP", "IPv4 TCP_NODELAY", "IPv4 UDP", "IPv6 TCP", "IPv6 TCP_NODELAY", "IPv6 UDP"];
    // Loss is of UDP alone, and needs no more than the version.
    let named: Vec<&str> = names.iter().map(String::as_str).filter(|name| name.len() > 4).collect();
    assert_eq!(named, want);
}

#[test]
fn a_turn_that_was_missed_breaks_the_line() {
    let text = svg(&sample::repeated(40), USUAL);
    let lines = elements(&text, "polyline");
    let long = lines.iter().filter(|line| line.has_colour(V4) && points(line).len() > 2).count();
    assert_eq!(long, 2, "five points, a gap, and the rest");
}

#[test]
fn a_hundred_thousand_points_make_a_small_picture_without_losing_a_peak() {
    let source = sample::repeated(100_000);
    let text = svg(&source, USUAL);
    assert!(text.len() < 1_000_000, "{} bytes", text.len());
    let top = |points: &[(f64, f64)]| points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let found = discs(&text, V4);
    assert!(found.len() <= 2 * 1200);
    let peak = top(&found);
    assert_eq!(
        found.iter().filter(|point| point.1 < peak + 100.0).count(),
        1,
        "one point of 130 Mbit/s, all others below 57"
    );
}

/// Left, top, right and bottom of a text, rotated as it is.
fn bounds(text: &Element<'_>) -> [f64; 4] {
    let size = text.number("font-size") * 1.24;
    let shown = text
        .text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&apos;", "'")
        .replace("&quot;", "\"")
        .replace("&amp;", "&");
    let width = f64::from(font::width(&shown, size.round() as u32));
    let (x, y) = (text.number("x"), text.number("y"));
    let before = match text.get("text-anchor") {
        Some("end") => width,
        Some("middle") => width / 2.0,
        _ => 0.0,
    };
    // How far above its place the text begins.
    let above = match text.get("dy") {
        Some("0.76em") => 0.0,
        Some("0.5ex") => size / 2.0,
        _ => size,
    };
    if text.get("transform").is_some_and(|transform| transform.starts_with("rotate(270")) {
        return [x - above, y + before - width, x - above + size, y + before];
    }
    [x - before, y - above, x - before + width, y - above + size]
}

#[test]
fn no_text_leaves_the_picture_however_small_and_whatever_it_says() {
    font::load().unwrap();
    let mut hostile = fixture::udp();
    hostile.request.host = "<h&'\">".repeat(80);
    hostile.label = Some("Halle B, 大厅, \u{1b}[2J зал ".repeat(20));
    let mut sources = sample::all();
    sources.push(("hostile", Source::One(Box::new(hostile))));
    for (name, source) in sources {
        for size in [USUAL, Size { width: 480, height: 320 }, Size { width: 4000, height: 400 }] {
            let text = svg(&source, size);
            assert!(!text.contains('\u{1b}'));
            for element in elements(&text, "text") {
                let [left, top, right, bottom] = bounds(&element);
                let (width, height) = (f64::from(size.width), f64::from(size.height));
                let fits = left >= -1.0 && right <= width + 1.0 && top >= -1.0 && bottom <= height + 1.0;
                assert!(fits, "{name} {size:?}: '{}' at {:?}", element.text, bounds(&element));
            }
        }
    }
}

#[test]
fn a_png_has_its_size_and_both_colours() {
    let size = Size { width: 640, height: 480 };
    for (name, source) in sample::all() {
        let bytes = to_png(&picture(&source, None).unwrap(), size).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (640, 480), "{name}");
        for colour in [[0, 114, 178], [213, 94, 0]] {
            assert!(pixels.chunks_exact(3).any(|pixel| pixel == colour), "{name} lacks {colour:?}");
        }
        assert_eq!(pixels[..3], [255, 255, 255], "{name}");
    }
}

#[test]
fn a_kind_that_does_not_fit_is_refused_with_those_that_do() {
    let refused = |source: &Source, kind| picture(source, kind).unwrap_err().to_string();
    let said = refused(&sample::gaps(), Some(Kind::Size));
    assert_eq!(said, "no picture of kind 'size' can be made of this 'udp' result: use --what histogram");
    let said = refused(&sample::spacing_scan(3), Some(Kind::Time));
    assert_eq!(
        said,
        "no picture of kind 'time' can be made of this series of 'udp' results: use --what spacing or option"
    );
    let said = refused(&Source::One(Box::new(fixture::nothing())), None);
    assert!(said.starts_with("no picture can be made of this 'test' result"), "{said}");
}

#[test]
fn a_scan_without_any_figure_is_no_picture() {
    let Source::Series(mut series) = sample::spacing_scan(3) else { unreachable!() };
    series.points.iter_mut().for_each(|point| point.readings.clear());
    assert!(picture(&Source::Series(series), None).is_err());
}

/// The rate until a transfer broke off was drawn as that of any other point.
#[test]
fn a_point_that_broke_off_is_left_out_of_the_picture_and_said() {
    let record = |index: u64, is_broken: bool| {
        let mut record = fixture::tcp();
        let (id, kind) = (Uuid::from_u128(9), SeriesKind::Repeat);
        record.series = Some(SeriesPoint { id, kind, index, planned: 3, point: [].into() });
        record.started_at.0 += i64::try_from(index).unwrap() * 10_000_000_000;
        if is_broken {
            record.versions[0].tcp[0].outcome = Outcome::Failed;
        }
        record
    };
    let drawn = |broken: u64| {
        let mut series = Series::default();
        (0..3).for_each(|index| series.take(&record(index, index == broken)));
        series.settle();
        let readings: Vec<usize> = series.points.iter().map(|point| point.readings.len()).collect();
        (readings, picture(&Source::Series(series), None).unwrap().subtitle)
    };
    let (whole, said) = drawn(3);
    assert!(!said.contains("left out"), "{said}");
    let (cut, said) = drawn(1);
    assert!(said.ends_with("3 points \u{b7} 1 point is left out or incomplete, because it failed"), "{said}");
    assert_eq!((cut[0], cut[1] * 2, cut[2]), (whole[0], whole[1], whole[2]));
}

#[test]
fn files_are_written_by_their_ending() {
    let folder = tempfile::tempdir().unwrap();
    let drawn = picture(&sample::matrix(), None).unwrap();
    let save = |name: &str| super::save(&drawn, USUAL, &folder.path().join(name));
    save("a.svg").unwrap();
    save("a.PNG").unwrap();
    assert!(std::fs::read(folder.path().join("a.PNG")).unwrap().starts_with(b"\x89PNG"));
    assert!(std::fs::read_to_string(folder.path().join("a.svg")).unwrap().starts_with("<svg"));
    for wrong in ["a", "a.jpg", ".svg", "no/such/a.svg"] {
        assert!(save(wrong).is_err(), "{wrong}");
    }
}
