//! What each launcher's variables mean, from maps of variables alone.

use std::io;
use std::path::{Path, PathBuf};

use unisono_control::env::launchers::{Hosts, Launcher, Machine, Warning};
use unisono_control::{Environment, EnvironmentError};

type Variables<'a> = &'a [(&'a str, &'a str)];

const TORCHRUN: Variables = &[
    ("RANK", "5"),
    ("WORLD_SIZE", "8"),
    ("LOCAL_RANK", "1"),
    ("LOCAL_WORLD_SIZE", "4"),
    ("GROUP_RANK", "1"),
    ("GROUP_WORLD_SIZE", "2"),
    ("MASTER_ADDR", "node0"),
    ("MASTER_PORT", "29500"),
    ("TORCHELASTIC_RUN_ID", "none"),
];

const MPIRUN: Variables = &[
    ("OMPI_COMM_WORLD_RANK", "1"),
    ("OMPI_COMM_WORLD_SIZE", "3"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "3"),
    ("PMIX_NAMESPACE", "prterun-node-18364@1"),
    ("PMIX_RANK", "1"),
    ("PRTE_LAUNCHED", "1"),
];

const SRUN: Variables = &[
    ("SLURM_PROCID", "3"),
    ("SLURM_NTASKS", "4"),
    ("SLURM_JOB_ID", "77"),
    ("SLURM_JOBID", "77"),
    ("SLURM_STEP_ID", "0"),
    ("SLURM_STEP_NUM_NODES", "2"),
    ("SLURM_STEP_NODELIST", "gpu[07-08]"),
    ("SLURM_JOB_NODELIST", "gpu[01-16]"),
    ("SLURM_JOB_NUM_NODES", "16"),
];

/// A machine with a few files: as many ranks as the first digit says, then the first address and the devices.
fn machine() -> Machine {
    let mut machine = Machine::here(|text| {
        let text = String::from_utf8_lossy(text);
        let mut words = text.split(' ');
        let size = words.next().unwrap_or_default().parse();
        let mut hosts = Hosts::new(size.map_err(|_| "it is no list of hosts".to_owned())?);
        hosts.first = words.next().filter(|w| *w != "-").map(str::to_owned);
        hosts.devices = words.next().unwrap_or_default().to_owned();
        Ok(hosts)
    });
    machine.temp = PathBuf::from("/tmp");
    machine.parent = Some(42);
    machine.read = |path: &Path| {
        Ok(match path.to_str() {
            Some("ring") => b"4 10.0.0.1:5000".to_vec(),
            Some("no-address") => b"4".to_vec(),
            Some("empty") => b"\n".to_vec(),
            Some("matrix" | "copy") => b"4 - abcd".to_vec(),
            Some("other-matrix") => b"4 - dcba".to_vec(),
            Some("matrix3") => b"3 - abc".to_vec(),
            Some("broken") => b"{".to_vec(),
            _ => return Err(io::ErrorKind::NotFound.into()),
        })
    };
    machine
}

fn discover(parts: &[Variables]) -> Result<Environment, EnvironmentError> {
    // Later parts change earlier ones.
    let mut all: Vec<(&str, &str)> = Vec::new();
    for (name, value) in parts.iter().copied().flatten() {
        all.retain(|(n, _)| n != name);
        if *value != "-" {
            all.push((name, value));
        }
    }
    Environment::discover_in(all, &machine())
}

/// Rank, size, coordinator.
fn place(parts: &[Variables]) -> (u32, u32, String) {
    let place = discover(parts).unwrap().place.unwrap();
    (place.rank, place.size, place.coordinator.to_string())
}

#[track_caller]
fn assert_place(parts: &[Variables], rank: u32, size: u32, coordinator: &str) {
    let found = place(parts);
    assert_eq!(found, (rank, size, coordinator.to_owned()), "{parts:?}");
}

/// Where ranks of this machine meet.
fn file(parts: &[Variables]) -> String {
    let (_, _, coordinator) = place(parts);
    assert!(
        coordinator.starts_with("file:///tmp/unisono-"),
        "{coordinator}"
    );
    coordinator
}

fn error(parts: &[Variables]) -> String {
    let text = discover(parts).unwrap_err().to_string();
    assert!(!text.contains('\n'));
    text
}

