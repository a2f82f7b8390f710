//! What the space-time picture contains.

use std::sync::Arc;

use unisono_core::Collective;
use unisono_program::draw::{DrawError, MAX_MESSAGES, svg};
use unisono_program::{
    Algorithm, Context, Emit, Program, Unsupported, block, blocks, build_all, scratch,
};

/// An algorithm from its loop.
struct Loop(&'static str, u64, fn(&Context, &mut dyn Emit));

impl Algorithm for Loop {
    fn name(&self) -> &str {
        self.0
    }
    fn supports(&self, _: &Context) -> Result<(), Unsupported> {
        Ok(())
    }
    fn blocks(&self, _: &Context) -> u64 {
        self.1
    }
    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        (self.2)(cx, b);
    }
}

fn ring(cx: &Context, b: &mut dyn Emit) {
    let (me, p) = (cx.me(), i64::from(cx.size()));
    let (left, right) = (cx.ring().left(), cx.ring().right());
    for k in 0..p - 1 {
        b.send(right, block(me - k));
        b.recv_reduce(left, block(me - k - 1));
    }
    for k in 0..p - 1 {
        b.send(right, block(me + 1 - k));
        b.recv(left, block(me - k));
    }
}

fn one_shot(cx: &Context, b: &mut dyn Emit) {
    let peers: Vec<u32> = (0..cx.size()).filter(|&q| q != cx.rank()).collect();
    for &q in &peers {
        b.send(q, block(0));
    }
    for &q in &peers {
        b.recv(q, scratch(q.into()));
    }
    let part = |q: u32| {
        if q == cx.rank() {
            block(0)
        } else {
            scratch(q.into())
        }
    };
    let parts: Vec<_> = (0..cx.size()).map(part).collect();
    b.reduce(block(0), &parts);
}

fn barrier(cx: &Context, b: &mut dyn Emit) {
    let (me, p) = (cx.rank(), cx.size());
    let mut d = 1;
    while d < p {
        b.sync_to((me + d) % p);
        b.sync_from((me + p - d) % p);
        d *= 2;
    }
}

/// Two ranks exchange three blocks, of which the last wraps.
fn spans(cx: &Context, b: &mut dyn Emit) {
    let other = 1 - cx.rank();
    b.send(other, blocks(4, 3));
    b.recv_reduce(other, blocks(4, 3));
}

/// The root gathers in rank order though rank 2 is there first.
fn patient(cx: &Context, b: &mut dyn Emit) {
    match cx.rank() {
        0 => {
            b.recv_reduce(1, block(0));
            b.recv_reduce(2, block(0));
        }
        1 => {
            b.recv_reduce(3, block(0));
            b.send(0, block(0));
        }
        2 => b.send(0, block(0)),
        _ => b.send(1, block(0)),
    }
}

fn set(
    name: &'static str,
    blocks: u64,
    emit: fn(&Context, &mut dyn Emit),
    c: Collective,
    p: u32,
) -> Vec<Arc<Program>> {
    build_all(&Loop(name, blocks, emit), &Context::full(c, 0, p)).unwrap()
}

/// Number of elements with all these classes.
fn count(picture: &str, classes: &str) -> usize {
    let document = roxmltree::Document::parse(picture).unwrap();
    let has = |n: &roxmltree::Node<'_, '_>| {
        let own: Vec<&str> = n.attribute("class").unwrap_or("").split(' ').collect();
        classes.split(' ').all(|c| own.contains(&c))
    };
    document.descendants().filter(has).count()
}

fn titles(picture: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(picture).unwrap();
    let titles = document.descendants().filter(|n| n.has_tag_name("title"));
    titles.filter_map(|n| n.text().map(str::to_owned)).collect()
}

#[test]
fn every_message_is_one_arrow() {
    for p in [1, 2, 4, 9, 17, 40] {
        let picture = svg(&set("ring", p.into(), ring, Collective::AllReduce, p)).unwrap();
        let half = (p * (p - 1)) as usize;
        assert_eq!(count(&picture, "message reduce"), half, "{p}");
        assert_eq!(count(&picture, "message receive"), half, "{p}");
        assert_eq!(count(&picture, "message"), 2 * half, "{p}");
    }
}

#[test]
fn a_ring_moves_block_by_block_in_two_p_minus_two_slots() {
    let picture = svg(&set("ring", 4, ring, Collective::AllReduce, 4)).unwrap();
    let titles = titles(&picture);
    for expected in [
        "ring all_reduce",
        "slot 0: rank 0 to rank 1, block 0, reduced",
        "slot 0: rank 3 to rank 0, block 3, reduced",
        "slot 2: rank 1 to rank 2, block 3, reduced",
        "slot 3: rank 0 to rank 1, block 1",
        "slot 5: rank 2 to rank 3, block 1",
    ] {
        assert!(
            titles.iter().any(|t| t == expected),
            "{expected}: {titles:#?}"
        );
    }
    assert!(picture.contains("24 messages") && picture.contains("6 slots"));
    assert!(!titles.iter().any(|t| t.starts_with("slot 6")));
}

#[test]
fn a_one_shot_mesh_takes_one_slot_and_reduces_once_a_rank() {
    let picture = svg(&set("one-shot", 1, one_shot, Collective::AllReduce, 4)).unwrap();
    assert_eq!(count(&picture, "message receive"), 12);
    assert_eq!(count(&picture, "mark reduce"), 4);
    assert!(
        titles(&picture)
            .iter()
            .filter(|t| t.starts_with("slot"))
            .all(|t| t.starts_with("slot 0"))
    );
}

