//! The link specification of the command line.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::quantity::{QuantityError, Rate, format_time, parse_time};
use crate::text::shown;
use crate::{Figure, Preset, Transport};

/// What links of one sort cost: `thunderbolt5-rdma`, or `alpha=5us,bandwidth=5GB/s[,overhead=0.5us,reduce=20GB/s]`.
///
/// After the name of a preset, single figures may follow in place of its own. Without a preset, alpha and bandwidth are
/// needed, what else is not named costs nothing, and the transport is `rdma` unless `transport=tcp` is said.
///
/// ```
/// use unisono_topology::{LinkSpec, Provenance};
///
/// let spec: LinkSpec = "alpha=5us,bandwidth=5GB/s".parse()?;
/// assert!(spec.overhead.value.is_zero() && spec.reduce.value.is_unlimited());
/// let spec: LinkSpec = "roce100g,alpha=3us".parse()?;
/// assert_eq!(spec.alpha.from, Provenance::Given);
/// assert_eq!(spec.bandwidth.value.to_string(), "12GB/s");
/// # Ok::<(), unisono_topology::LinkSpecError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSpec {
    /// How the bytes go.
    pub transport: Transport,
    /// Latency: from a message's leaving the link to its being there.
    pub alpha: Figure<Duration>,
    /// Bytes per second of one rail, one way.
    pub bandwidth: Figure<Rate>,
    /// What every message costs a core of its sender and a core of its receiver.
    pub overhead: Figure<Duration>,
    /// How fast a core reduces or copies.
    pub reduce: Figure<Rate>,
}

impl LinkSpec {
    /// The keys of a specification.
    pub const KEYS: [&'static str; 5] = ["alpha", "bandwidth", "overhead", "reduce", "transport"];
}

impl Default for LinkSpec {
    /// `thunderbolt5-rdma`.
    fn default() -> LinkSpec {
        Preset::Thunderbolt5Rdma.spec()
    }
}

/// What is wrong with a link specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkSpecError {
    /// No such preset.
    #[error(
        "unknown link `{name}`; known: {}; or alpha=5us,bandwidth=5GB/s[,overhead=0.5us,reduce=20GB/s]",
        Preset::names()
    )]
    UnknownPreset {
        /// As it was given.
        name: String,
    },
    /// No such key.
    #[error("unknown key `{key}` in a link; known: {}", LinkSpec::KEYS.join(", "))]
    UnknownKey {
        /// As it was given.
        key: String,
    },
    /// No such transport.
    #[error("unknown transport `{name}`; known: rdma, tcp")]
    UnknownTransport {
        /// As it was given.
        name: String,
    },
    /// A part without `=` that is not the first.
    #[error("`{part}` in a link has no value; expected key=value, with a key of {}", LinkSpec::KEYS.join(", "))]
    NoValue {
        /// The part between two commas.
        part: String,
    },
    /// A key named twice.
    #[error("`{key}` stands twice in a link")]
    Twice {
        /// The key.
        key: &'static str,
    },
    /// A key that is needed when no preset is named.
    #[error(
        "a link without a preset needs `{key}`, as in alpha=5us,bandwidth=5GB/s; presets: {}",
        Preset::names()
    )]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// A value that cannot be read.
    #[error("{key}: {source}")]
    Quantity {
        /// The key.
        key: &'static str,
        /// What is wrong.
        source: QuantityError,
    },
}

impl FromStr for LinkSpec {
    type Err = LinkSpecError;

    fn from_str(text: &str) -> Result<LinkSpec, LinkSpecError> {
        let mut parts = text.split(',').map(str::trim).peekable();
        let preset = match parts.next_if(|part| !part.contains('=')) {
            Some(name) => Some(
                Preset::find(name)
                    .ok_or_else(|| LinkSpecError::UnknownPreset { name: shown(name) })?,
            ),
            None => None,
        };
        let mut spec = preset.unwrap_or(Preset::Thunderbolt5Rdma).spec();
        if preset.is_none() {
            spec.overhead = Figure::given(Duration::ZERO);
            spec.reduce = Figure::given(Rate::UNLIMITED);
        }
        let mut seen = Vec::new();
        for part in parts {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| LinkSpecError::NoValue { part: shown(part) })?;
            let known = LinkSpec::KEYS.into_iter().find(|k| *k == key.trim());
            let key = known.ok_or_else(|| LinkSpecError::UnknownKey {
                key: shown(key.trim()),
            })?;
            if seen.contains(&key) {
                return Err(LinkSpecError::Twice { key });
            }
            seen.push(key);
            let wrong = |source| LinkSpecError::Quantity { key, source };
            match key {
                "alpha" => spec.alpha = Figure::given(parse_time(value).map_err(wrong)?),
                "bandwidth" => spec.bandwidth = Figure::given(value.parse().map_err(wrong)?),
                "overhead" => spec.overhead = Figure::given(parse_time(value).map_err(wrong)?),
                "reduce" => spec.reduce = Figure::given(value.parse().map_err(wrong)?),
                _ => spec.transport = value.trim().parse()?,
            }
        }
        let needed = ["alpha", "bandwidth"].into_iter();
        match needed.into_iter().find(|key| !seen.contains(key)) {
            Some(key) if preset.is_none() => Err(LinkSpecError::Missing { key }),
            _ => Ok(spec),
        }
    }
}

impl fmt::Display for LinkSpec {
    /// All figures, in the form that reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "alpha={},bandwidth={},overhead={},reduce={},transport={}",
            format_time(self.alpha.value),
            self.bandwidth.value,
            format_time(self.overhead.value),
            self.reduce.value,
            self.transport
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        text.parse::<LinkSpec>().unwrap_err().to_string()
    }

    #[test]
    fn every_preset_is_found_by_its_name() {
        for preset in Preset::ALL {
            assert_eq!(preset.name().parse::<LinkSpec>().unwrap(), preset.spec());
        }
    }

    #[test]
    fn what_is_printed_reads_back() {
        for text in [
            "10gbe",
            "alpha=1us,bandwidth=3MB/s",
            "roce100g,reduce=unlimited",
        ] {
            let spec: LinkSpec = text.parse().unwrap();
            let again: LinkSpec = spec.to_string().parse().unwrap();
            assert_eq!(again.to_string(), spec.to_string());
        }
    }

    #[test]
    fn errors_list_what_is_known() {
        assert_eq!(
            fault("thunderbolt4"),
            "unknown link `thunderbolt4`; known: thunderbolt5-rdma, thunderbolt5-tcp, 10gbe, roce100g; \
             or alpha=5us,bandwidth=5GB/s[,overhead=0.5us,reduce=20GB/s]"
        );
        assert_eq!(
            fault("alpha=5us,beta=5GB/s"),
            "unknown key `beta` in a link; known: alpha, bandwidth, overhead, reduce, transport"
        );
        assert_eq!(
            fault("10gbe,alpha=1us,alpha=2us"),
            "`alpha` stands twice in a link"
        );
        assert!(fault("alpha=5us").contains("needs `bandwidth`"));
        assert!(fault("alpha=5us,roce100g").contains("`roce100g` in a link has no value"));
        assert!(fault("10gbe,").contains("has no value"));
        assert!(fault("").starts_with("unknown link ``"));
        assert!(fault("10gbe,transport=udp").contains("known: rdma, tcp"));
        assert!(
            fault("alpha=5,bandwidth=5GB/s").starts_with("alpha: `5` is no time: it has no unit")
        );
    }
}
