//! Reports, traces and pictures say what happened.

use unisono_sim::{Cluster, Fault, Network, Op, Record, Report, SimError, owned};

fn report(fault: Option<&str>) -> Report {
    let network = Network::uniform(1_000, 1_000_000_000).with_reduce_rate(1_000_000_000);
    let mut cluster = Cluster::mesh(3).network(network).record();
    if let Some(text) = fault {
        let fault: Fault = text.parse().unwrap();
        cluster = cluster.fault(fault);
    }
    let outcome = cluster.run(|group| async move {
        let group = group.with_algorithm("ring").unwrap();
        let _ = group
            .start(owned::all_reduce(vec![1u32; 3000], Op::Sum))
            .await;
    });
    outcome.report
}

#[test]
fn records_account_for_every_message_and_every_reduction() {
    let report = report(None);
    let (mut messages, mut bytes, mut reduced) = (0, 0, 0);
    for record in &report.records {
        match *record {
            Record::Message {
                start_ps,
                end_ps,
                arrival_ps,
                bytes: size,
                ..
            } => {
                assert_eq!(end_ps - start_ps, size * 1000);
                assert_eq!(arrival_ps, Some(end_ps + 1_000_000));
                (messages, bytes) = (messages + 1, bytes + size);
            }
            Record::Compute { bytes: size, .. } => reduced += size,
            _ => {}
        }
    }
    assert_eq!((messages, bytes), (report.messages, report.bytes()));
    assert_eq!(bytes, 12 * 4000);
    assert_eq!(reduced, 3 * 2 * 4000);
}

#[test]
fn json_is_one_line_and_exact() {
    let json = report(None).to_json();
    assert!(!json.contains('\n'));
    assert!(
        json.starts_with("{\"virtual_us\":28,\"ranks\":[{\"rank\":0,\"finished_us\":28,"),
        "{json}"
    );
    assert!(
        json.contains("{\"from\":0,\"to\":1,\"bytes\":16000,\"messages\":4,\"busy_us\":16}"),
        "{json}"
    );
    assert!(json.ends_with("\"error\":null}"), "{json}");
    let failed = report(Some("crash rank=1 at=1500ns"));
    let json = failed.to_json();
    assert!(
        json.contains("\"rank\":1,\"finished_us\":null,\"crashed_us\":1.5}"),
        "{json}"
    );
    assert!(json.ends_with("\"error\":\"rank 1 was lost\"}"), "{json}");
    assert!(matches!(failed.error, Some(SimError::Failed(_))));
}

#[test]
fn traces_and_pictures_show_every_record() {
    let report = report(None);
    let trace = report.chrome_trace();
    let complete = trace.matches("\"ph\":\"X\"").count();
    assert_eq!(complete, report.records.len());
    assert_eq!(trace.matches('{').count(), trace.matches('}').count());
    let timeline = report.timeline_svg();
    assert_eq!(timeline.matches("#0072b2").count() as u64, report.messages);
    assert_eq!(timeline.matches("#e69f00").count(), 6);
    assert!(timeline.contains("3 ranks, 28.000 us, 12 messages"));
    let links = report.links_svg();
    assert_eq!(links.matches("16000 bytes").count(), 3);
}
