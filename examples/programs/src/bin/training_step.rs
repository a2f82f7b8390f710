//! `unisono launch -n 3 -- training_step`: rank 0 prints how the loss falls.

fn main() -> std::process::ExitCode {
    unisono_examples::main_of(|group| {
        let losses = unisono_examples::training_step(group)?;
        if let (0, [first, .., last]) = (group.rank(), &losses[..]) {
            println!("loss {first:.6} -> {last:.6}");
        }
        Ok(())
    })
}
