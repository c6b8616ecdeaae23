//! What a picture shows, in base units: nothing here knows of pixels.

use netaware_record::IpVersion;

use super::unit::Unit;

/// A whole picture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Picture {
    /// "netaware udp lab-b: rate over spacing".
    pub(crate) title: String,
    /// When, label, remarks.
    pub(crate) subtitle: String,
    /// From top to bottom.
    pub(crate) panels: Vec<Panel>,
}

/// Axes and what lies between them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Panel {
    /// Its share of the height, beside the others'.
    pub(crate) weight: u32,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
    pub(crate) layers: Vec<Layer>,
}

/// How one axis counts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    /// "spacing".
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) kind: ScaleKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScaleKind {
    /// Holds zero, as figures that are compared by length must.
    FromZero,
    /// Only what is there.
    Linear,
    Logarithmic,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layer {
    /// In the legend; layers of the same name share an entry, those without have none.
    pub(crate) name: Option<String>,
    pub(crate) ink: Ink,
    pub(crate) mark: Mark,
    /// `(x, y)`; a `y` that is not finite breaks a line.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Colours that people with any kind of colour vision tell apart (Okabe and Ito 2008). An IP
/// version has the same one in every picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Blue.
    V4,
    /// Vermilion.
    V6,
    /// What was not measured: guides.
    Grey,
}

/// How points are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A line with a mark on each point.
    Dotted(Shape, Stroke),
    /// A line alone.
    Line(Stroke),
    /// Marks alone.
    Dots(Shape),
    /// From the first of each pair of points up to the second.
    Whiskers,
    /// A line, and the area below it filled.
    Area,
    /// A line that does not stretch the axes.
    Guide,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Disc,
    Ring,
    Square,
    Cross,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stroke {
    Solid,
    Dashed,
    Fine,
}

impl From<IpVersion> for Ink {
    fn from(version: IpVersion) -> Self {
        match version {
            IpVersion::V4 => Self::V4,
            IpVersion::V6 => Self::V6,
        }
    }
}

impl Scale {
    pub(crate) fn new(name: impl Into<String>, unit: Unit, kind: ScaleKind) -> Self {
        Self { name: name.into(), unit, kind }
    }
}

impl Layer {
    pub(crate) fn new(
        name: impl Into<String>,
        ink: impl Into<Ink>,
        mark: Mark,
        points: Vec<(f64, f64)>,
    ) -> Self {
        Self { name: Some(name.into()), ink: ink.into(), mark, points }
    }

    /// Not in the legend.
    pub(crate) fn silent(ink: impl Into<Ink>, mark: Mark, points: Vec<(f64, f64)>) -> Self {
        Self { name: None, ink: ink.into(), mark, points }
    }
}

impl Panel {
    /// Nothing in it could be drawn.
    pub(crate) fn is_empty(&self) -> bool {
        self.layers.iter().filter(|layer| layer.mark != Mark::Guide).all(|layer| {
            let shown = |(x, y): &(f64, f64)| self.x.shows(*x) && self.y.shows(*y);
            !layer.points.iter().any(shown)
        })
    }
}

impl Scale {
    /// A logarithm has no zero, and no figure of ours is that far from one that its square is none.
    pub(crate) fn shows(&self, value: f64) -> bool {
        value.abs() <= 1e100 && (self.kind != ScaleKind::Logarithmic || value >= 1e-100)
    }
}
