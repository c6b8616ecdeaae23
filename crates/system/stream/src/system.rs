//! What systems do not have alike.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use rustix::net::SendFlags;

#[cfg(target_os = "linux")]
pub(crate) use linux::{MORE, NO_SIGNAL, file_in_memory, give_back, give_up_after, in_large_page, send_file};
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::{
    MORE, NO_SIGNAL, file_in_memory, give_back, give_up_after, in_large_page, send_file,
};

/// Of processors that have them.
pub(crate) const LARGE_PAGE: u64 = 2 << 20;

#[cfg(target_os = "linux")]
mod linux {
    use super::{LARGE_PAGE, OwnedFd, SendFlags, TcpStream, io};

    /// Bytes follow at once: they may go in one packet.
    pub(crate) const MORE: SendFlags = SendFlags::MORE;
    /// A connection that is gone is an error and no SIGPIPE.
    pub(crate) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;

    /// A file that no folder has.
    pub(crate) fn file_in_memory() -> io::Result<OwnedFd> {
        use rustix::fs::{MemfdFlags, memfd_create};

        Ok(memfd_create("netaware-stream", MemfdFlags::CLOEXEC)?)
    }

    /// Puts the bytes of a file in memory from there on, as long as [`LARGE_PAGE`], into one large
    /// page where the system has one: what is done page by page, in writing and in sending, is then
    /// done once. Whether it did.
    #[expect(unsafe_code, reason = "a mapping, which nobody else sees and which is gone before this returns")]
    pub(crate) fn in_large_page(file: &OwnedFd, at: u64) -> bool {
        use std::os::fd::AsRawFd as _;
        use std::ptr::null_mut;

        let (page, both) = (LARGE_PAGE as usize, 2 * LARGE_PAGE as usize);
        let Ok(at) = libc::off_t::try_from(at) else { return false };
        // SAFETY: address space is reserved first, so that the mapping can begin where a large page
        // may; nothing of ours was there, and all of it is given back.
        unsafe {
            let hidden = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let room = libc::mmap(null_mut(), both, libc::PROT_NONE, hidden, -1, 0);
            if room == libc::MAP_FAILED {
                return false;
            }
            let place = room.wrapping_byte_add(room.cast::<u8>().align_offset(page));
            let (used, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
            let mapped = libc::mmap(place, page, used, shared, file.as_raw_fd(), at);
            let done = mapped != libc::MAP_FAILED && {
                // One of those that become one has to be there.
                mapped.cast::<u8>().write_volatile(0);
                libc::madvise(mapped, page, libc::MADV_COLLAPSE) == 0
            };
            libc::munmap(room, both);
            done
        }
    }

    /// The memory of bytes that nobody needs any more.
    pub(crate) fn give_back(file: &OwnedFd, at: u64, length: u64) -> io::Result<()> {
        use rustix::fs::FallocateFlags;

        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(file, how, at, length)?)
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

    /// Here there are none.
    pub(crate) fn in_large_page(_file: &OwnedFd, _at: u64) -> bool {
        false
    }

    /// Here it stays with the file.
    pub(crate) fn give_back(_file: &OwnedFd, _at: u64, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
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
