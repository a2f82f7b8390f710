//! The page of the book shows the code of this crate, not what it once was.

const PAGE: &str = include_str!("../../../docs/a-transport-in-100-lines.md");
const CODE: [&str; 2] = [include_str!("../src/lib.rs"), include_str!("letters.rs")];

#[test]
fn every_rust_block_of_the_page_stands_in_the_code() {
    let blocks: Vec<&str> = PAGE
        .split("```rust\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(blocks.len() > 3, "{} blocks", blocks.len());
    for block in blocks {
        let stands = CODE.iter().any(|code| code.contains(block));
        assert!(stands, "no longer in the code:\n{block}");
    }
}
