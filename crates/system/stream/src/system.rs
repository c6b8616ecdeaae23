//! What systems do not have alike.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use rustix::net::SendFlags;

#[cfg(target_os = "linux")]
pub(crate) use linux::{MORE, NO_SIGNAL, file_in_memory, give_up_after, send_file};
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::{MORE, NO_SIGNAL, file_in_memory, give_up_after, send_file};

#[cfg(target_os = "linux")]
mod linux {
    use super::{OwnedFd, SendFlags, TcpStream, io};

    /// Bytes follow at once: they may go in one packet.
    pub(crate) const MORE: SendFlags = SendFlags::MORE;
    /// A connection that is gone is an error and no SIGPIPE.
    pub(crate) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;

    /// A file that no folder has.
    pub(crate) fn file_in_memory() -> io::Result<OwnedFd> {
        use rustix::fs::{MemfdFlags, memfd_create};

        Ok(memfd_create("netaware-stream", MemfdFlags::CLOEXEC)?)
    }

    /// Bytes of a file, by reference; how many were taken.
    pub(crate) fn send_file(to: &TcpStream, file: &OwnedFd, mut at: u64, most: usize) -> io::Result<usize> {
        Ok(rustix::fs::sendfile(to, file, Some(&mut at), most)?)
    }

    /// Of a connection that acknowledges nothing: what is not sent yet can still go the other way.
    pub(crate) fn give_up_after(socket: &TcpStream, millis: u32) -> io::Result<()> {
        Ok(rustix::net::sockopt::set_tcp_user_timeout(socket, millis)?)
    }
}

#[cfg(any(not(target_os = "linux"), test))]
#[cfg_attr(target_os = "linux", expect(dead_code, reason = "tested on every system"))]
mod portable {
    use super::{OwnedFd, SendFlags, TcpStream, io};

    pub(crate) const MORE: SendFlags = SendFlags::empty();
    /// Sockets of the standard library are made so that they raise none.
    pub(crate) const NO_SIGNAL: SendFlags = SendFlags::empty();

    /// A file that no folder has any more.
    pub(crate) fn file_in_memory() -> io::Result<OwnedFd> {
        Ok(tempfile::tempfile()?.into())
    }

    /// Bytes of a file, copied; how many were taken.
    pub(crate) fn send_file(to: &TcpStream, file: &OwnedFd, at: u64, most: usize) -> io::Result<usize> {
        let mut part = [0; 16 * 1024];
        let most = most.min(part.len());
        let read = rustix::io::pread(file, &mut part[..most], at)?;
        Ok(rustix::net::send(to, &part[..read], NO_SIGNAL)?)
    }

    /// The system's own patience has to do.
    #[expect(clippy::unnecessary_wraps, reason = "as on Linux, where it can fail")]
    pub(crate) fn give_up_after(_socket: &TcpStream, _millis: u32) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("[::1]:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (one, listener.accept().unwrap().0)
    }

    fn sent(file: &OwnedFd, send: impl Fn(&TcpStream, &OwnedFd, u64, usize) -> io::Result<usize>) -> Vec<u8> {
        let (here, mut there) = pair();
        let mut at = 0;
        while at < 40_000 {
            at += send(&here, file, at, 40_000 - at as usize).unwrap() as u64;
        }
        drop(here);
        let mut all = Vec::new();
        there.read_to_end(&mut all).unwrap();
        all
    }

    #[test]
    fn a_file_is_sent_alike_by_reference_and_by_copies() {
        let bytes: Vec<u8> = (0..40_000_u32).map(|n| (n % 251) as u8).collect();
        for file in [file_in_memory().unwrap(), portable::file_in_memory().unwrap()] {
            rustix::io::pwrite(&file, &bytes, 0).unwrap();
            assert!(sent(&file, send_file) == bytes && sent(&file, portable::send_file) == bytes);
        }
    }
}
