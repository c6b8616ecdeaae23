//! libpcap, loaded at run time: five functions of its stable interface (pcap(3pcap)).

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use netaware_wire::packet::LinkType;

use super::{BpfInstruction, FilterError, WHOLE};

pub(super) fn compile(text: &str, link: LinkType) -> Result<Vec<BpfInstruction>, FilterError> {
    static LIBRARY: OnceLock<Result<Library, FilterError>> = OnceLock::new();
    // Compilers of libpcap before 1.8 share state.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let library = LIBRARY.get_or_init(Library::load).as_ref().map_err(Clone::clone)?;
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    library.compile(text, link)
}

struct Library {
    open_dead: unsafe extern "C" fn(c_int, c_int) -> *mut c_void,
    compile: unsafe extern "C" fn(*mut c_void, *mut Program, *const c_char, c_int, u32) -> c_int,
    free_code: unsafe extern "C" fn(*mut Program),
    get_error: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    close: unsafe extern "C" fn(*mut c_void),
}

/// `struct bpf_program`.
#[repr(C)]
struct Program {
    length: u32,
    instructions: *mut Instruction,
}

/// `struct bpf_insn`.
#[repr(C)]
struct Instruction {
    code: u16,
    jump_true: u8,
    jump_false: u8,
    operand: u32,
}

impl Library {
    fn load() -> Result<Self, FilterError> {
        let mut refused = String::new();
        for name in NAMES {
            // SAFETY: a terminated name; the library's initialisers run, as they do in every
            // program linked with it.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if !handle.is_null() {
                return Self::bind(handle).ok_or_else(|| FilterError::NoLibrary("it is too old".to_owned()));
            }
            if refused.is_empty() {
                refused = last_error();
            }
        }
        Err(FilterError::NoLibrary(refused))
    }

    /// The library stays loaded: filters may be compiled at any time.
    fn bind(handle: *mut c_void) -> Option<Self> {
        // SAFETY: these five have had these types since libpcap 0.8; the handle is never closed, so
        // they stay valid.
        unsafe {
            Some(Self {
                open_dead: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(c_int, c_int) -> *mut c_void,
                >(symbol(handle, c"pcap_open_dead")?),
                compile: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut c_void, *mut Program, *const c_char, c_int, u32) -> c_int,
                >(symbol(handle, c"pcap_compile")?),
                free_code: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut Program)>(symbol(
                    handle,
                    c"pcap_freecode",
                )?),
                get_error: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut c_void) -> *const c_char,
                >(symbol(handle, c"pcap_geterr")?),
                close: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(symbol(
                    handle,
                    c"pcap_close",
                )?),
            })
        }
    }

    fn compile(&self, text: &str, link: LinkType) -> Result<Vec<BpfInstruction>, FilterError> {
        let filter = CString::new(text).map_err(|_| FilterError::Text)?;
        // SAFETY: plain numbers; null is checked.
        let handle = unsafe { (self.open_dead)(number(link), WHOLE as c_int) };
        if handle.is_null() {
            return Err(FilterError::NoLibrary("it is out of memory".to_owned()));
        }
        let mut program = Program { length: 0, instructions: std::ptr::null_mut() };
        // SAFETY: an open handle, a program to fill, a terminated text.
        let answer =
            unsafe { (self.compile)(handle, &raw mut program, filter.as_ptr(), OPTIMISE, UNKNOWN_NETMASK) };
        let result = if answer == 0 && !program.instructions.is_null() {
            // SAFETY: the call succeeded, so there are that many instructions there until they are
            // freed, below.
            let found = unsafe { std::slice::from_raw_parts(program.instructions, program.length as usize) };
            Ok(found.iter().map(Instruction::read).collect())
        } else {
            // SAFETY: an open handle; its error is a terminated text within it.
            let reason = unsafe { CStr::from_ptr((self.get_error)(handle)) }.to_string_lossy().into_owned();
            Err(FilterError::Syntax { filter: text.to_owned(), reason })
        };
        // SAFETY: freed once each; after a failure there are no instructions, and freeing none is
        // allowed.
        unsafe {
            (self.free_code)(&raw mut program);
            (self.close)(handle);
        }
        result
    }
}

impl Instruction {
    fn read(&self) -> BpfInstruction {
        BpfInstruction::new(self.code, self.jump_true, self.jump_false, self.operand)
    }
}

/// # Safety
/// `handle` must be an open library.
unsafe fn symbol(handle: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: as the caller promises, and a terminated name.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

fn last_error() -> String {
    // SAFETY: no arguments; the text is the thread's own until its next call of this family.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: not null, so a terminated text.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// libpcap's own numbers differ from those in files for raw IP only.
fn number(link: LinkType) -> c_int {
    match link {
        LinkType::Raw => 12,
        other => other.number().into(),
    }
}

/// Debian's name first, then everybody else's.
const NAMES: [&CStr; 3] = [c"libpcap.so.0.8", c"libpcap.so.1", c"libpcap.so"];
const OPTIMISE: c_int = 1;
/// `PCAP_NETMASK_UNKNOWN`: "ip broadcast" is refused, nothing else changes.
const UNKNOWN_NETMASK: u32 = u32::MAX;
