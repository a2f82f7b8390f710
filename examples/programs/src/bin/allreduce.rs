//! `unisono launch -n 3 -- allreduce`: every rank prints the sum.

fn main() -> std::process::ExitCode {
    unisono_examples::main_of(|group| unisono_examples::allreduce(group).map(drop))
}
