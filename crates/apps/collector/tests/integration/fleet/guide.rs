//! What the guide prints works as printed.

use netaware_collector::{Collector, Config, instruction};
use netaware_wire::lmap::What;

/// The guide's longest block of TOML.
fn printed() -> String {
    let guide = include_str!("../../../../../../docs/guide/fleet.md");
    let blocks = guide.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.max_by_key(|block| block.len()).unwrap().to_owned()
}

#[test]
fn the_mesh_of_three_sites_in_the_guide_runs_as_printed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("keys")).unwrap();
    for site in ["berlin", "bern", "oslo"] {
        std::fs::write(folder.path().join(format!("keys/{site}.key")), site).unwrap();
    }
    let path = folder.path().join("collect.toml");
    // The one change: a port that is free here.
    std::fs::write(&path, printed().replace("[::]:14234", "127.0.0.1:0")).unwrap();
    let config = Config::load(&path).unwrap();
    let of_bern = instruction(&config, "bern", 1, "");
    let names: Vec<&String> = of_bern.tasks.keys().collect();
    assert_eq!(names, ["bulk.berlin", "bulk.oslo", "delay", "flows", "owd.berlin", "owd.oslo"]);
    assert!(matches!(&of_bern.tasks["owd.oslo"].what, What::Stamp { target, .. } if target == "10.80.3.2"));
    let collector = Collector::start(config).unwrap();
    let stopper = collector.stopper();
    let thread = std::thread::spawn(move || collector.run());
    stopper.stop();
    thread.join().unwrap().unwrap();
}
