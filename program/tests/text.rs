//! What programs look like as text.

use std::sync::Arc;

use unisono_core::Collective;
use unisono_program::{
    Algorithm, Context, Emit, Params, Program, Stage, Symmetry, Unsupported, block, blocks, build,
    build_all, scratch, text,
};

/// An algorithm from its loop.
struct Loop<F>(&'static str, u64, F);

impl<F: Fn(&Context, &mut dyn Emit) + Send + Sync> Algorithm for Loop<F> {
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

/// Everybody sends everything to everybody, and reduces in rank order.
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

fn recursive_halving(cx: &Context, b: &mut dyn Emit) {
    let (me, p) = (cx.rank(), cx.size());
    let (mut first, mut d) = (0, p / 2);
    while d > 0 {
        let (low, high) = (
            blocks(first.into(), d.into()),
            blocks((first + d).into(), d.into()),
        );
        let keep_low = me & d == 0;
        b.send(me ^ d, if keep_low { high } else { low });
        b.recv_reduce(me ^ d, if keep_low { low } else { high });
        first += if keep_low { 0 } else { d };
        d /= 2;
    }
}

fn program(
    name: &'static str,
    blocks: u64,
    emit: fn(&Context, &mut dyn Emit),
    cx: &Context,
) -> Program {
    build(&Loop(name, blocks, emit), cx).unwrap()
}

type EmitFn = fn(&Context, &mut dyn Emit);

fn all() -> [(&'static str, Collective, EmitFn); 4] {
    [
        ("ring", Collective::AllReduce, ring),
        ("one-shot", Collective::AllReduce, one_shot),
        ("dissemination", Collective::Barrier, barrier),
        (
            "recursive-halving",
            Collective::AllReduce,
            recursive_halving,
        ),
    ]
}

fn lines(program: &Program) -> usize {
    program.to_string().lines().count() - 1
}

#[test]
fn a_ring_reads_like_its_loop() {
    let cx = Context::full(Collective::AllReduce, 0, 4);
    insta::assert_snapshot!(program("ring", 4, ring, &cx), @r#"
    ring all_reduce: 4 ranks, 4 blocks
    rank 0
      lane 0 to 1    #0     send input[0]
                     #1 x5  send work[3-k]          after 1#k
      lane 1 from 3  #0 x3  recv_reduce input[3-k]
                     #3 x3  recv work[-k]           after 0#k
    "#);
}

#[test]
fn a_set_has_one_legend_and_one_header() {
    let cx = Context::full(Collective::AllReduce, 0, 3);
    let set = build_all(&Loop("one-shot", 1, one_shot), &cx).unwrap();
    let mut out = String::new();
    text::set(&set, &mut out).unwrap();
    insta::assert_snapshot!(out, @r#"
    # lane L to P     messages to rank P, in order; `from P`: messages from it; `local`: reductions and copies
    # #A xN           N equal steps of the lane, the first is its step A; k = 0, 1, ... counts them
    # send, recv      of these blocks: [b], or [b; n] for n blocks from b, modulo the number of blocks
    # recv_reduce     work = (what is named) (+) incoming;  reduce: work = sources in this order, finish: divided by ranks
    # input, work     where a block is read: still in the input, or in its work home; mixed: so many blocks of each in turn
    # scratch[s]      a private block;  [b].c  block b of copy c (channels and parts)
    # after L#A       waits until lane L has done its step A (the same segment of it, or A* all segments); A < 0: no wait
    # @(h, o)         in a schedule of waves, at slot h*S + o for S segments
    # lane .. xN      N lanes alike, j = 0, 1, ... counts them;  item xN in a list: N items, i = 0, 1, ... counts them
    one-shot all_reduce: 3 ranks, 1 block
    rank 0  scratch like [0], [0]
      lane 0 to 1    #0  send input[0]
      lane 1 to 2    #0  send input[0]
      lane 2 from 1  #0  recv scratch[0]
      lane 3 from 2  #0  recv scratch[1]
      lane 4 local   #0  reduce work[0] = input[0] + scratch[0] + scratch[1]  after 0#0, 1#0, 2#0, 3#0
    rank 1  scratch like [0], [0]
      lane 0 to 0    #0  send input[0]
      lane 1 to 2    #0  send input[0]
      lane 2 from 0  #0  recv scratch[0]
      lane 3 from 2  #0  recv scratch[1]
      lane 4 local   #0  reduce work[0] = scratch[0] + input[0] + scratch[1]  after 0#0, 1#0, 2#0, 3#0
    rank 2  scratch like [0], [0]
      lane 0 to 0    #0  send input[0]
      lane 1 to 1    #0  send input[0]
      lane 2 from 0  #0  recv scratch[0]
      lane 3 from 1  #0  recv scratch[1]
      lane 4 local   #0  reduce work[0] = scratch[0] + scratch[1] + input[0]  after 0#0, 1#0, 2#0, 3#0
    "#);
}

#[test]
fn sync_steps_name_no_blocks() {
    let cx = Context::full(Collective::Barrier, 1, 4);
    insta::assert_snapshot!(program("dissemination", 0, barrier, &cx), @r#"
    dissemination barrier: 4 ranks, 0 blocks
    rank 1
      lane 0 to 2    #0  sync_to
      lane 1 from 0  #0  sync_from
      lane 2 to 3    #0  sync_to    after 1#0
      lane 3 from 3  #0  sync_from  after 1#0
    "#);
}

#[test]
fn spans_places_and_stages_are_shown() {
    fn staged(_: &Context, b: &mut dyn Emit) {
        b.stage(Stage { hops: 0, offset: 0 });
        b.recv(1, block(2));
        b.stage(Stage { hops: 1, offset: 0 });
        b.send(1, blocks(1, 3));
        for k in 0..3 {
            b.stage(Stage {
                hops: 2 + k,
                offset: 1,
            });
            b.recv_reduce(1, block(k));
        }
    }
    let cx = Context::full(Collective::AllReduce, 0, 2)
        .with_average(true)
        .with_params(Params::default().with_channels(2));
    insta::assert_snapshot!(program("staged", 4, staged, &cx), @r#"
    staged all_reduce: 2 ranks, 4 blocks, 2 copies, 2 channels, average
    rank 0
      lane 0 from 1       #0     recv work[2].0                                @(0, 0)
                          #1 x2  recv_reduce input[k].0                        after 1#-1+k* @(2+k, 1)
                          #3     recv_reduce work[2].0                         @(4, 1)
      lane 1 to 1         #0     send mixed(1 input, 1 work, 1 input)[1; 3].0  after 0#0* @(1, 0)
      lane 2 from 1 ch 2  #0     recv work[2].1                                @(0, 0)
                          #1 x2  recv_reduce input[k].1                        after 3#-1+k* @(2+k, 1)
                          #3     recv_reduce work[2].1                         @(4, 1)
      lane 3 to 1 ch 2    #0     send mixed(1 input, 1 work, 1 input)[1; 3].1  after 2#0* @(1, 0)
      lane 4 local        #0     reduce work[3].0 = input[3].0, finish         after 1#0*
                          #1 x3  reduce work[k].0 = work[k].0, finish          after 0#1+k
      lane 5 local ch 2   #0     reduce work[3].1 = input[3].1, finish         after 3#0*
                          #1 x3  reduce work[k].1 = work[k].1, finish          after 2#1+k
    "#);
}

#[test]
fn a_regular_program_is_as_short_in_a_world_of_1024() {
    let cx = Context::full(Collective::AllReduce, 500, 1024);
    assert_eq!(lines(&program("ring", 1024, ring, &cx)), 5);
    let mesh = program("one-shot", 1, one_shot, &cx);
    assert!(lines(&mesh) <= 20, "{mesh}");
    let b = program(
        "dissemination",
        0,
        barrier,
        &Context::full(Collective::Barrier, 500, 1024),
    );
    assert!(lines(&b) <= 21, "{b}");
    let h = program("halving", 1024, recursive_halving, &cx.clone());
    assert!(lines(&h) <= 22, "{h}");
}

#[test]
fn lanes_that_advance_evenly_are_one_row() {
    let cx = Context::full(Collective::AllReduce, 0, 6);
    insta::assert_snapshot!(program("one-shot", 1, one_shot, &cx), @r#"
    one-shot all_reduce: 6 ranks, 1 block
    rank 0  scratch like [0] x5
      lane j x5 to 1+j      #0  send input[0]
      lane 5+j x5 from 1+j  #0  recv scratch[j]
      lane 10 local         #0  reduce work[0] = input[0] + scratch[i] x5  after i#0 x10
    "#);
}

#[test]
fn the_alternate_form_explains_itself() {
    let cx = Context::full(Collective::AllReduce, 0, 2);
    let program = program("ring", 2, ring, &cx);
    assert_eq!(format!("{program:#}"), format!("{}{program}", text::LEGEND));
}

#[test]
fn different_programs_have_different_texts() {
    let cx = Context::full(Collective::AllReduce, 0, 5);
    let set: Vec<Arc<Program>> = build_all(&Loop("ring", 5, ring), &cx).unwrap();
    for a in &set {
        let mut other = Program::clone(a);
        assert_eq!(a.to_string(), other.to_string());
        other.lanes[0].runs[1].waits[0].whole = true;
        assert_ne!(a.to_string(), other.to_string());
        other = Program::clone(a);
        other.lanes[0].runs[1].target.stride += 1;
        assert_ne!(a.to_string(), other.to_string());
    }
}

#[test]
fn a_set_reads_back_as_what_it_was() {
    for (name, collective, emit) in all() {
        for (p, channels, plain) in [
            (1, 1, true),
            (2, 1, false),
            (4, 2, true),
            (8, 1, false),
            (16, 3, true),
        ] {
            let cx = Context::full(collective, 0, p)
                .with_commutative(plain)
                .with_average(!plain && collective != Collective::Barrier)
                .with_params(Params::default().with_channels(channels));
            let set = build_all(&Loop(name, p.into(), emit), &cx).unwrap();
            let mut out = String::new();
            text::set(&set, &mut out).unwrap();
            let read: Vec<_> = text::parse(&out)
                .unwrap()
                .into_iter()
                .map(Arc::new)
                .collect();
            assert_eq!(read, set, "{out}");
        }
    }
}

#[test]
fn what_does_not_read_is_named_with_its_place() {
    let text = program("ring", 4, ring, &Context::full(Collective::AllReduce, 0, 4)).to_string();
    for (good, bad, at, expected) in [
        ("all_reduce", "all_of_it", (1, 1), "a collective"),
        ("rank 0", "rank x", (2, 6), "a number"),
        ("lane 1", "lain 1", (5, 3), "`lane`"),
        ("work[3-k]", "work[3-q]", (4, 37), "a number or k, j, i"),
        ("after 0#k", "after 0#k,", (6, 58), "the end of the line"),
        ("after 0#k", "below 0#k", (6, 49), "the end of the line"),
    ] {
        let error = text::parse(&text.replace(good, bad)).unwrap_err();
        assert_eq!(
            (error.line, error.column, error.expected),
            (at.0, at.1, expected),
            "{bad}"
        );
    }
    let error = text::parse("rank 0\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1, column 1: expected a header before the first rank"
    );
}

#[test]
fn the_text_of_1024_ranks_is_about_5_lines_each() {
    struct Rotating;
    impl Algorithm for Rotating {
        fn name(&self) -> &str {
            "ring"
        }
        fn supports(&self, _: &Context) -> Result<(), Unsupported> {
            Ok(())
        }
        fn symmetry(&self, _: &Context) -> Symmetry {
            Symmetry::Rotation
        }
        fn emit(&self, cx: &Context, b: &mut dyn Emit) {
            ring(cx, b);
        }
    }
    let cx = Context::full(Collective::AllReduce, 0, 1024);
    let set = build_all(&Rotating, &cx).unwrap();
    let mut out = String::new();
    text::set(&set, &mut out).unwrap();
    assert!(
        out.lines().count() <= 1024 * 5 + 20,
        "{}",
        out.lines().count()
    );
}

/// One step of a random program: a verb, a peer, a place, a length.
type Random = (u8, u32, i64, u64);

fn random(steps: &[Random], b: &mut dyn Emit) {
    for slot in 0..3 {
        b.copy(scratch(slot), block(0));
    }
    for &(verb, peer, at, len) in steps {
        let span = blocks(at, len);
        match verb {
            0 => b.send(peer, span),
            1 => b.recv(peer, span),
            2 => b.recv_reduce(peer, span),
            3 => b.copy(span, blocks(at + 2, len)),
            4 => b.reduce(block(at), &[block(at), block(0), scratch(len % 3)]),
            5 => b.recv(peer, scratch(len % 3)),
            6 => b.sync_to(peer),
            _ => b.sync_from(peer),
        }
    }
}

proptest::proptest! {
    #[test]
    fn any_program_reads_back_as_what_it_was(
        steps in proptest::collection::vec((0..8_u8, 1..6_u32, 0..7_i64, 0..5_u64), 0..60),
        again in 1..6_usize,
    ) {
        // Repetition makes runs.
        let steps = steps.repeat(again);
        let emit = move |_: &Context, b: &mut dyn Emit| random(&steps, b);
        let cx = Context::full(Collective::AllReduce, 0, 6).with_params(Params::default().with_channels(2));
        let program = build(&Loop("random", 7, emit), &cx).unwrap();
        let text = program.to_string();
        proptest::prop_assert_eq!(text::parse(&text).unwrap(), vec![program], "{}", text);
    }
}
