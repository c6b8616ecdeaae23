//! Frames as they are: what no socket of a higher layer can be made to send, as tags that the
//! kernel would take out.

#![expect(unsafe_code, reason = "raw frames have no safe wrapper")]

use std::ffi::CString;
use std::io;

use crate::side::Side;

impl Side {
    /// Puts an Ethernet frame on the wire of this side's interface, as it is; 14 bytes at least.
    ///
    /// # Errors
    /// No privilege, a frame that is no frame, or not all of it left.
    pub fn inject(&self, frame: &[u8]) -> io::Result<()> {
        let Some(kind) = frame.get(12..14).and_then(|kind| kind.first_chunk().copied()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "shorter than an Ethernet header"));
        };
        let device = CString::new(self.device())?;
        let sent = self.within(|| {
            // SAFETY: no pointers.
            let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: all zeros is a valid value of this plain structure.
            let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            to.sll_family = libc::AF_PACKET as u16;
            // SAFETY: a terminated name.
            to.sll_ifindex = unsafe { libc::if_nametoindex(device.as_ptr()) } as i32;
            to.sll_protocol = u16::from_be_bytes(kind).to_be();
            let size = size_of::<libc::sockaddr_ll>() as u32;
            // SAFETY: frame and address are valid for their lengths; the descriptor is ours and
            // closed once.
            unsafe {
                let sent =
                    libc::sendto(fd, frame.as_ptr().cast(), frame.len(), 0, (&raw const to).cast(), size);
                let error = io::Error::last_os_error();
                libc::close(fd);
                if sent < 0 { Err(error) } else { Ok(sent.unsigned_abs()) }
            }
        })?;
        if sent == frame.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }
}
