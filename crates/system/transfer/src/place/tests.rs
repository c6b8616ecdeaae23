use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use super::*;

fn announced(path: &str, bytes: u64) -> Announced {
    let mtime = Stamp { seconds: 1_000_000, nanos: 42 };
    Announced { path: EntryPath::new(path).unwrap(), bytes, mode: 0o640.into(), mtime }
}

fn digest(bytes: &[u8]) -> Digest {
    Digest(blake3::hash(bytes).into())
}

fn examine(place: &Place, path: &str, bytes: u64) -> Result<Incoming, Refusal> {
    place.examine(announced(path, bytes), &mut || true)
}

/// Sends all of it, from the start.
fn put(place: &Place, path: &str, content: &[u8]) -> Result<Done, Refusal> {
    let mut incoming = examine(place, path, content.len() as u64)?;
    incoming.begin(0)?;
    incoming.write(content)?;
    incoming.end(digest(content), place.existing())
}

fn place(existing: Existing) -> (tempfile::TempDir, Place) {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(folder.path(), existing).unwrap();
    (folder, place)
}

fn code<T: std::fmt::Debug>(done: Result<T, Refusal>) -> RefusalCode {
    done.unwrap_err().code
}

#[test]
fn a_file_takes_its_place_only_when_it_is_complete_and_right() {
    let (folder, place) = place(Existing::Keep);
    assert_eq!(put(&place, "a", b"hello"), Ok(Done::Written));
    let about = fs::metadata(folder.path().join("a")).unwrap();
    assert_eq!((about.mode() & 0o777, about.mtime(), about.mtime_nsec()), (0o640, 1_000_000, 42));
    let mut incoming = examine(&place, "b", 5).unwrap();
    incoming.begin(0).unwrap();
    incoming.write(b"hel").unwrap();
    assert!(!folder.path().join("b").exists() && folder.path().join(".b.netaware-part").exists());
    incoming.write(b"xx").unwrap();
    assert_eq!(code(incoming.end(digest(b"hello"), Existing::Keep)), RefusalCode::Digest);
    assert!(!folder.path().join("b").exists() && !folder.path().join(".b.netaware-part").exists());
}

#[test]
fn what_came_before_a_break_is_found_and_gone_on_with() {
    let (folder, place) = place(Existing::Keep);
    let mut incoming = examine(&place, "a", 10).unwrap();
    incoming.begin(0).unwrap();
    incoming.write(b"01234").unwrap();
    drop(incoming);
    let mut incoming = examine(&place, "a", 10).unwrap();
    assert_eq!(incoming.have(), Some(Have { bytes: 5, digest: digest(b"01234"), complete: false }));
    assert_eq!(code(examine(&place, "a", 10)), RefusalCode::Busy, "locked by the one before");
    incoming.begin(5).unwrap();
    incoming.write(b"56789").unwrap();
    assert_eq!(incoming.end(digest(b"0123456789"), Existing::Keep), Ok(Done::Written));
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"0123456789");
    fs::write(folder.path().join(".b.netaware-part"), "too long").unwrap();
    assert_eq!(examine(&place, "b", 3).unwrap().have(), None);
}

#[test]
fn a_file_that_is_there_is_known_by_its_content() {
    let (folder, place) = place(Existing::Keep);
    fs::write(folder.path().join("a"), "same").unwrap();
    let mut incoming = examine(&place, "a", 4).unwrap();
    assert!(incoming.have().unwrap().complete);
    incoming.begin(4).unwrap();
    assert_eq!(incoming.end(digest(b"same"), Existing::Keep), Ok(Done::Present));
    assert_eq!(code(examine(&place, "a", 5)), RefusalCode::Exists);
    assert_eq!(examine(&place, "a", 4).unwrap().give_up().code, RefusalCode::Exists);
    fs::write(folder.path().join("empty"), "").unwrap();
    let mut incoming = examine(&place, "empty", 0).unwrap();
    incoming.begin(0).unwrap();
    assert_eq!(incoming.end(digest(b""), Existing::Keep), Ok(Done::Present));
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"same");
}

