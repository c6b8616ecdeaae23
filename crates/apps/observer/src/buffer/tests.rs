use proptest::prelude::*;

use super::*;

fn settings(folder: &Path, most: u64) -> BufferSettings {
    BufferSettings { folder: folder.to_owned(), most: ByteCount(most) }
}

fn batch(fill: u8, length: usize) -> Batch {
    let selections = [("delay".to_owned(), u64::from(fill))].into();
    Batch { ipfix: vec![fill; length / 2], report: vec![!fill; length - length / 2], selections }
}

fn numbers(buffer: &mut Buffer) -> Vec<u64> {
    let mut found = Vec::new();
    while let Some((sequence, _)) = buffer.after(found.last().copied().unwrap_or(0)) {
        found.push(sequence);
    }
    found
}

fn newest(folder: &Path) -> PathBuf {
    segment::files(folder).unwrap().pop().unwrap()
}

#[test]
fn what_was_appended_comes_back_in_order_and_goes_when_taken() {
    let folder = tempfile::tempdir().unwrap();
    let mut buffer = Buffer::open(settings(folder.path(), 1 << 20)).unwrap();
    for fill in 1..=3 {
        assert_eq!(buffer.append(&batch(fill, 100)), Some(u64::from(fill)));
    }
    assert_eq!(buffer.after(1), Some((2, batch(2, 100))));
    buffer.taken(2);
    assert_eq!((numbers(&mut buffer), buffer.waiting().0), (vec![3], 1));
    let incarnation = buffer.incarnation();
    drop(buffer);
    let mut again = Buffer::open(settings(folder.path(), 1 << 20)).unwrap();
    // Taken ones lie in the same segment still; the collector's welcome says so again.
    assert_eq!((again.incarnation(), again.next()), (incarnation, 4));
    again.taken(3);
    assert_eq!(again.waiting(), (0, ByteCount(0)));
    drop(again);
    assert_eq!(Buffer::open(settings(folder.path(), 1 << 20)).unwrap().next(), 4);
}

#[test]
fn a_folder_has_one_probe() {
    let folder = tempfile::tempdir().unwrap();
    let _first = Buffer::open(settings(folder.path(), 1 << 20)).unwrap();
    let second = Buffer::open(settings(folder.path(), 1 << 20));
    assert!(matches!(second, Err(BufferError::InUse(_))));
}

#[test]
fn a_crash_at_any_byte_leaves_a_prefix_and_numbers_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut buffer = Buffer::open(settings(folder.path(), 1 << 20)).unwrap();
    let mut ends = vec![segment::HEADER];
    for fill in 1..=4 {
        buffer.append(&batch(fill, 30));
        ends.push(fs::metadata(newest(folder.path())).unwrap().len());
    }
    drop(buffer);
    let whole = fs::read(newest(folder.path())).unwrap();
    for cut in 0..=whole.len() {
        fs::write(newest(folder.path()), &whole[..cut]).unwrap();
        let mut torn = Buffer::open(settings(folder.path(), 1 << 20)).unwrap();
        let kept = ends.iter().filter(|end| **end <= cut as u64).count().saturating_sub(1) as u64;
        assert_eq!(numbers(&mut torn), (1..=kept).collect::<Vec<_>>(), "cut at {cut}");
        assert_eq!(torn.append(&batch(9, 10)), Some(kept + 1));
        assert_eq!(torn.after(kept), Some((kept + 1, batch(9, 10))));
        drop(torn);
        for path in segment::files(folder.path()).unwrap() {
            fs::remove_file(path).unwrap();
        }
        fs::write(folder.path().join("0000000000000001.batches"), &whole).unwrap();
    }
}

#[test]
fn a_changed_bit_anywhere_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let mut buffer = Buffer::open(settings(folder.path(), 1 << 20)).unwrap();
    buffer.append(&batch(1, 40));
    drop(buffer);
    let path = newest(folder.path());
    let whole = fs::read(&path).unwrap();
    for byte in 0..whole.len() {
        let mut changed = whole.clone();
        changed[byte] ^= 0x10;
        fs::write(&path, &changed).unwrap();
        let mut buffer = Buffer::open(settings(folder.path(), 1 << 20)).unwrap();
        assert!(numbers(&mut buffer).is_empty(), "byte {byte}");
        drop(buffer);
        for path in segment::files(folder.path()).unwrap() {
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn bytes_that_rot_after_they_were_read_are_given_up_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut buffer = Buffer::open(settings(folder.path(), 1 << 20)).unwrap();
    buffer.append(&batch(1, 40));
    buffer.append(&batch(2, 40));
    let path = newest(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[segment::HEADER as usize + 30] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(numbers(&mut buffer), [2]);
    assert_eq!(buffer.given_up(), 1);
}

#[test]
fn a_full_disk_costs_the_oldest_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut buffer = Buffer::open(settings(folder.path(), 64 * 1024)).unwrap();
    buffer.disk_room = Some(20_000);
    for fill in 1..=40 {
        buffer.append(&batch(fill, 1000));
    }
    let kept = numbers(&mut buffer);
    assert_eq!(kept.last(), Some(&40), "the newest is kept");
    assert!(kept.len() >= 8, "{kept:?}");
    assert_eq!(buffer.given_up() + kept.len() as u64, 40);
    // No byte more: each further batch is given up itself, and the number is used up.
    buffer.disk_room = Some(0);
    assert!((0..1000).any(|_| buffer.append(&batch(1, 30_000)).is_none()), "it never gives one up");
    assert!(buffer.given_up() > 40 - kept.len() as u64);
}

#[test]
fn what_is_longer_than_a_batch_may_be_is_given_up_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut buffer = Buffer::open(settings(folder.path(), 64 << 20)).unwrap();
    assert_eq!(buffer.append(&batch(1, 10)), Some(1));
    assert_eq!(buffer.append(&batch(1, MAX_BATCH as usize + 1)), None);
    assert_eq!(buffer.append(&Batch::default()), None);
    assert_eq!(buffer.append(&batch(1, MAX_BATCH as usize)), Some(4));
    assert_eq!((numbers(&mut buffer), buffer.given_up()), (vec![1, 4], 2));
}

