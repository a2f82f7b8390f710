//! `unisono launch -n 3 -- halo`: rank 0 prints how much heat there is in the whole rod, which is as much as before.

use unisono::Op;

fn main() -> std::process::ExitCode {
    unisono_examples::main_of(|group| {
        let piece = unisono_examples::halo(group)?;
        let mut heat = [piece.iter().sum::<f64>()];
        group.all_reduce(&mut heat, Op::Sum)?;
        if group.rank() == 0 {
            println!(
                "heat {:.3}, of it here {:.3}",
                heat[0],
                piece.iter().sum::<f64>()
            );
        }
        Ok(())
    })
}
