//! Where a certificate that was made here is kept.

use std::path::PathBuf;

/// The file of that name in the user's data folder (XDG Base Directory Specification 0.8); `None`
/// without one.
pub(crate) fn identity_file(name: &str) -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = set("XDG_DATA_HOME").filter(|folder| folder.is_absolute());
    let data = data.or_else(|| set("HOME").map(|home| home.join(".local/share")));
    data.map(|folder| folder.join("netaware").join(name))
}
