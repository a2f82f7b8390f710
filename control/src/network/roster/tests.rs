//! Whole rendezvous in virtual time.

use proptest::prelude::*;

use super::*;
use crate::wire::Terms;

const SECOND: Duration = Duration::from_secs(1);

fn hello(size: Rank, instance: u64) -> Hello {
    Hello {
        terms: Terms {
            size,
            job: "j".into(),
            transport: "tcp".into(),
            channels: 2,
            check: "default".into(),
            big_endian: false,
        },
        instance,
        ticket: 0,
        patience: 3_600_000,
        features: 0b11,
        limits: vec![10, 20],
    }
}

/// Rank 0 of a group of `size`, waiting for a minute.
fn roster(size: Rank) -> Roster {
    Roster::new(hello(size, 0), 77, 60 * SECOND)
}

/// `rank` comes over the link of the same number, or another.
fn come_over(roster: &mut Roster, link: LinkId, rank: Rank, hello: Hello) {
    let visitor = Visitor {
        link,
        rank,
        address: format!("10.0.0.{link}:1"),
    };
    roster.hello(SECOND, visitor, Ok(hello));
}

fn come(roster: &mut Roster, rank: Rank) {
    let size = roster.size();
    come_over(
        roster,
        LinkId::from(rank),
        rank,
        hello(size, u64::from(rank)),
    );
}

fn deeds(roster: &mut Roster) -> Vec<Deed> {
    std::iter::from_fn(|| roster.deed()).collect()
}

fn refusal(deeds: &[Deed]) -> Option<&Refusal> {
    deeds.iter().find_map(|deed| match deed {
        Deed::Failed(refusal) => Some(refusal),
        _ => None,
    })
}

/// Which links are sent a refusal; asserts that all get the same as rank 0.
fn refused(deeds: &[Deed]) -> Vec<LinkId> {
    let ours = refusal(deeds).expect("the group has failed");
    let mut links = Vec::new();
    for deed in deeds {
        if let Deed::Send(link, Frame::Refuse(theirs)) = deed {
            assert_eq!(**theirs, *ours);
            assert!(deeds.contains(&Deed::Close(*link)));
            links.push(*link);
        }
    }
    links.sort_unstable();
    links
}

#[test]
fn ranks_in_any_order_make_a_group() {
    let mut roster = roster(3);
    assert_eq!(deeds(&mut roster), []);
    assert_eq!(roster.missing(), [1, 2]);
    come(&mut roster, 2);
    let nonce = 77;
    assert_eq!(
        deeds(&mut roster),
        [Deed::Send(2, Frame::Accepted { nonce })]
    );
    roster.frame(2, Frame::Card(vec![2]));
    come_over(
        &mut roster,
        1,
        1,
        Hello {
            features: 0b101,
            limits: vec![30, 5, 1],
            ..hello(3, 1)
        },
    );
    let accepted = Deed::Send(1, Frame::Accepted { nonce });
    assert_eq!(deeds(&mut roster), [accepted, Deed::Listen]);
    roster.own_card(vec![0]);
    assert_eq!(deeds(&mut roster), []);
    roster.frame(1, Frame::Card(vec![1]));
    let cards = Cards {
        cards: vec![vec![0], vec![1], vec![2]],
        features: 0b1,
        limits: vec![10, 5],
    };
    assert_eq!(
        deeds(&mut roster),
        [
            Deed::Send(1, Frame::Cards(Box::new(cards.clone()))),
            Deed::Send(2, Frame::Cards(Box::new(cards.clone()))),
            Deed::Connect(cards),
        ]
    );
    roster.frame(1, Frame::Barrier(CONNECTED));
    roster.own_arrival();
    assert_eq!(deeds(&mut roster), []);
    assert_eq!(roster.missing(), [2]);
    roster.frame(2, Frame::Barrier(CONNECTED));
    assert_eq!(
        deeds(&mut roster),
        [
            Deed::Send(1, Frame::Barrier(CONNECTED)),
            Deed::Send(2, Frame::Barrier(CONNECTED)),
            Deed::Joined(BTreeMap::from([(1, 1), (2, 2)])),
        ]
    );
    roster.tick(100 * SECOND);
    assert_eq!(deeds(&mut roster), []);
}

#[test]
fn two_processes_of_one_rank_fail_everybody() {
    let mut roster = roster(4);
    come(&mut roster, 1);
    come(&mut roster, 2);
    deeds(&mut roster);
    come_over(&mut roster, 9, 1, hello(4, 99));
    let deeds = deeds(&mut roster);
    assert_eq!(refused(&deeds), [1, 2, 9]);
    let text = refusal(&deeds).unwrap().to_string();
    assert_eq!(
        text,
        "rank 1 came twice: from 10.0.0.1:1 and from 10.0.0.9:1"
    );
}

