//! The null network, stepped by one thread.

use unisono_contract::{
    Completions, Direction, Drain, Endpoint, Frame, LinkCause, LinkError, Piece, Port, PostError,
    Token,
    memory::{Lease, lend, lend_shared},
    middleware::{Step, Traced},
    null::{Net, Policy},
};

fn pair(policy: Policy) -> (impl Endpoint, impl Endpoint, Net) {
    let mut ends = Net::new(2, policy).into_iter();
    let (zero, one) = (ends.next().unwrap(), ends.next().unwrap());
    let net = zero.net();
    (zero, one, net)
}

fn frame(length: usize) -> Frame {
    Frame {
        length: length as u64,
        ..Frame::default()
    }
}

fn ports(zero: &mut impl Endpoint, one: &mut impl Endpoint) -> (Port, Port) {
    (zero.port(1, 0).unwrap(), one.port(0, 0).unwrap())
}

#[test]
fn instant_means_within_the_post() {
    let (mut zero, mut one, net) = pair(Policy::instant());
    let (to, from) = ports(&mut zero, &mut one);
    let mut landed = [0u8; 4];
    let mut done = Completions::new();
    lend_shared(b"abcd", |src| {
        lend(&mut landed, |dst| {
            zero.post_send(to, &frame(4), &[src], Token(1)).unwrap();
            assert_eq!(
                net.messages(),
                0,
                "nothing moves before a receive is posted"
            );
            one.post_recv(from, &frame(4), &[dst], Token(2)).unwrap();
            assert_eq!((net.messages(), net.bytes()), (1, 4));
            assert_eq!(dst.read(<[u8]>::to_vec), Ok(b"abcd".to_vec()));
        })
    });
    zero.poll(&mut done).unwrap();
    one.poll(&mut done).unwrap();
    let tokens: Vec<_> = done.iter().map(|c| (c.direction, c.token)).collect();
    assert_eq!(
        tokens,
        [(Direction::Send, Token(1)), (Direction::Recv, Token(2))]
    );
}

#[test]
fn the_same_seed_replays_the_same_timing() {
    let run = |seed| {
        let policy = Policy {
            seed,
            chunk: 100,
            hold: 0.4,
            depth: 4,
        };
        let (mut zero, one, _net) = pair(policy);
        let mut one = Traced::new(one);
        let (to, from) = ports(&mut zero, &mut one);
        let (src, dst) = (Lease::new(vec![1u8; 1000]), Lease::new(vec![0u8; 1000]));
        zero.post_send(to, &frame(1000), &[src.piece()], Token(0))
            .unwrap();
        one.post_recv(from, &frame(1000), &[dst.piece()], Token(0))
            .unwrap();
        let mut done = Completions::new();
        let mut polls = 0;
        while done.len() < 2 {
            zero.poll(&mut done).unwrap();
            one.poll(&mut done).unwrap();
            polls += 1;
        }
        assert_eq!(dst.into_inner(), [1; 1000]);
        polls
    };
    assert_eq!(run(3), run(3));
    assert!((0..8).map(run).any(|polls| polls != run(3)));
}

#[test]
fn every_hostile_seed_moves_everything_in_order() {
    for seed in 0..if cfg!(miri) { 5 } else { 200 } {
        let (mut zero, mut one, net) = pair(Policy::hostile(seed));
        let (to, from) = ports(&mut zero, &mut one);
        let (src, dst) = (
            Lease::new((0..=255u8).collect::<Vec<_>>()),
            Lease::new(vec![0u8; 256]),
        );
        let (mut sent, mut posted, mut got) = (0, 0, Vec::new());
        let mut done = Completions::new();
        while got.len() < 16 {
            let window = |n: usize| n * 16..n * 16 + 16;
            if sent < 16 {
                let piece = src.piece().slice(window(sent));
                match zero.post_send(to, &frame(16), &[piece], Token(sent as u64)) {
                    Ok(()) => sent += 1,
                    Err(error) => assert!(matches!(error, PostError::Full)),
                }
            }
            if posted < 16 {
                let piece = dst.piece().slice(window(posted));
                match one.post_recv(from, &frame(16), &[piece], Token(posted as u64)) {
                    Ok(()) => posted += 1,
                    Err(error) => assert!(matches!(error, PostError::Full)),
                }
            }
            zero.poll(&mut done).unwrap();
            done.clear();
            one.poll(&mut done).unwrap();
            got.extend(done.drain(..).map(|completion| completion.token.0));
        }
        assert_eq!(got, (0..16).collect::<Vec<_>>());
        assert_eq!((net.messages(), net.bytes()), (16, 256));
        assert_eq!(dst.into_inner(), src.into_inner());
    }
}

