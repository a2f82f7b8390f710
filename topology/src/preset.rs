//! What links of a known sort cost.

use std::fmt;
use std::time::Duration;

use crate::{Figure, LinkSpec, Provenance, Rate, Transport};

/// What a link of some sort costs unless somebody knows better.
///
/// | preset | transport | alpha | bandwidth | overhead | reduce |
/// |---|---|---|---|---|---|
/// | `thunderbolt5-rdma` | rdma | 5us | 5GB/s | 2us | 20GB/s |
/// | `thunderbolt5-tcp` | tcp | 250us | 3GB/s | 5us | 20GB/s |
/// | `10gbe` | tcp | 25us | 1.17GB/s | 5us | 20GB/s |
/// | `roce100g` | rdma | 2us | 12GB/s | 500ns | 20GB/s |
///
/// alpha is the latency of the wire, bandwidth that of one rail one way, overhead what a message costs the core at either end,
/// reduce how fast one core combines two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Preset {
    /// One Thunderbolt 5 cable, RDMA (macOS 26.2 and later): the default of RDMA links.
    ///
    /// * alpha 5 us: a send of 64 B takes 4.15 us, of 4 KiB 4.64 us (p99 5.96).
    /// * bandwidth 5 GB/s: a stream of 4 KiB messages moves 4.7 GiB/s = 5.05 GB/s of the 80 Gb/s the cable has; all-reduces of
    ///   134 and 256 MB on four Macs move 4.5 to 6.1 GB/s per cable and direction.
    /// * overhead 2 us: posting, polling and credits of one message at each end. An all-reduce of 8 KiB on two ranks then takes
    ///   2 + 1.6 (transfer) + 5 + 2 + 0.4 (reduce) = 11 us; 36 us (p50) have been published for a program that waits more.
    Thunderbolt5Rdma,
    /// The same cable as a network interface.
    ///
    /// * alpha 250 us: 400 to 950 us of ping are reported, half of it is one way.
    /// * bandwidth 3 GB/s: 2 to 4 are reported, limited by the network stack.
    /// * overhead 5 us: system calls and copies of one message (4 B over loopback take 6.6 us for both ends).
    Thunderbolt5Tcp,
    /// Ten gigabit Ethernet: the default of TCP links, the slowest in common use, so that nobody is promised too much.
    ///
    /// * alpha 25 us: an estimate; loopback takes 7 to 13 us, interrupts and one switch the rest.
    /// * bandwidth 1.17 GB/s: 10 Gb/s, of which 1448 of every 1538 bytes on the wire are payload (94 %).
    /// * overhead 5 us: as with Thunderbolt.
    TenGbe,
    /// 100 gigabit Ethernet with RoCE.
    ///
    /// * alpha 2 us: an estimate, adapter to adapter through one switch.
    /// * bandwidth 12 GB/s: 100 Gb/s, of which 4096 of every 4178 bytes on the wire are payload (98 %), rounded down.
    /// * overhead 0.5 us: an estimate; posting and polling stay in user space.
    Roce100g,
}

/// One core adds f32 operands that lie in its cache at 20 to 28 GB/s, from memory slower; the lower end is taken.
const REDUCE: u64 = 20_000_000_000;

impl Preset {
    /// All of them.
    pub const ALL: [Preset; 4] = [
        Preset::Thunderbolt5Rdma,
        Preset::Thunderbolt5Tcp,
        Preset::TenGbe,
        Preset::Roce100g,
    ];

    /// The name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Preset::Thunderbolt5Rdma => "thunderbolt5-rdma",
            Preset::Thunderbolt5Tcp => "thunderbolt5-tcp",
            Preset::TenGbe => "10gbe",
            Preset::Roce100g => "roce100g",
        }
    }

    /// The preset of this name.
    pub fn find(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|p| p.name() == name)
    }

    /// Its figures.
    pub const fn spec(self) -> LinkSpec {
        use Transport::{Rdma, Tcp};
        let (transport, alpha_ns, bandwidth, overhead_ns) = match self {
            Preset::Thunderbolt5Rdma => (Rdma, 5_000, 5_000_000_000, 2_000),
            Preset::Thunderbolt5Tcp => (Tcp, 250_000, 3_000_000_000, 5_000),
            Preset::TenGbe => (Tcp, 25_000, 1_170_000_000, 5_000),
            Preset::Roce100g => (Rdma, 2_000, 12_000_000_000, 500),
        };
        let from = Provenance::Preset(self);
        LinkSpec {
            transport,
            alpha: Figure {
                value: Duration::from_nanos(alpha_ns),
                from,
            },
            bandwidth: Figure {
                value: Rate::new(bandwidth),
                from,
            },
            overhead: Figure {
                value: Duration::from_nanos(overhead_ns),
                from,
            },
            reduce: Figure {
                value: Rate::new(REDUCE),
                from,
            },
        }
    }

    /// The transport whose links it describes.
    pub const fn transport(self) -> Transport {
        self.spec().transport
    }

    pub(crate) fn names() -> String {
        Preset::ALL.map(Preset::name).join(", ")
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
