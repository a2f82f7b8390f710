//! Pieces reach their memory while it is lent, and never afterwards.

use std::{
    io::{Read, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use unisono_contract::memory::{
    self, Buffer, Lease, Operand, Piece, Region, Revoked, access, copy, copy_bytes_across, lend,
    lend_shared,
};

#[test]
fn a_piece_is_small() {
    assert_eq!(size_of::<Piece>(), 32);
}

#[test]
fn a_piece_that_left_its_scope_is_revoked() {
    let mut bytes = [1u8, 2, 3];
    let kept = lend(&mut bytes, |piece| {
        assert!(piece.is_live());
        piece.slice(1..2)
    });
    assert!(!kept.is_live());
    assert_eq!(kept.read(<[u8]>::to_vec), Err(Revoked::Ended));
    assert_eq!(kept.write(|bytes| bytes.fill(9)), Err(Revoked::Ended));
    // Another loan in the recycled cell does not bring it back.
    lend(&mut [0u8; 3], |_| {
        assert_eq!(kept.read(|_| ()), Err(Revoked::Ended))
    });
    assert_eq!(bytes, [1, 2, 3]);
}

#[test]
fn a_panic_in_the_scope_ends_the_loan() {
    let mut bytes = [0u8; 4];
    let mut kept = Piece::EMPTY;
    let result = catch_unwind(AssertUnwindSafe(|| {
        lend(&mut bytes, |piece| {
            kept = piece;
            panic!("in the scope");
        })
    }));
    assert!(result.is_err());
    assert_eq!(kept.len(), 4);
    assert_eq!(kept.read(|_| ()), Err(Revoked::Ended));
}

#[test]
fn a_panic_in_an_access_leaves_the_lease() {
    let lease = Lease::new(vec![0u8; 4]);
    let piece = lease.piece();
    let result = catch_unwind(AssertUnwindSafe(|| piece.read(|_| panic!("inside"))));
    assert!(result.is_err());
    lease.into_inner(); // Would wait for ever if the panic had stayed inside.
}

#[test]
fn the_end_of_a_lease_waits_for_who_is_inside() {
    let lease = Lease::new(vec![0u8; 8]);
    let piece = lease.piece();
    let (inside, left) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let written = piece.write(|bytes| {
                inside.store(true, Ordering::Release);
                for _ in 0..100 {
                    thread::yield_now();
                }
                bytes.fill(7);
                left.store(true, Ordering::Release);
            });
            assert_eq!(written, Ok(()));
        });
        while !inside.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let bytes = lease.into_inner();
        assert!(left.load(Ordering::Acquire));
        assert_eq!(bytes, [7; 8]);
    });
}

#[test]
fn accesses_race_the_end_and_either_happen_or_do_not() {
    let rounds = if cfg!(miri) { 20 } else { 2000 };
    for round in 0..rounds {
        let lease = Lease::new(vec![0u64; 4]);
        let piece = lease.piece();
        let written = thread::scope(|scope| {
            let writer = scope.spawn(move || piece.write(|bytes| bytes.fill(1)).is_ok());
            for _ in 0..round % 50 {
                std::hint::spin_loop();
            }
            let after = lease.into_inner();
            let written = writer.join().unwrap();
            (written, after)
        });
        let expected = if written.0 {
            u64::from_ne_bytes([1; 8])
        } else {
            0
        };
        assert_eq!(written.1, [expected; 4]);
    }
}

#[test]
fn read_only_memory_is_not_written() {
    lend_shared(&[1u8, 2], |piece| {
        assert!(piece.is_read_only());
        assert_eq!(piece.write(|_| ()), Err(Revoked::ReadOnly));
        assert_eq!(copy(piece, piece), Err(Revoked::ReadOnly));
        assert_eq!(memory::write_all(&[piece], |_| ()), Err(Revoked::ReadOnly));
        assert_eq!(piece.read(<[u8]>::to_vec), Ok(vec![1, 2]));
    });
    let lease = Lease::new(bytes::Bytes::from_static(b"fixed"));
    assert_eq!(lease.piece().write(|_| ()), Err(Revoked::ReadOnly));
    assert_eq!(&lease.into_inner()[..], b"fixed");
}

#[test]
fn the_empty_piece_is_always_accessible() {
    assert_eq!(Piece::EMPTY.read(<[u8]>::len), Ok(0));
    assert_eq!(Piece::EMPTY.write(|bytes| bytes.len()), Ok(0));
    assert_eq!(copy(Piece::EMPTY, Piece::EMPTY), Ok(()));
    assert_eq!(Piece::EMPTY.region(), None);
    assert!(Piece::EMPTY.slice(0..0).is_empty());
}

#[test]
#[should_panic(expected = "bytes 2..5 of a piece of 4")]
fn a_slice_stays_within_its_piece() {
    lend(&mut [0u8; 4], |piece| piece.slice(2..5));
}

#[test]
fn an_owner_comes_back_as_it_was() {
    let mut vector = Vec::with_capacity(10);
    vector.extend([1u32, 2, 3]);
    let vector = Lease::new(vector).into_inner();
    assert_eq!((vector.as_slice(), vector.capacity()), (&[1, 2, 3][..], 10));
    let boxed: Box<[u16]> = vec![4, 5].into();
    let lease = Lease::new(boxed);
    lease.piece().write(|bytes| bytes[0] = 9).unwrap();
    assert_eq!(&*lease.into_inner(), [9, 5]);
}

