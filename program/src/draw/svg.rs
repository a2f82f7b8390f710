//! Just enough SVG: elements with attributes, escaped text, short numbers.

use std::fmt::{self, Display, Write};

/// A document under construction. Elements close in the order they were opened.
pub(super) struct Svg {
    out: String,
    open: Vec<&'static str>,
}

/// An attribute: its name and value.
pub(super) type Attribute<'a> = (&'static str, &'a dyn Display);

impl Svg {
    pub(super) fn new(width: f64, height: f64, name: &str) -> Svg {
        let mut svg = Svg {
            out: String::new(),
            open: Vec::new(),
        };
        let (w, h) = (N(width), N(height));
        svg.open(
            "svg",
            &[
                ("xmlns", &"http://www.w3.org/2000/svg"),
                ("width", &w),
                ("height", &h),
                ("viewBox", &format_args!("0 0 {w} {h}")),
                ("role", &"img"),
                (
                    "font-family",
                    &"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif",
                ),
            ],
        );
        svg.title(&name);
        svg
    }

    pub(super) fn open(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.start(tag, attributes);
        self.out.push_str(">\n");
        self.open.push(tag);
    }

    pub(super) fn close(&mut self) {
        if let Some(tag) = self.open.pop() {
            self.out.push_str("</");
            self.out.push_str(tag);
            self.out.push_str(">\n");
        }
    }

    /// An element without contents.
    pub(super) fn shape(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.start(tag, attributes);
        self.out.push_str("/>\n");
    }

    pub(super) fn text(
        &mut self,
        x: f64,
        y: f64,
        attributes: &[Attribute<'_>],
        text: &dyn Display,
    ) {
        let (x, y) = (N(x), N(y));
        let mut all: Vec<Attribute<'_>> = vec![("x", &x), ("y", &y)];
        all.extend_from_slice(attributes);
        self.start("text", &all);
        self.out.push('>');
        self.escaped(text);
        self.out.push_str("</text>\n");
    }

    /// What a reader hears or sees when pointing at the element that is open.
    pub(super) fn title(&mut self, text: &dyn Display) {
        self.out.push_str("<title>");
        self.escaped(text);
        self.out.push_str("</title>\n");
    }

    pub(super) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }

    fn start(&mut self, tag: &str, attributes: &[Attribute<'_>]) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            self.escaped(value);
            self.out.push('"');
        }
    }

    fn escaped(&mut self, text: &dyn Display) {
        // Writing to a String cannot fail.
        let _ = write!(Escaped(&mut self.out), "{text}");
    }
}

struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        for c in s.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                // XML has no way to write other control characters.
                c if c.is_control() && !c.is_whitespace() => self.0.push('\u{fffd}'),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

/// A length with at most one digit after the point.
#[derive(Clone, Copy)]
pub(super) struct N(pub(super) f64);

impl Display for N {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        if tenths % 10 == 0 {
            write!(f, "{}", tenths / 10)
        } else {
            write!(f, "{:.1}", tenths as f64 / 10.0)
        }
    }
}
