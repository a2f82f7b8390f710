//! Pieces without memory: everything but access.

use unisono_contract::memory::{self, PhantomSpace, Revoked, access, copy, lend};
use unisono_contract::null::{Net, Policy};
use unisono_contract::{Completions, Endpoint, Frame, LinkCause, Piece, Token};

#[test]
fn pieces_of_a_space_never_overlap_and_come_out_alike_every_time() {
    let draw = || {
        let space = PhantomSpace::new();
        let sizes = [0, 1, 16_384, 1 << 46, 3, 0, 8 << 30];
        sizes.map(|bytes| space.clone().alloc(bytes).expect("room"))
    };
    let pieces = draw();
    for (earlier, later) in pieces.iter().zip(&pieces[1..]) {
        assert!(earlier.addr() + earlier.len().max(1) <= later.addr());
    }
    let again = draw();
    assert_eq!(pieces.map(|p| p.addr()), again.map(|p| p.addr()));
}

#[test]
fn slices_of_a_phantom_are_cut_as_from_memory() {
    let whole = PhantomSpace::new().alloc(1 << 46).expect("room");
    let end = whole.slice((1 << 46) - 5..1 << 46);
    assert_eq!((end.len(), end.addr()), (5, whole.addr() + (1 << 46) - 5));
    assert!(end.is_phantom() && end.region().is_none() && !end.is_live());
    let none = whole.slice(1 << 46..1 << 46);
    assert!(none.is_empty() && none.is_phantom());
    assert!(std::panic::catch_unwind(|| end.slice(0..6)).is_err());
    assert!(format!("{end:?}").contains("phantom"));
    assert!(!Piece::EMPTY.is_phantom());
    lend(&mut [0u8; 2], |piece| assert!(!piece.is_phantom()));
}

#[test]
fn a_space_ends_with_an_error() {
    let space = PhantomSpace::new();
    assert!(space.alloc((1 << 46) + 1).is_err());
    let pieces = (0..1 << 17)
        .map_while(|_| space.alloc(1 << 46).ok())
        .count();
    assert_eq!(pieces, (1 << 16) - 1);
    assert!(
        space.alloc(1).is_ok(),
        "the last piece did not fit; this one does"
    );
}

#[test]
fn no_access_to_a_phantom_succeeds() {
    let phantom = PhantomSpace::new().alloc(4).expect("room");
    let refused = Err(Revoked::Phantom);
    assert_eq!(phantom.read(|_| ()), refused);
    assert_eq!(phantom.write(|_| ()), refused);
    assert_eq!(copy(phantom, phantom), refused);
    assert_eq!(access(phantom, &[phantom], |_, _| ()), refused);
    assert_eq!(memory::read_all(&[phantom], |_| ()), refused);
    assert_eq!(memory::write_all(&[phantom], |_| ()), refused);
    let mut bytes = [7u8; 4];
    lend(&mut bytes, |real| {
        assert_eq!(copy(real, phantom), refused);
        assert_eq!(copy(phantom, real), refused);
        assert_eq!(access(real, &[real, phantom], |_, _| ()), refused);
        assert_eq!(access(phantom, &[real], |_, _| ()), refused);
        assert_eq!(memory::read_all(&[real, phantom, real], |_| ()), refused);
        let across = memory::copy_bytes_across(&[real.slice(0..2), real.slice(2..4)], &[phantom]);
        assert_eq!(across, Err(Revoked::Phantom));
    });
    assert_eq!(bytes, [7; 4]);
}

#[test]
fn the_null_network_refuses_a_phantom_and_says_whose_it_was() {
    for policy in [Policy::instant(), Policy::hostile(5)] {
        for from_sender in [true, false] {
            let mut ends = Net::new(2, policy);
            let (mut one, mut zero) = (ends.pop().expect("two"), ends.pop().expect("two"));
            let to = zero.port(1, 0).expect("a peer");
            let from = one.port(0, 0).expect("a peer");
            let phantom = PhantomSpace::new().alloc(4).expect("room");
            let mut bytes = [7u8; 4];
            lend(&mut bytes, |real| {
                let (source, target) = match from_sender {
                    true => (phantom, real),
                    false => (real, phantom),
                };
                let frame = Frame {
                    length: 4,
                    ..Frame::default()
                };
                one.post_recv(from, &frame, &[target], Token(0))
                    .expect("room");
                zero.post_send(to, &frame, &[source], Token(0))
                    .expect("room");
                let cause = |end: &mut dyn Endpoint| {
                    let mut done = Completions::new();
                    let error = (0..1000).find_map(|_| end.poll(&mut done).err());
                    assert!(done.is_empty());
                    error.expect("told").cause
                };
                let (mine, theirs) = (cause(&mut zero), cause(&mut one));
                let (guilty, other) = match from_sender {
                    true => (mine, theirs),
                    false => (theirs, mine),
                };
                assert!(
                    matches!(guilty, LinkCause::Revoked(Revoked::Phantom)),
                    "{guilty}"
                );
                assert!(matches!(other, LinkCause::Closed), "{other}");
            });
            assert_eq!(bytes, [7; 4]);
        }
    }
}