#[test]
fn no_launcher_is_no_rank_and_ours_needs_no_other() {
    let nothing = discover(&[&[("PATH", "/bin"), ("SLURM_NTASKS", "8"), ("WORLD_SIZE", "8")]]);
    let nothing = nothing.unwrap();
    assert_eq!((nothing.place, nothing.launcher), (None, None));
    let own: Variables = &[
        ("UNISONO_RANK", "1"),
        ("UNISONO_SIZE", "2"),
        ("UNISONO_COORDINATOR", "h:5000"),
    ];
    assert_place(&[own], 1, 2, "h:5000");
    assert_eq!(discover(&[own]).unwrap().launcher, Some(Launcher::Unisono));
    let text = error(&[own, &[("UNISONO_SIZE", "-")]]);
    assert!(text.starts_with("UNISONO_SIZE is not set"), "{text}");
}

#[test]
fn mlx_ring_meets_at_the_first_address_of_its_hostfile() {
    let ring: Variables = &[("MLX_RANK", "2"), ("MLX_HOSTFILE", "ring")];
    assert_place(&[ring], 2, 4, "10.0.0.1:5000");
    assert_eq!(discover(&[ring]).unwrap().launcher, Some(Launcher::Mlx));
    let alone: Variables = &[("MLX_RANK", "0"), ("MLX_HOSTFILE", "empty")];
    let (rank, size, _) = place(&[alone]);
    assert_eq!((rank, size), (0, 1));
}

#[test]
fn jaccl_meets_at_its_coordinator_under_either_name() {
    for (rank, devices, coordinator) in [
        ("MLX_RANK", "MLX_IBV_DEVICES", "MLX_JACCL_COORDINATOR"),
        ("JACCL_RANK", "JACCL_IBV_DEVICES", "JACCL_COORDINATOR"),
        ("MLX_RANK", "JACCL_IBV_DEVICES", "MLX_JACCL_COORDINATOR"),
    ] {
        let all = [
            (rank, "3"),
            (devices, "matrix"),
            (coordinator, "10.0.0.9:32323"),
        ];
        assert_place(&[&all], 3, 4, "10.0.0.9:32323");
        let found = discover(&[&all, &[("MLX_JACCL_RING", "1")]]).unwrap();
        assert_eq!(found.prefer_ring, Some(true));
        assert_eq!(found.devices.as_deref(), Some(Path::new("matrix")));
    }
    let both: Variables = &[
        ("MLX_RANK", "0"),
        ("JACCL_RANK", "0"),
        ("MLX_HOSTFILE", "ring"),
        ("MLX_IBV_DEVICES", "matrix"),
        ("JACCL_IBV_DEVICES", "copy"),
        ("JACCL_COORDINATOR", "h:1"),
    ];
    assert_place(&[both], 0, 4, "h:1");
}

#[test]
fn mlx_nccl_and_torchrun_meet_one_port_after_the_other_library() {
    let nccl: Variables = &[
        ("MLX_RANK", "1"),
        ("MLX_WORLD_SIZE", "2"),
        ("NCCL_HOST_IP", "10.0.0.1"),
        ("NCCL_PORT", "12345"),
    ];
    assert_place(&[nccl], 1, 2, "10.0.0.1:12346");
    assert_place(&[TORCHRUN], 5, 8, "node0:29501");
    assert_place(
        &[TORCHRUN, &[("MASTER_PORT", "65535")]],
        5,
        8,
        "node0:65534",
    );
    assert_place(
        &[TORCHRUN, &[("MASTER_ADDR", "fd00::1")]],
        5,
        8,
        "[fd00::1]:29501",
    );
    assert_place(
        &[TORCHRUN, &[("MASTER_ADDR", "fe80::1%eth0")]],
        5,
        8,
        "[fe80::1%eth0]:29501",
    );
    assert_place(
        &[TORCHRUN, &[("MASTER_ADDR", "[fd00::1]")]],
        5,
        8,
        "[fd00::1]:29501",
    );
}

#[test]
fn torchrun_on_one_machine_meets_in_a_file_of_its_run() {
    let here: Variables = &[("LOCAL_WORLD_SIZE", "8")];
    let first = file(&[TORCHRUN, here]);
    assert_eq!(first, file(&[TORCHRUN, here, &[("RANK", "0")]]));
    // Two runs without a name have different ports.
    assert_ne!(first, file(&[TORCHRUN, here, &[("MASTER_PORT", "29501")]]));
    // Without an agent there is no name: the four variables set by hand.
    let by_hand: Variables = &[("TORCHELASTIC_RUN_ID", "-")];
    assert_place(&[TORCHRUN, here, by_hand], 5, 8, "node0:29501");
}