#[test]
fn syncs_are_dashed_and_have_no_colour() {
    let picture = svg(&set("dissemination", 0, barrier, Collective::Barrier, 8)).unwrap();
    assert_eq!(count(&picture, "message sync"), 24);
    assert_eq!(
        picture.matches("stroke-dasharray").count(),
        24 + 1,
        "one is the legend's"
    );
}

#[test]
fn spans_are_named_by_their_ends() {
    let picture = svg(&set("spans", 6, spans, Collective::AllReduce, 2)).unwrap();
    assert_eq!(picture.matches(">4\u{2013}0<").count(), 2);
    assert_eq!(
        titles(&picture)[1],
        "slot 0: rank 0 to rank 1, 3 blocks from 4, reduced"
    );
}

#[test]
fn a_message_that_must_wait_lies_on_the_line_of_its_receiver() {
    let picture = svg(&set("patient", 1, patient, Collective::Reduce, 4)).unwrap();
    assert_eq!(count(&picture, "message"), 3);
    let document = roxmltree::Document::parse(&picture).unwrap();
    let waits = |n: &roxmltree::Node<'_, '_>| {
        n.parent().and_then(|p| p.attribute("class")) == Some("message reduce")
            && n.attribute("stroke-opacity").is_none()
            && n.attribute("d").is_some_and(|d| d.contains('H'))
    };
    assert_eq!(document.descendants().filter(waits).count(), 1);
}

#[test]
fn no_two_signs_on_a_line_share_a_place() {
    let picture = svg(&set("one-shot", 1, one_shot, Collective::AllReduce, 8)).unwrap();
    let document = roxmltree::Document::parse(&picture).unwrap();
    let ends = document
        .descendants()
        .find(|n| n.attribute("class") == Some("ends"))
        .unwrap();
    let mut tips: Vec<String> = ends
        .children()
        .filter_map(|n| n.attribute("points"))
        .map(|points| points.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(tips.len(), 56);
    tips.sort();
    tips.dedup();
    assert_eq!(tips.len(), 56);
}

#[test]
fn everything_lies_within_the_picture() {
    for (name, blocks, emit, collective, p) in [
        (
            "ring",
            4,
            ring as fn(&Context, &mut dyn Emit),
            Collective::AllReduce,
            4,
        ),
        ("ring", 30, ring, Collective::AllReduce, 30),
        ("one-shot", 1, one_shot, Collective::AllReduce, 16),
        ("dissemination", 0, barrier, Collective::Barrier, 200),
    ] {
        let picture = svg(&set(name, blocks, emit, collective, p)).unwrap();
        let document = roxmltree::Document::parse(&picture).unwrap();
        let number = |n: &roxmltree::Node<'_, '_>, a: &str| {
            n.attribute(a).and_then(|v| v.parse::<f64>().ok())
        };
        let root = document.root_element();
        let (width, height) = (
            number(&root, "width").unwrap(),
            number(&root, "height").unwrap(),
        );
        for node in document.descendants() {
            for (attribute, limit) in [
                ("x", width),
                ("x2", width),
                ("cx", width),
                ("y", height),
                ("y2", height),
                ("cy", height),
            ] {
                let value = number(&node, attribute).unwrap_or(0.0);
                assert!(
                    (0.0..=limit).contains(&value),
                    "{name} {p}: {attribute}={value} of {limit}"
                );
            }
        }
    }
}

#[test]
fn names_are_escaped() {
    let picture = svg(&set("a<b>&\"c\"", 4, ring, Collective::AllReduce, 4)).unwrap();
    assert_eq!(titles(&picture)[0], "a<b>&\"c\" all_reduce");
}

#[test]
fn too_many_messages_are_a_typed_error() {
    let error = svg(&set("ring", 80, ring, Collective::AllReduce, 80)).unwrap_err();
    assert_eq!(
        error,
        DrawError::TooManyMessages {
            messages: 2 * 80 * 79,
            limit: MAX_MESSAGES
        }
    );
    assert!(
        error.to_string().contains("12640 messages are too many"),
        "{error}"
    );
}

#[test]
fn a_set_with_a_rank_missing_is_a_typed_error() {
    let mut programs = set("ring", 4, ring, Collective::AllReduce, 4);
    programs.remove(2);
    let error = svg(&programs).unwrap_err();
    assert_eq!(
        error,
        DrawError::Incomplete {
            size: 4,
            place: 2,
            rank: Some(3)
        }
    );
    let error = svg(&[]).unwrap_err();
    assert_eq!(
        error,
        DrawError::Incomplete {
            size: 1,
            place: 0,
            rank: None
        }
    );
}

#[test]
fn programs_that_do_not_complete_have_no_picture() {
    fn everybody_hears_first(cx: &Context, b: &mut dyn Emit) {
        let other = 1 - cx.rank();
        b.recv(other, block(0));
        b.send(other, block(0));
    }
    let error = svg(&set(
        "stuck",
        1,
        everybody_hears_first,
        Collective::AllReduce,
        2,
    ))
    .unwrap_err();
    assert!(matches!(error, DrawError::Stuck(_)), "{error}");
}
