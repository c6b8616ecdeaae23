//! The integration tests of `netaware-ffi`, in one executable. Modules called `netns_*` need root
//! and network namespaces.

mod abi;
mod c_library;
mod examples;
mod header;
mod install;
mod installation;
mod netns_valgrind;
