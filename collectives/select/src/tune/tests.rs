use proptest::prelude::*;
use unisono_core::Collective as C;

use super::*;

fn tune(text: &str) -> Tune {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[track_caller]
fn refused(text: &str, position: usize, words: &str) {
    let error = text.parse::<Tune>().unwrap_err();
    assert_eq!(error.position, position, "{text}: {error}");
    assert!(error.to_string().contains(words), "{text}: {error}");
}

#[test]
fn the_last_match_wins_whole() {
    let t = tune("all_reduce=@tcp; *=^ring; all_reduce:-4K=tree");
    let small = t.find(C::AllReduce, 4095, 2).unwrap();
    assert_eq!(
        (small.algorithm.as_deref(), small.transport.as_deref()),
        (Some("tree"), None)
    );
    let large = t.find(C::AllReduce, 4096, 2).unwrap();
    assert!(large.exclude && large.transport.is_none());
    assert_eq!(tune("broadcast=tree").find(C::Reduce, 1, 2), None);
    assert_eq!(tune(" ; ").entries(), []);
}

#[test]
fn sizes_exclude_their_upper_end_and_ranks_include_it() {
    let t = tune("all_gather:1K-2M@ranks=3-8=ring");
    for (bytes, ranks, yes) in [
        (1023, 4, false),
        (1024, 3, true),
        ((2 << 20) - 1, 8, true),
        (2 << 20, 8, false),
        (1024, 2, false),
        (1024, 9, false),
    ] {
        assert_eq!(
            t.find(C::AllGather, bytes, ranks).is_some(),
            yes,
            "{bytes} {ranks}"
        );
    }
    for open in ["*:0-=ring", "*:-=ring", "*@ranks=-=ring", "*@ranks=1-=ring"] {
        assert!(tune(open).find(C::Barrier, u64::MAX, 5).is_some(), "{open}");
    }
}

#[test]
fn variants_and_transports_are_read() {
    let t = tune("all_reduce=ring-bidir(segments=16,channels=2)@rdma");
    let entry = &t.entries()[0];
    assert_eq!((entry.segments, entry.channels), (Some(16), Some(2)));
    assert_eq!(entry.transport.as_deref(), Some("rdma"));
    let t = tune("*=^@tcp");
    assert!(t.entries()[0].exclude && t.entries()[0].algorithm.is_none());
}

#[test]
fn every_refusal_has_its_place() {
    refused(
        "allreduce=ring",
        0,
        "unknown collective `allreduce`; known: *, all_reduce",
    );
    refused(
        "*=ring;  all_gather",
        19,
        "the end of the entry; expected `=`",
    );
    refused("*=", 2, "nothing is asked for");
    refused("*=^", 3, "nothing is asked for");
    refused("=ring", 0, "a collective, or *");
    refused("*:4K-4K=ring", 2, "no size is in 4096-4096");
    refused("*:4X-=ring", 3, "a range of sizes");
    refused("*:99999999999G-=ring", 2, "expected 0 to");
    refused("*@ranks=8-2=ring", 8, "no number of ranks is in 8-2");
    refused("*@ranks=0-=ring", 8, "expected 1 to");
    refused("*@ranks=4=ring", 9, "numbers of ranks");
    refused("*@tcp=ring", 2, "@ranks=a-b");
    refused("*=@udp", 3, "unknown transport `udp`; known: rdma, tcp");
    refused(
        "*=ring(radix=2)",
        7,
        "unknown parameter `radix`; known: channels, segments",
    );
    refused("*=ring(channels=0)", 16, "expected 1 to 256");
    refused("*=ring(segments=65537)", 16, "expected 1 to 65536");
    refused("*=ring()", 7, "a parameter");
    refused("*=ring(channels=1", 17, "`,` or `)`");
    refused("*=ring(channels=1,channels=2)", 18, "stands twice");
    refused("*=^ring(channels=2)", 7, "whole");
    refused("*=ring tree", 6, "found ` `");
    refused("*=ring@tcp@tcp", 10, "the end of the entry");
    refused("*= ring", 2, "an algorithm, or @transport");
    refused("*=ringé", 6, "found `é`");
    let unknown = tune("*=tree; *=rings").check(["ring", "tree"]).unwrap_err();
    assert_eq!(unknown.position, 8);
    assert!(unknown.to_string().contains("`rings`; known: ring, tree"));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z_*:;@=^(), 0-9KMG\u{e9}-]{0,40}") {
        let _ = text.parse::<Tune>();
    }

    #[test]
    fn what_is_printed_reads_back(
        collective in proptest::option::of(proptest::sample::select(&C::ALL[..])),
        lo in proptest::option::of(0u64..1 << 40),
        more in proptest::option::of(1u64..1 << 40),
        ranks in proptest::option::of(1u32..100),
        exclude: bool,
        algorithm in proptest::option::of("[a-z]{1,5}(-[a-z]{1,5})?"),
        channels in proptest::option::of(1u16..256),
        transport in proptest::option::of(proptest::sample::select(&["rdma", "tcp"][..])),
    ) {
        prop_assume!(algorithm.is_some() || transport.is_some());
        let entry = Entry {
            collective,
            lo,
            hi: more.map(|m| lo.unwrap_or(0) + m),
            least_ranks: ranks,
            most_ranks: ranks.map(|r| r + 1),
            exclude,
            channels: channels.filter(|_| algorithm.is_some() && !exclude),
            segments: channels.map(u64::from).filter(|_| algorithm.is_some() && !exclude),
            algorithm,
            transport: transport.map(str::to_owned),
            position: 0,
        };
        let again = tune(&entry.to_string());
        prop_assert_eq!(again.entries(), &[entry]);
    }
}