#[test]
fn only_overwrite_replaces_and_only_at_the_end() {
    let (folder, place) = place(Existing::Overwrite);
    fs::write(folder.path().join("a"), "old").unwrap();
    let incoming = examine(&place, "a", 3).unwrap();
    assert_eq!(incoming.have().map(|have| have.complete), Some(false));
    drop(incoming);
    let mut incoming = examine(&place, "a", 3).unwrap();
    incoming.begin(0).unwrap();
    incoming.write(b"new").unwrap();
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"old");
    assert_eq!(incoming.end(digest(b"new"), Existing::Overwrite), Ok(Done::Written));
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"new");
}

#[test]
fn a_file_that_appears_meanwhile_is_not_replaced() {
    let (folder, place) = place(Existing::Keep);
    let mut incoming = examine(&place, "a", 3).unwrap();
    incoming.begin(0).unwrap();
    incoming.write(b"new").unwrap();
    fs::write(folder.path().join("a"), "other").unwrap();
    assert_eq!(code(incoming.end(digest(b"new"), Existing::Keep)), RefusalCode::Exists);
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"other");
}

#[test]
fn a_file_that_another_transfer_brings_meanwhile_is_present() {
    for content in [&b"new"[..], b""] {
        let (folder, place) = place(Existing::Keep);
        let examined = || examine(&place, "a", content.len() as u64).unwrap();
        // Both are told that nothing is there, as two senders of the same folder are.
        let [mut first, mut second] = [examined(), examined()];
        first.begin(0).unwrap();
        first.write(content).unwrap();
        assert_eq!(first.end(digest(content), Existing::Keep), Ok(Done::Written));
        second.begin(0).unwrap();
        second.write(content).unwrap();
        assert_eq!(second.end(digest(content), Existing::Keep), Ok(Done::Present));
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["a"], "nothing is left of the second one");
    }
}

#[test]
fn what_is_no_file_is_never_taken_for_the_one_that_comes() {
    for make in
        [|path: &Path| fs::create_dir(path).unwrap(), |path: &Path| symlink("elsewhere", path).unwrap()]
    {
        let (folder, place) = place(Existing::Keep);
        fs::write(folder.path().join("elsewhere"), "new").unwrap();
        let mut incoming = examine(&place, "a", 3).unwrap();
        incoming.begin(0).unwrap();
        incoming.write(b"new").unwrap();
        make(&folder.path().join("a"));
        assert_eq!(code(incoming.end(digest(b"new"), Existing::Keep)), RefusalCode::Exists);
    }
}

#[test]
fn links_lead_nowhere() {
    let (folder, place) = place(Existing::Overwrite);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("victim"), "untouched").unwrap();
    symlink(outside.path(), folder.path().join("way")).unwrap();
    symlink(outside.path().join("victim"), folder.path().join("file")).unwrap();
    symlink(outside.path().join("victim"), folder.path().join(".part.netaware-part")).unwrap();
    fs::hard_link(outside.path().join("victim"), folder.path().join(".hard.netaware-part")).unwrap();
    let way = EntryPath::new("way").unwrap();
    assert_eq!(code(put(&place, "way/x", b"evil")), RefusalCode::NotAFolder);
    assert_eq!(code(place.make_folder(&way)), RefusalCode::NotAFolder);
    assert_eq!(code(place.make_folder(&EntryPath::new("way/y").unwrap())), RefusalCode::NotAFolder);
    assert_eq!(code(place.seal(&way, 0o777.into(), Stamp { seconds: 0, nanos: 0 })), RefusalCode::NotAFolder);
    assert_eq!(code(put(&place, "file", b"evil")), RefusalCode::Exists);
    assert_eq!(code(put(&place, "part", b"evil")), RefusalCode::System);
    assert_eq!(code(put(&place, "hard", b"evil")), RefusalCode::Exists);
    assert_eq!(fs::read(outside.path().join("victim")).unwrap(), b"untouched");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn folders_and_devices_in_the_way_stay() {
    let (folder, place) = place(Existing::Overwrite);
    fs::create_dir(folder.path().join("a")).unwrap();
    fs::write(folder.path().join("b"), "x").unwrap();
    assert_eq!(code(put(&place, "a", b"x")), RefusalCode::Exists);
    assert_eq!(code(place.make_folder(&EntryPath::new("b").unwrap())), RefusalCode::NotAFolder);
    assert_eq!(code(put(&place, "none/a", b"x")), RefusalCode::System);
    assert_eq!(place.make_folder(&EntryPath::new("a").unwrap()), Ok(Done::Present));
}