#[test]
fn a_second_rank_0_is_a_duplicate_too() {
    let mut roster = roster(2);
    come_over(&mut roster, 9, 0, hello(2, 99));
    assert_eq!(refused(&deeds(&mut roster)), [9]);
}

#[test]
fn the_same_process_may_come_again() {
    let mut roster = roster(2);
    come(&mut roster, 1);
    deeds(&mut roster);
    come_over(&mut roster, 5, 1, hello(2, 1));
    let deeds = deeds(&mut roster);
    assert_eq!(deeds[0], Deed::Close(1));
    assert_eq!(refusal(&deeds), None);
    roster.closed(1); // The old connection ends later: of no concern.
    roster.frame(1, Frame::Card(vec![]));
    assert_eq!(roster.missing(), []);
}

#[test]
fn a_rank_that_goes_before_all_have_met_may_be_started_again() {
    let mut roster = roster(3);
    come(&mut roster, 1);
    roster.closed(1);
    assert_eq!(roster.missing(), [1, 2]);
    come_over(&mut roster, 5, 1, hello(3, 99));
    assert_eq!(refusal(&deeds(&mut roster)), None);
    assert_eq!(roster.missing(), [2]);
}

#[test]
fn a_rank_that_goes_while_connecting_is_lost() {
    let mut roster = roster(3);
    come(&mut roster, 1);
    come(&mut roster, 2);
    roster.own_card(vec![]);
    roster.frame(1, Frame::Card(vec![]));
    roster.frame(2, Frame::Card(vec![]));
    deeds(&mut roster);
    roster.closed(2);
    let deeds = deeds(&mut roster);
    assert_eq!(refusal(&deeds), Some(&Refusal::Lost { rank: 2 }));
    assert!(refused(&deeds).contains(&1));
}

#[test]
fn a_rank_out_of_range_fails_everybody() {
    let mut roster = roster(3);
    come(&mut roster, 2);
    deeds(&mut roster);
    come_over(&mut roster, 7, 7, hello(3, 7));
    let deeds = deeds(&mut roster);
    assert_eq!(refused(&deeds), [2, 7]);
    assert_eq!(
        refusal(&deeds).unwrap().to_string(),
        "rank 7 does not exist in a group of 3 (ranks 0 to 2)"
    );
}

#[test]
fn ranks_that_want_different_groups_fail_everybody() {
    let wants = |change: fn(&mut Terms)| {
        let mut hello = hello(3, 2);
        change(&mut hello.terms);
        Ok(hello)
    };
    for (hello, text) in [
        (wants(|t| t.size = 4), "size: 3 at rank 0, 4 at rank 2"),
        (
            wants(|t| t.job = "k".into()),
            "job: \"j\" at rank 0, \"k\" at rank 2",
        ),
        (
            wants(|t| t.transport = "rdma".into()),
            "transport: tcp at rank 0, rdma at rank 2",
        ),
        (
            wants(|t| t.check = "full".into()),
            "check: default at rank 0, full at rank 2",
        ),
        (
            wants(|t| t.channels = 5),
            "number of channels: 2 at rank 0, 5 at rank 2",
        ),
        (Err(9), "wire version: 2 at rank 0, 9 at rank 2"),
    ] {
        let mut roster = roster(3);
        come(&mut roster, 1);
        let address = String::new();
        let visitor = Visitor {
            link: 2,
            rank: 2,
            address,
        };
        roster.hello(SECOND, visitor, hello);
        let deeds = deeds(&mut roster);
        assert_eq!(refused(&deeds), [1, 2]);
        let refusal = refusal(&deeds).unwrap().to_string();
        assert_eq!(refusal, format!("ranks disagree on the {text}"));
    }
}

#[test]
fn the_deadline_names_who_is_missing_to_all_who_came() {
    let mut roster = roster(5);
    come(&mut roster, 1);
    come(&mut roster, 3);
    roster.tick(59 * SECOND);
    assert_eq!(refusal(&deeds(&mut roster)), None);
    assert!(!roster.all_told());
    roster.tick(60 * SECOND);
    let failed = deeds(&mut roster);
    assert_eq!(refused(&failed), [1, 3]);
    let text = "rank 2, rank 4 did not come within 60 s";
    assert_eq!(refusal(&failed).unwrap().to_string(), text);
    // Who comes late hears the same.
    for late in [2, 4] {
        come(&mut roster, late);
        let deeds = deeds(&mut roster);
        let Deed::Send(_, Frame::Refuse(refusal)) = &deeds[0] else {
            panic!("{deeds:?}");
        };
        assert_eq!(refusal.to_string(), text);
    }
    assert!(roster.all_told());
}