#[test]
fn posts_beyond_the_depth_wait_for_a_polled_completion() {
    let policy = Policy {
        depth: 2,
        ..Policy::instant()
    };
    let (mut zero, mut one, _net) = pair(policy);
    let (to, from) = ports(&mut zero, &mut one);
    let send = |zero: &mut dyn Endpoint| zero.post_send(to, &frame(0), &[], Token(0));
    assert!(send(&mut zero).is_ok() && send(&mut zero).is_ok());
    assert!(matches!(send(&mut zero), Err(PostError::Full)));
    one.post_recv(from, &frame(0), &[], Token(0)).unwrap();
    assert!(matches!(send(&mut zero), Err(PostError::Full)));
    zero.poll(&mut Completions::new()).unwrap();
    assert!(send(&mut zero).is_ok());
}

fn cause(result: Result<(), LinkError>) -> LinkCause {
    result.unwrap_err().cause
}

#[test]
fn revoked_memory_is_its_owners_error_and_the_peers_closed_port() {
    for sender in [true, false] {
        let (mut zero, mut one, _net) = pair(Policy::instant());
        let (to, from) = ports(&mut zero, &mut one);
        let dead = lend(&mut [0u8; 4], |piece| piece);
        let live = Lease::new(vec![0u8; 4]);
        let (src, dst) = if sender {
            (dead, live.piece())
        } else {
            (live.piece(), dead)
        };
        one.post_recv(from, &frame(4), &[dst], Token(0)).unwrap();
        zero.post_send(to, &frame(4), &[src], Token(0)).unwrap();
        let mut done = Completions::new();
        let (mine, theirs) = (cause(zero.poll(&mut done)), cause(one.poll(&mut done)));
        let (guilty, other) = if sender {
            (mine, theirs)
        } else {
            (theirs, mine)
        };
        assert!(matches!(guilty, LinkCause::Revoked(_)), "{guilty}");
        assert!(matches!(other, LinkCause::Closed), "{other}");
        assert_eq!(done, []);
        assert!(zero.poll(&mut done).is_ok(), "an error is told once");
    }
}

#[test]
fn a_killed_rank_is_missed_only_where_something_was_posted() {
    let mut ends = Net::new(3, Policy::instant());
    let net = ends[0].net();
    let to_two = ends[0].port(2, 0).unwrap();
    let idle = ends[1].port(2, 0).unwrap();
    ends[0].post_send(to_two, &frame(0), &[], Token(0)).unwrap();
    net.kill(2);
    let mut done = Completions::new();
    let error = ends[0].poll(&mut done).unwrap_err();
    assert_eq!((error.port, error.peer), (to_two, 2));
    assert_eq!(error.to_string(), "link to rank 2: closed by the peer");
    assert!(ends[1].poll(&mut done).is_ok());
    let post = ends[1].post_recv(idle, &frame(0), &[], Token(0));
    assert!(matches!(post, Err(PostError::Link(_))));
}

#[test]
fn a_quiet_endpoint_has_let_go_of_its_memory() {
    let (mut zero, mut one, _net) = pair(Policy::hostile(1));
    let (to, from) = ports(&mut zero, &mut one);
    let mut bytes = vec![0u8; 10_000];
    let kept = lend(&mut bytes, |piece: Piece| {
        zero.post_send(to, &frame(10_000), &[piece], Token(0))
            .unwrap();
        assert_eq!(zero.quiesce(), Drain::Quiet);
        piece
    });
    assert!(!kept.is_live());
    let mut done = Completions::new();
    assert!(
        zero.poll(&mut done).is_ok(),
        "the caller knows that it withdrew"
    );
    let post = one.post_recv(from, &frame(0), &[], Token(0));
    assert!(matches!(post, Err(PostError::Link(_))));
}

#[test]
fn a_trace_tells_posts_and_completions() {
    let ends = Net::new(2, Policy::instant());
    let mut ends: Vec<_> = ends.into_iter().map(Traced::new).collect();
    let to = ends[0].port(1, 0).unwrap();
    let from = ends[1].port(0, 0).unwrap();
    ends[1].post_recv(from, &frame(0), &[], Token(4)).unwrap();
    ends[0].post_send(to, &frame(0), &[], Token(5)).unwrap();
    ends[1].poll(&mut Completions::new()).unwrap();
    let steps = ends[1].take_steps();
    assert!(matches!(
        steps[0],
        Step::Opened {
            peer: 0,
            channel: 0
        }
    ));
    assert!(matches!(
        steps[1],
        Step::Posted {
            direction: Direction::Recv,
            pieces: 0,
            bytes: 0,
            token: Token(4),
            ..
        }
    ));
    assert!(matches!(&steps[2], Step::Completed(c) if c.token == Token(4)));
    assert_eq!(steps.len(), 3);
}