#[test]
fn a_buffer_lent_is_known_by_its_region() {
    let buffer = Buffer::<f64>::zeroed(100).unwrap();
    let (key, region) = (buffer.region().key(), buffer.region().clone());
    assert_eq!(buffer.as_ptr() as usize % 4096, 0);
    let lease = Lease::new(buffer);
    let piece = lease.piece();
    assert_eq!((piece.len(), piece.region()), (800, Some(key)));
    piece.write(|bytes| bytes.fill(0xff)).unwrap();
    let buffer = lease.into_inner();
    assert!(buffer[99].is_nan());
    assert_eq!(piece.read(|_| ()), Err(Revoked::Ended));
    // The region itself lives on with its own pieces.
    drop(buffer);
    assert_eq!(region.piece(0..1).read(|bytes| bytes[0]), Ok(0xff));
}

#[test]
fn a_region_lives_as_long_as_its_last_clone() {
    let region = Region::alloc(5000).unwrap();
    let other = region.clone();
    let piece = region.piece(4000..5000);
    drop(region);
    assert_eq!(piece.read(|bytes| bytes.iter().all(|b| *b == 0)), Ok(true));
    assert_eq!(piece.region(), Some(other.key()));
    drop(other);
    assert_eq!(piece.read(|_| ()), Err(Revoked::Ended));
    assert_ne!(
        Region::alloc(0).unwrap().key(),
        Region::alloc(1).unwrap().key()
    );
    assert!(Region::alloc(usize::MAX).is_err());
}

#[test]
fn copies_within_one_memory_may_overlap() {
    let mut bytes = *b"abcdef";
    lend(&mut bytes, |piece| {
        copy(piece.slice(2..6), piece.slice(0..4))
    })
    .unwrap();
    assert_eq!(&bytes, b"ababcd");
}

#[test]
fn lists_cut_differently_are_copied_across() {
    let source: Vec<u8> = (0..100).collect();
    let mut target = vec![0u8; 120];
    let copied = lend_shared(&source, |src| {
        lend(&mut target, |dst| {
            let from = [
                src.slice(0..1),
                Piece::EMPTY,
                src.slice(1..90),
                src.slice(90..100),
            ];
            let into = [dst.slice(0..33), dst.slice(33..33), dst.slice(33..120)];
            copy_bytes_across(&into, &from)
        })
    });
    assert_eq!(copied, Ok(100));
    assert_eq!(target[..100], source[..]);
    assert_eq!(target[100..], [0; 20]);
}

#[test]
fn a_message_moves_in_windows() {
    let source: Vec<u8> = (0..100).collect();
    let mut target = vec![0u8; 100];
    lend_shared(&source, |src| {
        lend(&mut target, |dst| {
            let from = [src.slice(0..50), src.slice(50..100)];
            let into = [dst.slice(0..7), dst.slice(7..100)];
            let mut moved = 0;
            while moved < 100 {
                let step = memory::copy_window(&into, &from, moved, 13).unwrap();
                assert!(step > 0 && step <= 13);
                moved += step;
            }
            assert_eq!(memory::copy_window(&into, &from, moved, 13), Ok(0));
        })
    });
    assert_eq!(target, source);
}

#[test]
fn an_operand_that_is_the_target_is_named_so() {
    let mut bytes = [1u8, 2, 3, 4];
    lend(&mut bytes, |piece| {
        let (low, high) = (piece.slice(0..2), piece.slice(2..4));
        let done = access(low, &[low, high], |target, operands| {
            assert_eq!(operands, [Operand::Target, Operand::Bytes(&[3, 4])]);
            if let Operand::Bytes(other) = operands[1] {
                target.iter_mut().zip(other).for_each(|(t, o)| *t += o);
            }
        });
        assert_eq!(done, Ok(()));
        let partly = access(low, &[piece.slice(1..3)], |_, _| ());
        assert_eq!(partly, Err(Revoked::Overlap));
    });
    assert_eq!(bytes, [4, 6, 3, 4]);
}

#[test]
fn an_access_with_one_dead_operand_does_not_happen() {
    let dead = lend(&mut [0u8; 2], |piece| piece);
    lend(&mut [0u8; 2], |piece| {
        let result = access(piece, &[piece, dead], |_, _| panic!("called"));
        assert_eq!(result, Err(Revoked::Ended));
    });
}

#[test]
fn lists_go_through_vectored_io() {
    let mut wire = Vec::new();
    lend_shared(b"hello, world", |piece| {
        let list = [piece.slice(0..5), Piece::EMPTY, piece.slice(5..12)];
        memory::read_all(&list, |slices| wire.write_vectored(slices)).unwrap()
    })
    .unwrap();
    assert_eq!(wire, b"hello, world");
    let mut back = [0u8; 12];
    lend(&mut back, |piece| {
        let list = [piece.slice(7..12), piece.slice(0..7)];
        memory::write_all(&list, |slices| (&wire[..]).read_vectored(slices).unwrap()).unwrap();
        let twice = [piece.slice(0..3), piece.slice(2..4)];
        assert_eq!(memory::write_all(&twice, |_| ()), Err(Revoked::Overlap));
    });
    assert_eq!(&back, b", worldhello");
}
