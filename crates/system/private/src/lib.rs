//! Files of one user on a host that others use too.
//!
//! Three questions are answered here and nowhere else:
//!
//! - How is a file made that nobody else may read? [`options`], [`write`](fn@write),
//!   [`make_folder`] and [`make_file`] make files 0600 and folders 0700, whatever the umask is, and
//!   [`narrow`] takes back what an older version gave to others.
//! - May others read a secret? [`read_secret`] and [`is_exposed`] find out, [`exposure`] is the
//!   sentence about it.
//! - Are settings the word of this user or of root? [`read_settings`] reads no others.
//!
//! A child does not inherit secrets of the environment: [`without_secrets`].
//!
//! Systems that know no such modes (not Unix) keep their own defaults, and everything is trusted.

mod environment;
mod file;
mod secret;
mod trust;

pub use environment::{SECRET_VARIABLES, without_secrets};
pub use file::{make_file, make_folder, narrow, narrow_database, options, write};
pub use secret::{Secret, exposure, is_exposed, read_secret};
pub use trust::{Access, Doubt, Settings, doubt, read_settings};
