//! A group that stands: failures reach everybody, leaving is none.

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{cause, common_cause, group};
use unisono_contract::{Descriptor, Event, Interest, Source};
use unisono_control::{Cause, Control, Kind, Network, Operation};
use unisono_core::Rank;

fn other(rank: Rank) -> Cause {
    let operation = Operation {
        name: "all_reduce",
        sequence: 17,
    };
    let text = format!("words of rank {rank}");
    Cause::new(rank, Some(operation), Kind::Other { text })
}

#[test]
fn an_abort_from_any_rank_reaches_all() {
    for origin in 0..3 {
        let group = group(3);
        group[origin as usize].abort(other(origin));
        assert_eq!(
            group[origin as usize].aborted(),
            Some(other(origin)),
            "known when the call returns"
        );
        assert_eq!(common_cause(&group), other(origin));
    }
}

#[test]
fn of_all_aborts_at_once_one_wins_everywhere() {
    for _ in 0..10 {
        let group = group(4);
        thread::scope(|scope| {
            for (rank, network) in (0..).zip(&group) {
                scope.spawn(move || network.abort(other(rank)));
            }
        });
        let cause = common_cause(&group);
        group[1].abort(Cause::new(1, None, Kind::Left));
        assert_eq!(common_cause(&group), cause);
    }
}

#[test]
fn a_lost_rank_is_named_to_all_others() {
    for lost in [1, 2] as [Rank; 2] {
        let mut group = group(3);
        let began = Instant::now();
        group.remove(lost as usize).vanish();
        let cause = common_cause(&group);
        assert_eq!(cause.kind, Kind::Lost { rank: lost });
        assert_eq!(cause.to_string(), format!("rank {lost} was lost"));
        assert!(began.elapsed() < Duration::from_secs(2));
    }
}

#[test]
fn a_lost_rank_0_is_named_to_all_others() {
    let mut group = group(3);
    group.remove(0).vanish();
    for network in &group {
        let cause = cause(network, Duration::from_secs(5)).unwrap();
        assert_eq!(cause.kind, Kind::Lost { rank: 0 });
    }
}

#[test]
fn leaving_in_any_order_is_no_failure_and_quick() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let mut group: Vec<Option<Network>> = group(3).into_iter().map(Some).collect();
        for rank in order {
            let began = Instant::now();
            group[rank] = None;
            assert!(began.elapsed() < Duration::from_millis(900));
            thread::sleep(Duration::from_millis(20));
            for network in group.iter().flatten() {
                assert_eq!(network.aborted(), None);
            }
        }
    }
}

#[test]
fn an_abort_just_before_leaving_still_reaches_all() {
    for origin in [0, 2] as [Rank; 2] {
        let mut group = group(3);
        let leaver = group.remove(origin as usize);
        leaver.abort(other(origin));
        drop(leaver);
        assert_eq!(common_cause(&group), other(origin));
    }
}

#[test]
fn a_rank_that_panics_is_no_rank_that_leaves() {
    let mut group = group(3);
    let network = group.remove(1);
    let panicked = thread::spawn(move || {
        let _network = network;
        std::panic::resume_unwind(Box::new("for the test"));
    });
    assert!(panicked.join().is_err());
    let cause = common_cause(&group);
    assert_eq!((cause.origin, cause.kind), (1, Kind::Panicked));
}

#[test]
fn an_idle_group_lives_on() {
    let group = group(3);
    thread::sleep(Duration::from_millis(1700));
    assert!(group.iter().all(|network| network.aborted().is_none()));
}

#[test]
fn two_groups_in_one_process_fail_alone() {
    let (one, two) = (group(2), group(2));
    assert_ne!(one[0].nonce(), two[0].nonce());
    one[1].abort(other(1));
    assert_eq!(common_cause(&one), other(1));
    assert!(two.iter().all(|network| network.aborted().is_none()));
}

