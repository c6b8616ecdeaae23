//! Judges the kept records of a run of the paths of the world again, without running anything:
//! `cargo xtask world --again FOLDER`.

use std::path::PathBuf;
use std::process::ExitCode;

use netaware_testkit::world::judge::Verdict;
use netaware_testkit::world::kept;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("error: name the folder of the records");
        return ExitCode::from(2);
    };
    let cells = kept::judge_again(&folder);
    for (path, ask, found, judgement) in &cells {
        let took = found.took.map(|took| format!("{:.1} s", took.secs_f64())).unwrap_or_default();
        let (verdict, why) = (judgement.verdict.word(), judgement.reasons.join("; "));
        println!("{}\t{}\t{verdict}\t{took}\t{why}", path.name, ask.name());
    }
    let bad = cells.iter().filter(|(.., judgement)| judgement.verdict >= Verdict::TooLong).count();
    eprintln!("{bad} of {} cells are too long, wrong or do harm", cells.len());
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