#[test]
fn mpirun_on_one_machine_meets_in_a_file_of_its_job() {
    let first = file(&[MPIRUN]);
    assert!(
        first.starts_with("file:///tmp/unisono-openmpi-prterun-node-18364-1-"),
        "{first}"
    );
    assert_eq!(first, file(&[MPIRUN, &[("OMPI_COMM_WORLD_RANK", "0")]]));
    let old: Variables = &[
        ("PMIX_NAMESPACE", "-"),
        ("OMPI_MCA_ess_base_jobid", "729153537"),
    ];
    assert_ne!(first, file(&[MPIRUN, old]));
    assert_ne!(first, file(&[MPIRUN, &[("UNISONO_JOB", "b")]]));
    let found = discover(&[MPIRUN]).unwrap();
    assert_eq!(found.job.as_deref(), Some("openmpi prterun-node-18364@1"));
    assert_eq!(
        discover(&[MPIRUN, &[("UNISONO_JOB", "b")]])
            .unwrap()
            .job
            .as_deref(),
        Some("b")
    );
}

#[test]
fn mpirun_on_several_machines_needs_to_be_told_where() {
    let several: Variables = &[("OMPI_COMM_WORLD_LOCAL_SIZE", "2")];
    let text = error(&[MPIRUN, several]);
    assert!(
        text.contains("one of 3 ranks, 2 of them on this machine"),
        "{text}"
    );
    assert!(
        text.contains("set UNISONO_COORDINATOR to HOST:PORT"),
        "{text}"
    );
    let told: Variables = &[("UNISONO_COORDINATOR", "node1:5000")];
    assert_place(&[MPIRUN, several, told], 1, 3, "node1:5000");
    let master: Variables = &[("MASTER_ADDR", "node1"), ("MASTER_PORT", "29500")];
    assert_place(&[MPIRUN, several, master], 1, 3, "node1:29501");
}

#[test]
fn srun_on_several_nodes_meets_at_the_first_node_of_the_step() {
    let (rank, size, coordinator) = place(&[SRUN]);
    assert_eq!((rank, size), (3, 4));
    let (host, port) = coordinator.split_once(':').unwrap();
    assert_eq!(host, "gpu07");
    assert!((20_000..30_000).contains(&port.parse().unwrap()), "{port}");
    assert_eq!(coordinator, place(&[SRUN, &[("SLURM_PROCID", "0")]]).2);
    assert_ne!(coordinator, place(&[SRUN, &[("SLURM_STEP_ID", "1")]]).2);
    // A task order of one's own: rank 0 may be on any node.
    let text = error(&[SRUN, &[("SLURM_DISTRIBUTION", "arbitrary")]]);
    assert!(text.contains("set UNISONO_COORDINATOR"), "{text}");
}

#[test]
fn srun_on_one_node_meets_in_a_file_of_its_step() {
    let one: Variables = &[
        ("SLURM_STEP_NUM_NODES", "1"),
        ("SLURM_STEP_NODELIST", "gpu07"),
    ];
    let first = file(&[SRUN, one]);
    assert_ne!(first, file(&[SRUN, one, &[("SLURM_STEP_ID", "1")]]));
    // The list alone tells as much.
    assert_eq!(first, file(&[SRUN, one, &[("SLURM_STEP_NUM_NODES", "-")]]));
    assert_eq!(
        discover(&[SRUN, one]).unwrap().job.as_deref(),
        Some("slurm 77.0")
    );
}

#[test]
fn pmi_without_a_job_meets_in_a_file_of_the_process_that_started_all() {
    let pmi: Variables = &[
        ("PMI_RANK", "0"),
        ("PMI_SIZE", "2"),
        ("MPI_LOCALNRANKS", "2"),
    ];
    assert!(file(&[pmi]).contains("unisono-pmi-parent-42-"));
    assert_eq!(discover(&[pmi]).unwrap().warnings, []);
    let named: Variables = &[("PMI_JOBID", "9.1")];
    assert!(file(&[pmi, named]).contains("unisono-pmi-9-1-"));
    // Nothing says where the ranks are: they are looked for here, with a word about it.
    let unknown: Variables = &[("MPI_LOCALNRANKS", "-")];
    assert_eq!(file(&[pmi, unknown]), file(&[pmi]));
    let warnings = discover(&[pmi, unknown]).unwrap().warnings;
    assert!(matches!(
        warnings[..],
        [Warning::Machines {
            variable: "PMI_RANK",
            size: 2,
            ..
        }]
    ));
    // PMI that Slurm has started knows from Slurm.
    let slurm: Variables = &[("PMI_RANK", "3"), ("PMI_SIZE", "4"), ("PMI_JOBID", "77.0")];
    assert!(place(&[SRUN, slurm]).2.starts_with("gpu07:"));
}

