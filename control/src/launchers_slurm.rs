//! Lists of nodes as Slurm writes them: `node[01-04,07],login`.

use super::Launcher;
use super::meeting::Reach;
use super::names::Variables;

/// What Slurm says about where its tasks are.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step<'a> {
    /// The job and the step in it; `None` if it has no number.
    pub(super) id: Option<String>,
    /// On how many nodes the tasks are.
    pub(super) reach: Reach,
    /// Where task 0 is.
    pub(super) first: Option<String>,
    /// The list, as it is.
    pub(super) nodes: Option<&'a str>,
}

impl<'a> Step<'a> {
    pub(super) fn new(variables: &'a Variables) -> Self {
        let job = variables.first(["SLURM_JOB_ID", "SLURM_JOBID"]);
        let step = variables.first(["SLURM_STEP_ID", "SLURM_STEPID"]);
        let id = job.map(|(_, job)| match step {
            Some((_, step)) => format!("{job}.{step}"),
            None => job.to_owned(),
        });
        // What is said of the step is said of its tasks; a job may have more nodes.
        let step_nodes = variables.of("SLURM_STEP_NODELIST");
        let nodes = variables.first(["SLURM_JOB_NODELIST", "SLURM_NODELIST"]);
        let nodes = step_nodes.or(nodes.map(|(_, nodes)| nodes));
        let count = variables.first(["SLURM_JOB_NUM_NODES", "SLURM_NNODES"]);
        let count = match variables.of("SLURM_STEP_NUM_NODES") {
            None if step_nodes.is_some() => None,
            None => count.map(|(_, count)| count),
            step => step,
        };
        let single = match (count, nodes) {
            (Some(count), _) => count.parse().ok().map(|count: u32| count == 1),
            (None, Some(nodes)) => Some(is_single(nodes)),
            (None, None) => None,
        };
        // Tasks in an order of the user's own: task 0 may be anywhere.
        let arbitrary = variables.of("SLURM_DISTRIBUTION");
        let arbitrary = arbitrary.is_some_and(|order| order.starts_with("arbitrary"));
        Self {
            id,
            reach: match single {
                Some(true) => Reach::Here,
                Some(false) => Reach::Beyond { local: None },
                None => Reach::Unknown,
            },
            first: nodes.filter(|_| !arbitrary).and_then(first_node),
            nodes,
        }
    }

    /// A port that follows from the job: below those that systems give away by themselves, above those of services.
    pub(super) fn port(&self) -> u16 {
        let id = self.id.as_deref().or(self.nodes).unwrap_or_default();
        let hash = super::meeting::hash([Launcher::Slurm.to_string().as_str(), id]);
        20_000 + (hash % 10_000) as u16
    }
}

/// The first node of a list.
fn first_node(list: &str) -> Option<String> {
    let mut node = String::new();
    let mut rest = list;
    while let Some(at) = rest.find(['[', ',']) {
        node += &rest[..at];
        if rest[at..].starts_with(',') {
            rest = "";
            break;
        }
        let (inside, behind) = rest[at + 1..].split_once(']')?;
        node += inside.split(['-', ',']).next()?;
        rest = behind;
    }
    node += rest;
    (!node.is_empty()).then_some(node)
}

fn is_single(list: &str) -> bool {
    let ranges = list.split('[').skip(1);
    let several = |range: &str| {
        let inside = range.split(']').next().unwrap_or_default();
        inside.contains(['-', ','])
    };
    !list.contains(',') && !ranges.into_iter().any(several)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_node_keeps_its_zeros_and_what_stands_around_them() {
        for (list, first, single) in [
            ("node7", "node7", true),
            ("a,b", "a", false),
            ("node[01-04,07],login", "node01", false),
            ("node[007]", "node007", true),
            ("gpu-node[3,5-9]", "gpu-node3", false),
            ("rack[2-3]n[05-06]-ib", "rack2n05-ib", false),
            ("gpu-node", "gpu-node", true),
        ] {
            assert_eq!(first_node(list).as_deref(), Some(first), "{list}");
            assert_eq!(is_single(list), single, "{list}");
        }
        for list in ["", ",a", "node[1-2"] {
            assert_eq!(first_node(list), None, "{list}");
        }
    }
}
