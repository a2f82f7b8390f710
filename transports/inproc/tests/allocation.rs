//! Warm posts and polls do not allocate.

use allocation_counter::measure;
use unisono_contract::{Completions, Endpoint, Frame, Lease, Token, WaitSet};
use unisono_inproc::connect;

#[test]
fn warm_posts_and_polls_do_not_allocate() {
    let mut ends = connect(2).into_iter();
    let (mut zero, mut one) = (ends.next().unwrap(), ends.next().unwrap());
    let (to, from) = (zero.port(1, 0).unwrap(), one.port(0, 0).unwrap());
    let (data, landed) = (Lease::new(vec![1u8; 4096]), Lease::new(vec![0u8; 4096]));
    let (mut sent, mut received) = (Completions::new(), Completions::new());
    let mut set = WaitSet::new();
    let mut round = |sequence: u64| {
        for length in [4, 4096] {
            let frame = Frame {
                length: length as u64,
                sequence,
                ..Frame::default()
            };
            let (piece, into) = (
                data.piece().slice(0..length),
                landed.piece().slice(0..length),
            );
            for message in 0..zero.limits().depth as u64 {
                zero.post_send(to, &frame, &[piece], Token(message))
                    .unwrap();
                one.post_recv(from, &frame, &[into], Token(message))
                    .unwrap();
            }
            while sent.len() + received.len() < 2 * zero.limits().depth {
                set.clear();
                let _ = one.wait_on(&mut set).unwrap();
                one.poll(&mut received).unwrap();
                zero.poll(&mut sent).unwrap();
            }
            sent.clear();
            received.clear();
        }
    };
    (0..3).for_each(&mut round);
    let warm = measure(|| (3..100).for_each(&mut round));
    assert_eq!(warm.count_total, 0);
    assert_eq!(
        measure(|| drop(std::hint::black_box(vec![1u8; 9]))).count_total,
        1,
        "the counter counts"
    );
}