#[test]
fn sources_that_disagree_are_an_error_naming_both() {
    let ring: Variables = &[("MLX_RANK", "1"), ("MLX_HOSTFILE", "ring")];
    for (parts, expected) in [
        (
            &[ring, &[("JACCL_RANK", "2")]][..],
            "JACCL_RANK is 2, but MLX_RANK is 1",
        ),
        (
            &[ring, &[("UNISONO_RANK", "0")]],
            "UNISONO_RANK is 0, but MLX_RANK is 1",
        ),
        (
            &[ring, &[("UNISONO_SIZE", "3")]],
            "UNISONO_SIZE is 3, but MLX_HOSTFILE is ring (4 ranks)",
        ),
        (
            &[ring, &[("JACCL_IBV_DEVICES", "matrix3")]],
            "MLX_HOSTFILE is ring (4 ranks), but JACCL_IBV_DEVICES is matrix3 (3 ranks)",
        ),
        (
            &[
                ring,
                &[
                    ("MLX_IBV_DEVICES", "other-matrix"),
                    ("JACCL_IBV_DEVICES", "matrix"),
                ],
            ],
            "JACCL_IBV_DEVICES is matrix, but MLX_IBV_DEVICES is other-matrix (another matrix)",
        ),
        (
            &[
                ring,
                &[
                    ("JACCL_COORDINATOR", "a:1"),
                    ("MLX_JACCL_COORDINATOR", "b:1"),
                ],
            ],
            "JACCL_COORDINATOR is a:1, but MLX_JACCL_COORDINATOR is b:1",
        ),
        (
            &[ring, &[("JACCL_RING", "on"), ("MLX_JACCL_RING", "")]],
            "JACCL_RING is \"on\", but MLX_JACCL_RING is \"\"",
        ),
        (
            &[ring, &[("RANK", "1"), ("WORLD_SIZE", "2")]],
            "MLX_HOSTFILE is ring (4 ranks), but WORLD_SIZE is 2",
        ),
        (
            &[
                &[("PMI_RANK", "1"), ("PMI_SIZE", "4")],
                &[("SLURM_PROCID", "3")],
            ],
            "PMI_RANK is 1, but SLURM_PROCID is 3",
        ),
        (
            &[MPIRUN, &[("RANK", "0")]],
            "RANK is 0, but OMPI_COMM_WORLD_RANK is 1",
        ),
    ] {
        let text = error(parts);
        assert!(
            text.starts_with(&format!("{expected}: they must agree")),
            "{text}"
        );
    }
    // Switches may say the same in different words.
    let same: Variables = &[("JACCL_RING", "on"), ("MLX_JACCL_RING", "1")];
    assert_eq!(discover(&[ring, same]).unwrap().prefer_ring, Some(true));
}

#[test]
fn a_launcher_started_by_another_is_no_disagreement() {
    // srun torchrun: one agent per node.
    let agents: Variables = &[("SLURM_PROCID", "1"), ("SLURM_NTASKS", "2")];
    assert_place(&[TORCHRUN, agents], 5, 8, "node0:29501");
    let wrong: Variables = &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2")];
    let text = error(&[TORCHRUN, wrong]);
    assert!(
        text.starts_with("RANK is 5, but SLURM_PROCID is 0"),
        "{text}"
    );
    // mpirun in a batch script, whose only task is 0 of 1.
    let batch: Variables = &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")];
    assert_eq!(file(&[MPIRUN, batch]), file(&[MPIRUN]));
    let text = error(&[MPIRUN, batch, &[("PRTE_LAUNCHED", "-")]]);
    assert!(text.contains("SLURM_PROCID is 0"), "{text}");
}

