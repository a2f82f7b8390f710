//! Programs that know nothing of launchers, started by each of them: imitated, and real where there is one.
#![cfg(unix)]

use std::path::PathBuf;
use std::process::{Command, Stdio};

use unisono::{Group, Op};
use unisono_control::env::launchers;

/// Set in the processes that are ranks.
const CHILD: &str = "UNISONO_TEST_CHILD";

/// One rank, when this program is started as one.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    match Group::from_env() {
        Ok(group) => {
            let mut x = [1u32, group.rank()];
            group.all_reduce(&mut x, Op::Sum).unwrap();
            group.barrier().unwrap();
            // In one piece: some launchers mix what ranks write.
            println!("\nrank {} of {}: {x:?}.\n", group.rank(), group.size());
            group.close().unwrap();
        }
        Err(error) => println!("\nrefused: {error}.\n"),
    }
}

/// What a rank is started with: this program, as a rank.
const ARGUMENTS: [&str; 4] = ["--exact", "child", "--nocapture", "--test-threads=1"];

/// A program that inherits no launcher's variables, even if these tests run under one.
fn command(program: impl Into<PathBuf>) -> Command {
    let mut command = Command::new(program.into());
    for name in launchers::variables() {
        command.env_remove(name);
    }
    command
        .env(CHILD, "1")
        .env("UNISONO_TIMEOUT", "30")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn this() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// What the ranks say in the end, in no particular order.
fn sayings(outputs: &[String]) -> Vec<String> {
    let lines = outputs.iter().flat_map(|output| output.lines());
    let said = lines.filter_map(|line| {
        let at = line.find("rank ").or_else(|| line.find("refused: "))?;
        line[at..].strip_suffix('.')
    });
    let mut said: Vec<String> = said.map(str::to_owned).collect();
    said.sort();
    said
}

fn all_right(size: u32) -> Vec<String> {
    let sum = size * (size - 1) / 2;
    let says = |rank| format!("rank {rank} of {size}: [{size}, {sum}]");
    (0..size).map(says).collect()
}

/// Starts `size` ranks, each with the variables that `variables` gives it.
fn imitate(size: u32, variables: impl Fn(u32) -> Vec<(&'static str, String)>) -> Vec<String> {
    let start = |rank| {
        let mut command = command(this());
        command.args(ARGUMENTS).envs(variables(rank));
        command.spawn().unwrap()
    };
    let children: Vec<_> = (0..size).map(start).collect();
    let output = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    sayings(&children.into_iter().map(output).collect::<Vec<_>>())
}

/// A port that was free a moment ago, and the one behind it too.
fn free_port() -> u16 {
    loop {
        let first = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = first.local_addr().unwrap().port();
        if port < u16::MAX && std::net::TcpListener::bind(("127.0.0.1", port + 1)).is_ok() {
            return port;
        }
    }
}

/// A file that goes with this.
struct Written(PathBuf);

impl Written {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("unisono-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn unique(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

#[test]
fn mlx_with_the_ring_backend() {
    let port = free_port();
    let rows: Vec<String> = (0..3)
        .map(|r| format!("[\"127.0.0.1:{}\"]", port + r))
        .collect();
    let file = Written::new("ring", &format!("[{}]", rows.join(",")));
    let said = imitate(3, |rank| {
        vec![
            ("MLX_RANK", rank.to_string()),
            ("MLX_HOSTFILE", file.path()),
        ]
    });
    assert_eq!(said, all_right(3));
}

#[test]
fn mlx_with_one_rank() {
    let file = Written::new("alone", "\n");
    let said = imitate(1, |_| {
        vec![("MLX_RANK", "0".to_owned()), ("MLX_HOSTFILE", file.path())]
    });
    assert_eq!(said, all_right(1));
}

#[test]
fn mlx_with_the_jaccl_backend_under_both_sets_of_names() {
    let file = Written::new("devices", r#"[[null,"rdma_en5"],["rdma_en4",null]]"#);
    for [rank_name, devices, coordinator] in [
        ["MLX_RANK", "MLX_IBV_DEVICES", "MLX_JACCL_COORDINATOR"],
        ["JACCL_RANK", "JACCL_IBV_DEVICES", "JACCL_COORDINATOR"],
    ] {
        let meeting = format!("127.0.0.1:{}", free_port());
        let said = imitate(2, |rank| {
            vec![
                (rank_name, rank.to_string()),
                (devices, file.path()),
                (coordinator, meeting.clone()),
            ]
        });
        assert_eq!(said, all_right(2));
    }
}

#[test]
fn torchrun_whose_agent_has_a_store_at_its_port() {
    let port = free_port();
    let _store = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let said = imitate(3, |rank| {
        vec![
            ("RANK", rank.to_string()),
            ("WORLD_SIZE", "3".to_owned()),
            ("MASTER_ADDR", "127.0.0.1".to_owned()),
            ("MASTER_PORT", port.to_string()),
        ]
    });
    assert_eq!(said, all_right(3));
}

#[test]
fn open_mpi() {
    let job = unique("ompi");
    let said = imitate(3, |rank| {
        vec![
            ("OMPI_COMM_WORLD_RANK", rank.to_string()),
            ("OMPI_COMM_WORLD_SIZE", "3".to_owned()),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "3".to_owned()),
            ("PMIX_NAMESPACE", job.clone()),
        ]
    });
    assert_eq!(said, all_right(3));
}

#[test]
fn pmi_that_says_nothing_but_rank_and_size() {
    let said = imitate(3, |rank| {
        vec![("PMI_RANK", rank.to_string()), ("PMI_SIZE", "3".to_owned())]
    });
    assert_eq!(said, all_right(3));
}

#[test]
fn slurm_on_one_node() {
    let job = std::process::id().to_string();
    let said = imitate(3, |rank| {
        vec![
            ("SLURM_PROCID", rank.to_string()),
            ("SLURM_NTASKS", "3".to_owned()),
            ("SLURM_JOB_ID", job.clone()),
            ("SLURM_STEP_ID", "0".to_owned()),
            ("SLURM_STEP_NUM_NODES", "1".to_owned()),
            ("SLURM_STEP_NODELIST", "localhost".to_owned()),
        ]
    });
    assert_eq!(said, all_right(3));
}

#[test]
fn slurm_on_nodes_that_are_this_machine() {
    let job = std::process::id().to_string();
    let said = imitate(3, |rank| {
        vec![
            ("SLURM_PROCID", rank.to_string()),
            ("SLURM_NTASKS", "3".to_owned()),
            ("SLURM_JOB_ID", job.clone()),
            ("SLURM_STEP_ID", "1".to_owned()),
            ("SLURM_NNODES", "2".to_owned()),
            ("SLURM_NODELIST", "localhost,elsewhere".to_owned()),
        ]
    });
    assert_eq!(said, all_right(3));
}

#[test]
fn launchers_that_disagree_are_refused_on_the_spot() {
    let said = imitate(2, |rank| {
        vec![
            ("PMI_RANK", rank.to_string()),
            ("PMI_SIZE", "2".to_owned()),
            ("RANK", (1 - rank).to_string()),
            ("WORLD_SIZE", "2".to_owned()),
        ]
    });
    assert_eq!(said.len(), 2);
    for (rank, text) in said.iter().enumerate() {
        let both = |r: usize| format!("RANK is {}, but PMI_RANK is {r}", 1 - r);
        assert!(text.contains(&both(1 - rank)), "{said:?}");
    }
}

/// Starts three ranks by a launcher that is installed, else says that it is not.
fn real(launcher: &str, arguments: &[&str]) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|directory| directory.join(launcher));
    let Some(program) = places.find(|place| place.is_file()) else {
        println!("skipped: {launcher} is not installed");
        return;
    };
    let mut command = command(program);
    command.args(arguments).arg(this()).args(ARGUMENTS);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert_eq!(sayings(&[text]), all_right(3), "{launcher} says: {wrong}");
}

#[test]
fn the_real_mpirun() {
    let arguments = ["--allow-run-as-root", "--oversubscribe", "-np", "3"];
    real("mpirun", &arguments);
}

#[test]
fn the_real_torchrun() {
    real("torchrun", &["--no-python", "--nproc-per-node", "3"]);
}

#[test]
fn the_real_mlx_launch() {
    let port = free_port().to_string();
    real(
        "mlx.launch",
        &[
            "--backend",
            "ring",
            "--starting-port",
            &port,
            "-n",
            "3",
            "--",
        ],
    );
}

#[test]
fn the_real_srun() {
    real("srun", &["-n", "3"]);
}
