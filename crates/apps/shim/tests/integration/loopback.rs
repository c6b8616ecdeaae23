//! A program with the library does what it does without it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

/// Connects in every way that the library looks at, to where there is nothing to race.
const CLIENT: &str = r#"
import asyncio, errno, os, select, socket, subprocess, sys
port = int(sys.argv[1])
def ask(s):
    s.setblocking(True)
    s.sendall(b"hello")
    s.shutdown(socket.SHUT_WR)
    assert s.recv(10) == b"hello"
    s.close()
socket.getaddrinfo("localhost", port)
ask(socket.create_connection(("127.0.0.1", port)))
ask(socket.create_connection(("127.0.0.1", port), timeout=5))
s = socket.socket(); s.bind(("127.0.0.1", 0)); own = s.getsockname(); s.connect(("127.0.0.1", port))
assert s.getsockname() == own and s.getpeername() == ("127.0.0.1", port)
ask(s)
s = socket.socket(); e = select.epoll(); e.register(s); s.setblocking(False); s.connect_ex(("127.0.0.1", port))
while not e.poll(5)[0][1] & select.EPOLLOUT: pass
ask(s)
loop = asyncio.new_event_loop()
s = socket.socket(); s.setblocking(False); loop.run_until_complete(loop.sock_connect(s, ("127.0.0.1", port)))
ask(s)
s = socket.socket()
assert s.connect_ex(("127.0.0.1", 1)) == errno.ECONNREFUSED
assert socket.socket().connect_ex(("127.0.0.1", 0)) != 0
try: os.close(12345)
except OSError as why: assert why.errno == errno.EBADF
try: s.getpeername()
except OSError as why: assert why.errno == errno.ENOTCONN
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect(("127.0.0.1", port))
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
if os.fork() == 0:
    ask(socket.create_connection(("127.0.0.1", port)))
    os._exit(7)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
if len(sys.argv) == 2:
    subprocess.run([sys.executable, "-c", open("/proc/self/cmdline").read().split("\0")[2], str(port), "child"], check=True)
print("fine")
"#;

#[test]
fn a_program_works_as_without_it() {
    let library = std::env::current_exe().unwrap().parent().unwrap().join("libnetaware_shim.so");
    assert!(library.is_file(), "{}", library.display());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                socket.read_to_end(&mut bytes).and_then(|_| socket.write_all(&bytes)).ok();
            });
        }
    });
    for order in [Some("race,verbose"), Some("race,prefer=6"), Some("race,only=4"), Some("nonsense"), None] {
        let mut python = Command::new("python3");
        python.args(["-c", CLIENT, &port]).env("LD_PRELOAD", &library);
        match order {
            Some(order) => python.env("NETAWARE_RUN", order),
            None => python.env_remove("NETAWARE_RUN"),
        };
        let ended = python.output().expect("python3");
        let (said, complained) = (
            String::from_utf8_lossy(&ended.stdout).into_owned(),
            String::from_utf8_lossy(&ended.stderr).into_owned(),
        );
        assert!(!complained.contains("panicked at"), "{order:?}: {complained}");
        assert!(ended.status.success() && said.ends_with("fine\n"), "{order:?}: {said}{complained}");
    }
}