#[test]
fn ranks_and_sizes_are_decimal_numbers() {
    let launchers: [(&str, &str, Variables); 6] = [
        (
            "MLX_RANK",
            "MLX_WORLD_SIZE",
            &[("NCCL_HOST_IP", "h"), ("NCCL_PORT", "1")],
        ),
        ("JACCL_RANK", "MLX_WORLD_SIZE", &[]),
        (
            "RANK",
            "WORLD_SIZE",
            &[("MASTER_ADDR", "h"), ("MASTER_PORT", "1")],
        ),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &[]),
        ("PMI_RANK", "PMI_SIZE", &[]),
        ("SLURM_PROCID", "SLURM_NTASKS", &[]),
    ];
    for (rank, size, rest) in launchers {
        for wrong in ["", "x", "-1", "+1", " 1", "0x1", "1.0", "99999999999", "१"] {
            let text = error(&[rest, &[(rank, wrong), (size, "4")]]);
            assert!(
                text.starts_with(&format!("{rank} is {wrong:?}, it must be")),
                "{text}"
            );
            let text = error(&[rest, &[(rank, "0"), (size, wrong)]]);
            assert!(
                text.starts_with(&format!("{size} is {wrong:?}, it must be")),
                "{text}"
            );
        }
        let text = error(&[rest, &[(rank, "0"), (size, "0")]]);
        assert!(text.starts_with(&format!("{size} is \"0\"")), "{text}");
        let text = error(&[rest, &[(rank, "4"), (size, "4")]]);
        assert_eq!(
            text,
            format!("{rank} is 4, but {size} is 4: ranks are 0 to 3")
        );
        let text = error(&[rest, &[(rank, "4")]]);
        assert!(text.starts_with(&format!("{rank} is set, but")), "{text}");
        assert!(text.contains(size), "{text}");
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let mlx: Variables = &[("MLX_RANK", "0"), ("MLX_HOSTFILE", "ring")];
    for (change, expected) in [
        (("MLX_HOSTFILE", "nowhere"), "MLX_HOSTFILE is \"nowhere\": "),
        (("MLX_HOSTFILE", ""), "MLX_HOSTFILE is \"\": "),
        (
            ("MLX_HOSTFILE", "broken"),
            "MLX_HOSTFILE is \"broken\": it is no list of hosts",
        ),
        (
            ("MLX_IBV_DEVICES", "empty"),
            "MLX_IBV_DEVICES is \"empty\": ",
        ),
        (
            ("JACCL_COORDINATOR", "h"),
            "JACCL_COORDINATOR is \"h\": the port is missing",
        ),
        (
            ("MLX_JACCL_RING", "maybe"),
            "MLX_JACCL_RING is \"maybe\", it must be 1, true",
        ),
        (
            ("MLX_HOSTFILE", "no-address"),
            "MLX_RANK says that this is one of 4 ranks, but not where",
        ),
    ] {
        let text = error(&[mlx, &[change]]);
        assert!(text.starts_with(expected), "{text}");
    }
    for (change, expected) in [
        (
            ("MASTER_ADDR", "a b"),
            "MASTER_ADDR is \"a b\": \"a b\" is not a host name",
        ),
        (
            ("MASTER_PORT", "0"),
            "MASTER_PORT is \"0\", it must be a port",
        ),
        (
            ("MASTER_PORT", "+1"),
            "MASTER_PORT is \"+1\", it must be a port",
        ),
        (
            ("MASTER_PORT", "65536"),
            "MASTER_PORT is \"65536\", it must be a port",
        ),
        (
            ("MASTER_PORT", "-"),
            "RANK says that this is one of 8 ranks, 4 of them on this machine",
        ),
        (
            ("LOCAL_WORLD_SIZE", "x"),
            "LOCAL_WORLD_SIZE is \"x\", it must be",
        ),
    ] {
        let text = error(&[TORCHRUN, &[change]]);
        assert!(text.starts_with(expected), "{text}");
    }
}

#[test]
fn names_one_letter_off_are_warned_about_and_those_of_launchers_are_not() {
    for launcher in [TORCHRUN, MPIRUN, SRUN] {
        assert_eq!(discover(&[launcher]).unwrap().warnings, []);
    }
    let slip: Variables = &[("UNISONO_TIMEOUTS", "5"), ("UNISONO_TUNE", "x")];
    let warnings = discover(&[MPIRUN, slip]).unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    let text = warnings[0].to_string();
    assert!(text.contains("UNISONO_TIMEOUTS") && text.contains("is UNISONO_TIMEOUT meant"));
}

#[test]
fn reading_our_variables_alone_knows_no_other_launcher() {
    let only = Environment::from_variables(MPIRUN.iter().copied()).unwrap();
    assert_eq!(only, Environment::default());
    let partial = [("UNISONO_COORDINATOR", "h:1"), MPIRUN[0], MPIRUN[1]];
    let text = Environment::from_variables(partial)
        .unwrap_err()
        .to_string();
    assert!(text.starts_with("UNISONO_RANK is not set"), "{text}");
}
