//! What happens at a known time.

use unisono_core::Rank;

/// Something that happens; FIFOs know the details, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happening {
    /// The sender's core has done with the next message of a FIFO.
    HandOver(u32),
    /// The next message of a FIFO has left its link.
    Sent(u32),
    /// The next message of a FIFO is there.
    Arrive(u32),
    /// The receiver's core has done with the next message of a FIFO.
    Received(u32),
    /// The receiver of a FIFO hears that no more will come.
    Close(u32),
    /// The sender of a FIFO hears that nobody receives.
    Gone(u32),
    /// A rank runs.
    Wake(Rank),
    /// The failure of a group reaches everybody.
    Tell(u32),
    /// A fault strikes.
    Fault(u32),
    /// The control plane notices that a rank is gone.
    Detect(Rank),
}

/// A happening and when; ordered by time, then by the order of scheduling.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scheduled {
    pub(crate) at: u64,
    pub(crate) number: u64,
    pub(crate) what: Happening,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
