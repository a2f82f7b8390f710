//! What a message carries: bytes, or the contents of phantom memory.

use unisono_contract::{Piece, Revoked};

use crate::phantom::{Contents, Stretch};
use crate::random::{fingerprint, mix};

/// A payload under way.
#[derive(Debug)]
pub(crate) enum Payload {
    /// Nothing.
    Empty,
    /// Bytes, in a buffer of the pool.
    Real(Vec<u8>),
    /// Contents of phantom memory, one stretch after the other.
    Phantom(Vec<Stretch>),
}

/// Buffers that the pool keeps, and the largest of them.
const KEPT: usize = 64;
const LARGEST: usize = 1 << 20;

impl Payload {
    /// Reads a gather list; the payload, and a fingerprint of it.
    pub(crate) fn load(
        pieces: &[Piece],
        pool: &mut Vec<Vec<u8>>,
        phantoms: &Contents,
    ) -> Result<(Payload, u64), Revoked> {
        if pieces.iter().all(Piece::is_empty) {
            return Ok((Payload::Empty, 0));
        }
        if pieces.iter().any(Piece::is_phantom) {
            let mut stretches = Vec::new();
            for piece in pieces.iter().filter(|p| !p.is_empty()) {
                if !piece.is_phantom() {
                    return Err(Revoked::Phantom); // half a ghost is none
                }
                phantoms.read(piece.addr() as u64, piece.len() as u64, &mut stretches);
            }
            let hash = stretches
                .iter()
                .fold(0, |hash, s| mix(hash ^ s.fingerprint()));
            return Ok((Payload::Phantom(stretches), hash));
        }
        let mut bytes = pool.pop().unwrap_or_default();
        bytes.clear();
        for piece in pieces {
            piece.read(|from| bytes.extend_from_slice(from))?;
        }
        let hash = fingerprint(&bytes, 0);
        Ok((Payload::Real(bytes), hash))
    }

    /// Writes it into a gather list of the same length.
    pub(crate) fn store(&self, pieces: &[Piece], phantoms: &mut Contents) -> Result<(), Revoked> {
        match self {
            Payload::Empty => Ok(()),
            Payload::Real(bytes) => {
                let mut rest = &bytes[..];
                for piece in pieces {
                    let (now, later) = rest.split_at(piece.len());
                    piece.write(|into| into.copy_from_slice(now))?;
                    rest = later;
                }
                Ok(())
            }
            Payload::Phantom(stretches) => {
                if pieces.iter().any(|p| !p.is_empty() && !p.is_phantom()) {
                    return Err(Revoked::Phantom);
                }
                let mut from = 0;
                for piece in pieces {
                    let (to, len) = (piece.addr() as u64, piece.len() as u64);
                    phantoms.write_part(to, stretches, from, len);
                    from += len;
                }
                Ok(())
            }
        }
    }

    /// Another one like it.
    pub(crate) fn twin(&self) -> Payload {
        match self {
            Payload::Empty => Payload::Empty,
            Payload::Real(bytes) => Payload::Real(bytes.clone()),
            Payload::Phantom(stretches) => Payload::Phantom(stretches.clone()),
        }
    }

    /// Gives its buffer back to the pool.
    pub(crate) fn give_back(self, pool: &mut Vec<Vec<u8>>) {
        if let Payload::Real(bytes) = self
            && pool.len() < KEPT
            && bytes.capacity() <= LARGEST
        {
            pool.push(bytes);
        }
    }
}