#[test]
fn a_delayed_wake_up_comes() {
    let group = group(1);
    let (soon, late) = (Event::new(), Event::new());
    let (soon_key, late_key) = (soon.listen(), late.listen());
    group[0].wake_after(Duration::MAX, &late);
    group[0].wake_after(Duration::from_millis(10), &soon);
    assert!(soon.wait(soon_key, Some(Duration::from_secs(20))));
    assert!(!late.has_passed(late_key));
}

/// A socket of which the other end is `far`.
fn pair() -> (Descriptor, std::os::unix::net::UnixStream) {
    let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    (Descriptor::new(near), far)
}

#[test]
fn a_watched_descriptor_wakes_and_an_idle_one_does_not() {
    use std::io::{Read, Write};

    let group = group(1);
    let event = Event::new();
    let (near, mut far) = pair();
    let (idle, _keep) = pair();
    let source = |descriptor: &Descriptor, interest| Source {
        descriptor: descriptor.clone(),
        interest,
    };
    let both = [source(&idle, Interest::READ), source(&near, Interest::READ)];
    let short = Some(Duration::from_millis(50));
    let long = Some(Duration::from_secs(20));
    for round in 0..50 {
        let key = event.listen();
        group[0].watch(&both, &event);
        if round % 10 == 0 {
            assert!(!event.wait(key, short), "nothing is there yet");
        }
        far.write_all(b"x").unwrap();
        assert!(event.wait(key, long), "round {round}");
        // Ready already when the watch begins.
        let key = event.listen();
        group[0].watch(&both, &event);
        assert!(event.wait(key, long));
        // What is read is not there any more.
        let file = std::os::fd::AsFd::as_fd(&near)
            .try_clone_to_owned()
            .unwrap();
        let mut reader = std::os::unix::net::UnixStream::from(file);
        assert_eq!(reader.read(&mut [0; 8]).unwrap(), 1);
    }
    let key = event.listen();
    group[0].watch(&[source(&near, Interest::WRITE)], &event);
    assert!(event.wait(key, long), "it can be written");
    let key = event.listen();
    group[0].watch(&both, &event);
    drop(far);
    assert!(event.wait(key, long), "a closed end is news");
}

#[test]
fn later_watches_of_other_events_do_not_disturb_earlier_ones() {
    use std::io::Write;

    let group = group(1);
    let (near, mut far) = pair();
    let events = [Event::new(), Event::new(), Event::new()];
    let keys = events.each_ref().map(Event::listen);
    for event in &events {
        let source = Source {
            descriptor: near.clone(),
            interest: Interest::READ,
        };
        group[0].watch(&[source], event);
    }
    far.write_all(b"x").unwrap();
    for (event, key) in events.iter().zip(keys) {
        assert!(event.wait(key, Some(Duration::from_secs(20))));
    }
}

#[test]
fn waiting_to_read_does_not_forget_that_one_can_write() {
    use std::io::{Read, Write};

    let group = group(1);
    let [reads, writes] = [Event::new(), Event::new()];
    let (near, mut far) = pair();
    let watch = |event: &Event, interest| {
        let descriptor = near.clone();
        let source = Source {
            descriptor,
            interest,
        };
        let key = event.listen();
        group[0].watch(&[source], event);
        key
    };
    let long = Some(Duration::from_secs(20));
    far.write_all(b"x").unwrap();
    let key = watch(&reads, Interest::READ);
    assert!(reads.wait(key, long));
    let file = std::os::fd::AsFd::as_fd(&near)
        .try_clone_to_owned()
        .unwrap();
    let mut reader = std::os::unix::net::UnixStream::from(file);
    assert_eq!(reader.read(&mut [0; 8]).unwrap(), 1);
    // The runtime still remembers that it could be read, and has to be told.
    let key = watch(&reads, Interest::READ);
    assert!(!reads.wait(key, Some(Duration::from_millis(50))));
    let key = watch(&writes, Interest::WRITE);
    assert!(writes.wait(key, long));
}
