//! Timing on a machine that others use as well.

/// Runs a test until one run is as it should be: a machine whose cores are taken away spoils a run, and says nothing of what was
/// tested. What must hold in every run (bytes, counts) is to be asserted within the run, which ends the test at once.
///
/// # Panics
/// If no run of so many was as it should be, with what was wrong in each.
#[track_caller]
pub fn in_one_of(runs: usize, mut run: impl FnMut() -> Result<(), String>) {
    let mut wrong = Vec::new();
    for _ in 0..runs {
        match run() {
            Ok(()) => return,
            Err(why) => {
                println!("a run that is not as it should be: {why}");
                wrong.push(why);
            }
        }
    }
    panic!("in none of {runs} runs:\n{}", wrong.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stops_at_the_first_run_that_is_right() {
        let mut runs = 0;
        in_one_of(3, || {
            runs += 1;
            if runs == 2 { Ok(()) } else { Err("late".into()) }
        });
        assert_eq!(runs, 2);
    }

    #[test]
    #[should_panic(expected = "in none of 2 runs:\nlate\nlate")]
    fn runs_that_are_all_wrong_fail_the_test() {
        in_one_of(2, || Err("late".into()));
    }
}
