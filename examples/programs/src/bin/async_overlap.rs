//! `unisono launch -n 3 -- async_overlap`: rank 0 prints the average gradient of each layer.

use unisono_examples::{async_overlap, block_on};

fn main() -> std::process::ExitCode {
    unisono_examples::main_of(|group| {
        let gradients = block_on(async_overlap(group))?;
        if group.rank() == 0 {
            let first: Vec<f32> = gradients.iter().map(|g| g[0]).collect();
            println!("gradients {first:?}");
        }
        Ok(())
    })
}
