//! Memory that a device may be given: owned, page aligned, never moved.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut, Range},
    ptr::NonNull,
    slice,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use bytemuck::Pod;

use super::{cell::Term, piece::Piece};

/// Alignment of a region: the largest page size in common use.
const ALIGN: usize = 16 * 1024;
/// Keys are 31 bits wide: a piece keeps its read-only flag beside the key.
const LAST_KEY: u32 = u32::MAX >> 1;

/// The name of a region, unique in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionKey(pub u32);

/// A region could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no memory for a region of {bytes} bytes")]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub bytes: usize,
}

/// Zeroed, page-aligned memory with shared ownership: clones name the same bytes.
///
/// ```
/// use unisono_contract::memory::Region;
///
/// let region = Region::alloc(1 << 20).unwrap();
/// let tail = region.piece(1 << 19..1 << 20);
/// assert_eq!(tail.region(), Some(region.key()));
/// drop(region);
/// assert!(tail.read(|_| ()).is_err());
/// ```
#[derive(Clone)]
pub struct Region {
    shared: Arc<Shared>,
}

struct Shared {
    /// `Some` until dropped: the lease ends before the memory goes.
    term: Option<Term>,
    start: NonNull<u8>,
    len: usize,
    layout: Layout,
    key: RegionKey,
}

// SAFETY: the pointer is owned by this value alone; access to the bytes goes through pieces, or
// through a `Buffer`, which is exclusive.
unsafe impl Send for Shared {}
// SAFETY: as above: `&Shared` only gives addresses and pieces.
unsafe impl Sync for Shared {}

impl Region {
    /// A region of `bytes` zero bytes.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the allocator has none, or `bytes` is beyond what an address can span.
    pub fn alloc(bytes: usize) -> Result<Self, OutOfMemory> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let none = OutOfMemory { bytes };
        let layout = Layout::from_size_align(bytes.max(1), ALIGN).map_err(|_| none)?;
        let key = NEXT
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |key| {
                (key < LAST_KEY).then_some(key + 1)
            })
            .map_err(|_| none)?;
        // SAFETY: the layout's size is at least one.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(none)?;
        Ok(Self {
            shared: Arc::new(Shared {
                term: Some(Term::start()),
                start,
                len: bytes,
                layout,
                key: RegionKey(key),
            }),
        })
    }

    /// The region's name.
    pub fn key(&self) -> RegionKey {
        self.shared.key
    }

    /// Bytes in the region.
    pub fn len(&self) -> usize {
        self.shared.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.shared.len == 0
    }

    /// The bytes `range`, accessible as long as any clone of the region lives.
    ///
    /// # Panics
    /// If `range` is not within `0..len()`.
    pub fn piece(&self, range: Range<usize>) -> Piece {
        let Some(term) = &self.shared.term else {
            unreachable!("the lease ends only in drop");
        };
        // SAFETY: the allocation is zeroed (initialized), writable, and freed only after `term`.
        let whole = unsafe {
            Piece::new(
                self.shared.start,
                self.shared.len,
                term,
                Some(self.shared.key),
                false,
            )
        };
        whole.slice(range)
    }

    /// The first byte.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.shared.start
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region({}, {} bytes)", self.key().0, self.len())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.term = None; // Waits until nobody is inside.
        // SAFETY: allocated with this layout in `alloc`, freed once, reached by nobody any more.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// `n` elements in a region of their own.
///
/// Exclusive, so not `Clone`; its [`region`](Self::region) can be registered, and lent as a
/// [`Lease`](super::Lease) it can be given to a device without a copy. While pieces of the region
/// are posted the elements are not to be looked at: the module's invariant.
///
/// ```
/// use unisono_contract::memory::Buffer;
///
/// let mut buffer = Buffer::<f32>::zeroed(1000).unwrap();
/// buffer[3] = 1.0;
/// assert_eq!(buffer.iter().sum::<f32>(), 1.0);
/// ```
pub struct Buffer<T: Pod> {
    region: Region,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: Pod> Buffer<T> {
    /// `n` zero elements.
    ///
    /// # Errors
    /// [`OutOfMemory`], as [`Region::alloc`].
    pub fn zeroed(n: usize) -> Result<Self, OutOfMemory> {
        const { assert!(align_of::<T>() <= ALIGN) };
        let bytes = n
            .checked_mul(size_of::<T>())
            .ok_or(OutOfMemory { bytes: usize::MAX })?;
        Ok(Self {
            region: Region::alloc(bytes)?,
            len: n,
            elements: PhantomData,
        })
    }

    /// The region that holds the elements.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Bytes of all elements.
    pub(super) fn byte_len(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the region holds `len` elements, aligned (asserted in `zeroed`) and initialized:
        // zero, or what was written, and any bytes are a `Pod`.
        unsafe { slice::from_raw_parts(self.region.start().cast().as_ptr(), self.len) }
    }
}

impl<T: Pod> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; the buffer is exclusive.
        unsafe { slice::from_raw_parts_mut(self.region.start().cast().as_ptr(), self.len) }
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
