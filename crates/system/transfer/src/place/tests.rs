use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

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
    incoming.end(digest(content))
}

fn place(existing: Existing) -> (tempfile::TempDir, Place) {
    comparing(existing, Comparing::Everything)
}

/// As it is where anybody may be the sender.
fn keyless(existing: Existing) -> (tempfile::TempDir, Place) {
    comparing(existing, Comparing::WhatCame)
}

fn comparing(existing: Existing, comparing: Comparing) -> (tempfile::TempDir, Place) {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(folder.path(), existing, comparing).unwrap();
    (folder, Place { allowed: allowed(0o022), ..place })
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

const EPOCH: Stamp = Stamp { seconds: 0, nanos: 0 };

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
    assert_eq!(code(incoming.end(digest(b"hello"))), RefusalCode::Digest);
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
    assert_eq!(incoming.end(digest(b"0123456789")), Ok(Done::Written));
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
    assert_eq!(incoming.end(digest(b"same")), Ok(Done::Present));
    assert_eq!(code(examine(&place, "a", 5)), RefusalCode::Exists);
    assert_eq!(examine(&place, "a", 4).unwrap().give_up().code, RefusalCode::Exists);
    fs::write(folder.path().join("empty"), "").unwrap();
    let mut incoming = examine(&place, "empty", 0).unwrap();
    incoming.begin(0).unwrap();
    assert_eq!(incoming.end(digest(b"")), Ok(Done::Present));
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
    assert_eq!(incoming.end(digest(b"new")), Ok(Done::Written));
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"new");
}

#[test]
fn a_file_that_appears_meanwhile_is_not_replaced() {
    let (folder, place) = place(Existing::Keep);
    let mut incoming = examine(&place, "a", 3).unwrap();
    incoming.begin(0).unwrap();
    incoming.write(b"new").unwrap();
    fs::write(folder.path().join("a"), "other").unwrap();
    assert_eq!(code(incoming.end(digest(b"new"))), RefusalCode::Exists);
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"other");
}

