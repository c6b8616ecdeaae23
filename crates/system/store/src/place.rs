//! Where results lie when nobody says otherwise.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::OpenError;

/// The environment variable that names the file of results.
pub const PATH_VARIABLE: &str = "NETAWARE_STORE";

/// `$NETAWARE_STORE`, else `netaware/results.db` under `$XDG_DATA_HOME`, else under
/// `$HOME/.local/share` (XDG Base Directory Specification 0.8). Empty variables count as unset, as
/// that specification asks.
///
/// # Errors
/// None of the three is set.
pub fn default_path() -> Result<PathBuf, OpenError> {
    chosen(|name| std::env::var_os(name))
}

/// Returns the file of what strangers' pages send, beside the owner's file of results. It is never
/// the owner's own.
pub fn strangers_path(results: &Path) -> PathBuf {
    let beside = results.with_file_name("strangers.db");
    if beside == results { results.with_file_name("strangers-of-strangers.db") } else { beside }
}

fn chosen(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, OpenError> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(file) = set(PATH_VARIABLE) {
        return Ok(file);
    }
    // The specification tells to ignore a relative XDG_DATA_HOME.
    let data = set("XDG_DATA_HOME").filter(|folder| folder.is_absolute());
    let data = data.or_else(|| set("HOME").map(|home| home.join(".local/share")));
    data.map(|folder| folder.join("netaware/results.db")).ok_or(OpenError::NoHome)
}

/// Makes the folder of a file, for its owner alone: results say with whom this user speaks.
pub(crate) fn make_folder(file: &Path) -> Result<(), OpenError> {
    let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    netaware_private::make_folder(folder)
        .map_err(|source| OpenError::Folder { path: file.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(variables: &[(&str, &str)]) -> Option<String> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
        chosen(find).ok().map(|path| path.display().to_string())
    }

    #[test]
    fn strangers_have_a_file_of_their_own_beside_the_owners() {
        for (owners, strangers) in [
            ("/data/results.db", "/data/strangers.db"),
            ("results.db", "strangers.db"),
            ("strangers.db", "strangers-of-strangers.db"),
        ] {
            assert_eq!(strangers_path(Path::new(owners)), Path::new(strangers));
        }
    }

    #[test]
    fn the_strongest_variable_names_the_file() {
        type Rows<'a> = &'a [(&'a [(&'a str, &'a str)], Option<&'a str>)];
        let home = ("HOME", "/home/a");
        let rows: Rows<'_> = &[
            (&[home], Some("/home/a/.local/share/netaware/results.db")),
            (&[home, ("XDG_DATA_HOME", "/data")], Some("/data/netaware/results.db")),
            (&[home, ("XDG_DATA_HOME", "data")], Some("/home/a/.local/share/netaware/results.db")),
            (&[home, ("XDG_DATA_HOME", "/d"), (PATH_VARIABLE, "x.db")], Some("x.db")),
            (&[home, (PATH_VARIABLE, "")], Some("/home/a/.local/share/netaware/results.db")),
            (&[], None),
        ];
        for (n, (variables, want)) in rows.iter().enumerate() {
            assert_eq!(place(variables).as_deref(), *want, "row {n}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = make_folder(&file.path().join("below/results.db")).unwrap_err();
        assert!(error.to_string().contains(&*file.path().to_string_lossy()), "{error}");
    }
}
