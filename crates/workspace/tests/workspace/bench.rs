//! What a snapshot costs: `cargo test -p tolka-workspace --test workspace bench -- --ignored --nocapture`

use std::time::Instant;

use crate::house::House;

#[tokio::test]
#[ignore = "prints figures; it judges nothing"]
async fn bench() {
    for files in [0, 20, 2_000, 20_000] {
        let house = House::new();
        for n in 0..files {
            house.write(format!("d{}/f{n}", n / 100), format!("file {n}\n").repeat(40));
        }
        for what in ["first", "unchanged", "unchanged", "one edit", "unchanged"] {
            if what == "one edit" {
                house.write("d0/f0", "edited");
            }
            let began = Instant::now();
            house.save().await;
            println!("{files} files, {what}: {:?}", began.elapsed());
        }
    }
}