#[test]
fn a_file_that_another_transfer_brings_meanwhile_is_present() {
    let both = [Comparing::Everything, Comparing::WhatCame];
    for (content, compared) in
        [&b"new"[..], b""].into_iter().flat_map(|it| both.map(|compared| (it, compared)))
    {
        let (folder, place) = comparing(Existing::Keep, compared);
        let examined = || examine(&place, "a", content.len() as u64).unwrap();
        // Both are told that nothing is there, as two senders of the same folder are.
        let [mut first, mut second] = [examined(), examined()];
        first.begin(0).unwrap();
        first.write(content).unwrap();
        assert_eq!(first.end(digest(content)), Ok(Done::Written));
        second.begin(0).unwrap();
        second.write(content).unwrap();
        assert_eq!(second.end(digest(content)), Ok(Done::Present));
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
        assert_eq!(code(incoming.end(digest(b"new"))), RefusalCode::Exists);
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
    let make = |path: &EntryPath| place.make_folder(path, 1, Mono(0));
    assert_eq!(code(make(&way)), RefusalCode::NotAFolder);
    assert_eq!(code(make(&EntryPath::new("way/y").unwrap())), RefusalCode::NotAFolder);
    assert_eq!(code(place.seal(&way, 0o777.into(), EPOCH, 1, Mono(0))), RefusalCode::NotAFolder);
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
    let make = |path: &str| place.make_folder(&EntryPath::new(path).unwrap(), 1, Mono(0));
    assert_eq!(code(make("b")), RefusalCode::NotAFolder);
    assert_eq!(code(put(&place, "none/a", b"x")), RefusalCode::System);
    assert_eq!(make("a"), Ok(Done::Present));
}

#[test]
fn a_senders_seal_does_not_open_the_owners_folders() {
    let (folder, place) = keyless(Existing::Overwrite);
    let private = folder.path().join("private");
    fs::create_dir(&private).unwrap();
    for path in [folder.path(), &private] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let before = fs::metadata(&private).unwrap();
    let name = EntryPath::new("private").unwrap();
    assert_eq!(place.make_folder(&name, 1, Mono(0)), Ok(Done::Present));
    assert_eq!(place.seal(&name, 0o777.into(), EPOCH, 1, Mono(0)), Ok(Done::Present));
    assert_eq!((mode(folder.path()), mode(&private)), (0o700, 0o700));
    let after = fs::metadata(&private).unwrap();
    assert_eq!((after.mtime(), after.mtime_nsec()), (before.mtime(), before.mtime_nsec()));
}

#[test]
fn a_sender_gives_no_permission_that_the_owners_umask_takes_away() {
    for (umask, want) in [(0o022, 0o755), (0o077, 0o700), (0, 0o755)] {
        let (folder, place) = place(Existing::Keep);
        let place = Place { allowed: allowed(umask), ..place };
        let mut incoming = examine(&place, "file", 1).unwrap();
        incoming.file.mode = 0o7777.into();
        incoming.begin(0).unwrap();
        incoming.write(b"x").unwrap();
        assert_eq!(incoming.end(digest(b"x")), Ok(Done::Written));
        let name = EntryPath::new("folder").unwrap();
        assert_eq!(place.make_folder(&name, 1, Mono(0)), Ok(Done::Written));
        assert_eq!(mode(&folder.path().join("folder")) & 0o077, 0, "nobody else's until it is sealed");
        assert_eq!(place.seal(&name, 0o7777.into(), EPOCH, 1, Mono(0)), Ok(Done::Written));
        let modes = ["file", "folder"].map(|name| mode(&folder.path().join(name)) & 0o5777);
        assert_eq!(modes, [want, want], "{umask:o}");
        assert_eq!(fs::metadata(folder.path().join("folder")).unwrap().mtime(), 0);
    }
}

#[test]
fn a_file_that_is_replaced_keeps_its_permissions() {
    let (folder, place) = place(Existing::Overwrite);
    let secret = folder.path().join("secret");
    fs::write(&secret, "old").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(put(&place, "secret", b"new one"), Ok(Done::Written));
    assert_eq!((mode(&secret), fs::read(&secret).unwrap()), (0o600, b"new one".to_vec()));
}

#[test]
fn a_sender_without_the_key_does_not_learn_what_a_file_holds_or_how_long_it_is() {
    let (folder, place) = keyless(Existing::Keep);
    fs::write(folder.path().join("secret"), "same").unwrap();
    fs::write(folder.path().join("empty"), "").unwrap();
    let answer = |path: &str, bytes: u64| examine(&place, path, bytes).map(|_| ()).unwrap_err();
    let want = answer("secret", 4);
    assert_eq!(want.code, RefusalCode::Exists);
    for other in [answer("secret", 5), answer("secret", 0), answer("empty", 0), answer("empty", 1)] {
        assert_eq!(other, want);
    }
    // It began before the owner's file was there.
    for content in ["mine", "diff"] {
        let name = format!("late-{content}");
        let mut incoming = examine(&place, &name, 4).unwrap();
        incoming.begin(0).unwrap();
        incoming.write(b"mine").unwrap();
        fs::write(folder.path().join(&name), content).unwrap();
        assert_eq!(incoming.end(digest(b"mine")), Err(want.clone()));
    }
}

#[test]
fn where_files_are_replaced_a_sender_without_the_key_sends_all_of_one_that_is_equal() {
    let (folder, place) = keyless(Existing::Overwrite);
    fs::write(folder.path().join("secret"), "same").unwrap();
    assert_eq!(examine(&place, "secret", 4).unwrap().have(), None);
    assert_eq!(put(&place, "secret", b"same"), Ok(Done::Written));
}

#[test]
fn what_came_without_a_key_is_not_sent_again_unless_somebody_changed_it() {
    let (folder, place) = keyless(Existing::Keep);
    assert_eq!(put(&place, "a", b"same"), Ok(Done::Written));
    assert_eq!(examine(&place, "a", 4).unwrap().have().map(|have| have.complete), Some(true));
    assert_eq!(code(examine(&place, "a", 5)), RefusalCode::Exists);
    assert_eq!(put(&place, "empty", b""), Ok(Done::Written));
    assert!(examine(&place, "empty", 0).is_ok());
    fs::write(folder.path().join("a"), "SAME").unwrap();
    assert_eq!(examine(&place, "a", 4).map(|_| ()).unwrap_err().why, NOT_COMPARED);
}

#[test]
fn a_umask_that_is_not_told_is_the_strictest() {
    let rows = [
        ("Name:\tx\nUmask:\t0022\nState:\tR\n", Some(0o022)),
        ("Umask:\t0000\n", Some(0)),
        ("Umask:\t9\n", None),
        ("Umask:\t17777\n", None),
        ("Name:\tx\n", None),
    ];
    for (status, want) in rows {
        assert_eq!(parse_umask(status), want, "{status:?}");
    }
}