#[test]
fn the_most_impatient_rank_sets_the_deadline() {
    let mut roster = roster(3);
    let patience = 2000;
    come_over(
        &mut roster,
        1,
        1,
        Hello {
            patience,
            ..hello(3, 1)
        },
    );
    assert_eq!(roster.deadline(), 3 * SECOND);
    roster.tick(3 * SECOND);
    assert_eq!(refused(&deeds(&mut roster)), [1]);
}

#[test]
fn ranks_that_do_not_connect_in_time_are_named() {
    let mut roster = roster(3);
    come(&mut roster, 1);
    come(&mut roster, 2);
    roster.own_card(vec![]);
    roster.frame(1, Frame::Card(vec![]));
    roster.frame(2, Frame::Card(vec![]));
    roster.own_arrival();
    roster.frame(1, Frame::Barrier(CONNECTED));
    deeds(&mut roster);
    roster.tick(60 * SECOND);
    let (ranks, millis) = (vec![2], 60_000);
    assert_eq!(
        refusal(&deeds(&mut roster)),
        Some(&Refusal::Unready { ranks, millis })
    );
}

#[test]
fn a_member_that_cannot_connect_tells_everybody() {
    let mut roster = roster(3);
    come(&mut roster, 1);
    come(&mut roster, 2);
    deeds(&mut roster);
    let text = "no route".to_owned();
    let cause = Refusal::Connect { rank: 2, text };
    roster.frame(2, Frame::Refuse(Box::new(cause.clone())));
    let deeds = deeds(&mut roster);
    assert_eq!(refused(&deeds), [1, 2]);
    assert_eq!(refusal(&deeds), Some(&cause));
}

#[test]
fn who_followed_an_old_file_is_sent_away_alone() {
    let mut roster = roster(2);
    come_over(
        &mut roster,
        1,
        1,
        Hello {
            ticket: 12,
            ..hello(3, 1)
        },
    );
    assert_eq!(
        deeds(&mut roster),
        [Deed::Send(1, Frame::Retry), Deed::Close(1)]
    );
    assert_eq!(roster.missing(), [1]);
}

#[test]
fn a_member_that_talks_nonsense_is_closed_and_may_come_again() {
    let mut roster = roster(3);
    come(&mut roster, 1);
    deeds(&mut roster);
    roster.frame(1, Frame::Bye);
    assert_eq!(deeds(&mut roster), [Deed::Close(1)]);
    assert_eq!(roster.missing(), [1, 2]);
}

#[test]
fn the_first_refusal_wins() {
    let mut roster = roster(3);
    come(&mut roster, 1);
    roster.own_failure("first".into());
    let first = deeds(&mut roster);
    roster.frame(1, Frame::Refuse(Box::new(Refusal::Lost { rank: 2 })));
    roster.closed(1);
    roster.tick(60 * SECOND);
    assert_eq!(refused(&first), [1]);
    assert_eq!(refusal(&deeds(&mut roster)), None);
}

proptest! {
    /// Whatever happens, in whatever order: one end, the same for all, and not a word to anybody after it.
    #[test]
    fn there_is_one_end_and_all_are_told_the_same(
        events in prop::collection::vec((0..9u8, 1..5u32, 0..8u64), 0..60),
    ) {
        let mut roster = roster(4);
        let mut seconds = 0;
        let mut ends = Vec::new();
        let mut told = Vec::new();
        for (event, rank, link) in events {
            match event {
                0..=2 => come_over(&mut roster, link, rank, hello(4, link % 2)),
                3 => roster.frame(link, Frame::Card(vec![rank as u8])),
                4 => roster.frame(link, Frame::Barrier(CONNECTED)),
                5 => roster.closed(link),
                6 => roster.own_card(vec![0]),
                7 => roster.own_arrival(),
                _ => {
                    seconds += 5;
                    roster.tick(seconds * SECOND);
                }
            }
            for deed in deeds(&mut roster) {
                match deed {
                    Deed::Failed(refusal) => ends.push(Some(refusal)),
                    Deed::Joined(links) => {
                        prop_assert_eq!(links.keys().copied().collect::<Vec<_>>(), [1, 2, 3]);
                        ends.push(None);
                    }
                    Deed::Connect(cards) => prop_assert_eq!(cards.cards.len(), 4),
                    Deed::Send(_, Frame::Refuse(refusal)) => told.push(*refusal),
                    _ => {}
                }
            }
            prop_assert!(ends.len() <= 1);
        }
        for refusal in told {
            prop_assert_eq!(Some(&Some(refusal)), ends.first());
        }
    }
}