#[test]
fn another_identity_numbers_what_waits_from_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut buffer = Buffer::open(settings(folder.path(), 64 * 1024)).unwrap();
    for fill in 1..=20 {
        buffer.append(&batch(fill, 1000));
    }
    buffer.taken(15);
    let before = buffer.incarnation();
    buffer.start_anew().unwrap();
    assert_ne!(buffer.incarnation(), before);
    assert_eq!(numbers(&mut buffer), [1, 2, 3, 4, 5]);
    assert_eq!(buffer.after(4), Some((5, batch(20, 1000))));
    let incarnation = buffer.incarnation();
    drop(buffer);
    let mut again = Buffer::open(settings(folder.path(), 64 * 1024)).unwrap();
    assert_eq!(
        (again.incarnation(), numbers(&mut again), again.next()),
        (incarnation, vec![1, 2, 3, 4, 5], 6)
    );
}

#[test]
fn what_another_identity_cannot_read_any_more_leaves_a_gap_in_its_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let mut buffer = Buffer::open(settings(folder.path(), 1 << 20)).unwrap();
    for fill in 1..=3 {
        buffer.append(&batch(fill, 40));
    }
    let path = newest(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    let batch_length = (bytes.len() - segment::HEADER as usize) / 3;
    bytes[segment::HEADER as usize + batch_length + 30] ^= 1;
    fs::write(&path, bytes).unwrap();
    buffer.start_anew().unwrap();
    assert_eq!((numbers(&mut buffer), buffer.given_up(), buffer.next()), (vec![1, 3], 1, 4));
}

#[derive(Debug, Clone)]
enum Step {
    Append(usize),
    Take(u64),
    Sync,
    /// The process dies; of what was not synced, so many bytes are lost.
    Crash(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (1usize..3000).prop_map(Step::Append),
        2 => (0u64..40).prop_map(Step::Take),
        2 => Just(Step::Sync),
        1 => (0u64..5000).prop_map(Step::Crash),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever happens: nothing synced is lost but what was given up and counted, nothing is
    /// altered, no synced number comes twice, and the folder stays within its bound.
    #[test]
    fn synced_batches_survive_and_numbers_are_never_used_twice(steps in steps()) {
        const MOST: u64 = 40_000;
        let folder = tempfile::tempdir().unwrap();
        let mut buffer = Buffer::open(settings(folder.path(), MOST)).unwrap();
        let mut written: BTreeMap<u64, Batch> = BTreeMap::new();
        let (mut synced, mut synced_to, mut taken) = (0, (PathBuf::new(), 0), 0);
        for (n, step) in steps.into_iter().enumerate() {
            match step {
                Step::Append(length) => {
                    let batch = batch(n as u8, length);
                    let sequence = buffer.append(&batch).unwrap();
                    prop_assert!(sequence > synced, "{sequence} was used already");
                    written.insert(sequence, batch);
                }
                Step::Take(few) => {
                    taken = (taken + few).min(synced);
                    buffer.taken(taken);
                }
                Step::Sync => {
                    buffer.sync().unwrap();
                    synced = buffer.next() - 1;
                    let path = newest(folder.path());
                    synced_to = (path.clone(), fs::metadata(path).unwrap().len());
                }
                Step::Crash(lost) => {
                    let path = newest(folder.path());
                    let length = fs::metadata(&path).unwrap().len();
                    let floor = match buffer.unsynced {
                        false => length,
                        true if path == synced_to.0 => synced_to.1,
                        // Begun since: its header was synced.
                        true => segment::HEADER,
                    };
                    drop(buffer);
                    let file = OpenOptions::new().write(true).open(&path).unwrap();
                    file.set_len(length.saturating_sub(lost).max(floor)).unwrap();
                    buffer = Buffer::open(settings(folder.path(), MOST)).unwrap();
                    buffer.taken(taken);
                    written.retain(|sequence, _| *sequence < buffer.next());
                }
            }
            let size: u64 = segment::files(folder.path()).unwrap().iter().map(|path| fs::metadata(path).unwrap().len()).sum();
            prop_assert!(size <= MOST, "{size} bytes");
            let kept = numbers(&mut buffer);
            for sequence in &kept {
                let (found, content) = buffer.after(sequence - 1).unwrap();
                prop_assert_eq!(found, *sequence);
                prop_assert_eq!(&content, &written[sequence]);
            }
            let lost: Vec<u64> = written.keys().copied().filter(|n| *n > taken && !kept.contains(n)).collect();
            // Given up: oldest first, so those that are left are the newest.
            if let (Some(oldest_kept), Some(newest_lost)) = (kept.first(), lost.last()) {
                prop_assert!(newest_lost < oldest_kept);
            }
        }
    }
}

#[test]
fn a_neighbour_cannot_enter_the_folder_of_reports_that_wait() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("state/a@collector_1");
    let open = || Buffer::open(BufferSettings { folder: folder.clone(), most: ByteCount(1 << 20) }).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    drop(open());
    let newest = newest(&folder);
    assert_eq!((mode(&folder), mode(&newest)), (0o700, 0o600));
    fs::set_permissions(&newest, fs::Permissions::from_mode(0o644)).unwrap();
    drop(open());
    assert_eq!(mode(&newest), 0o600);
}
