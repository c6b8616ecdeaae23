//! Words of a relay at the other end: nothing panics, and what parses comes back as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netaware_wire::relay::{
    ANSWER_LEN, Answer, GREETING_LEN, Greeting, MAX_SERVICE, REQUEST_LEN, RequestHead,
};

fuzz_target!(|bytes: &[u8]| {
    if let Some(first) = bytes.first_chunk::<GREETING_LEN>()
        && let Ok(greeting) = Greeting::parse(first)
    {
        assert_eq!(Greeting::parse(&greeting.emit()), Ok(greeting));
    }
    if let Some(first) = bytes.first_chunk::<ANSWER_LEN>()
        && let Ok(answer) = Answer::parse(first)
    {
        assert_eq!(Answer::parse(&answer.emit()), Ok(answer));
    }
    if let Some(first) = bytes.first_chunk::<REQUEST_LEN>()
        && let Ok(head) = RequestHead::parse(first)
    {
        assert!(head.name_len <= MAX_SERVICE);
        let name = &bytes[REQUEST_LEN..];
        let name = &name[..name.len().min(head.name_len)];
        if let Ok(request) = head.finish(name) {
            let again = request.emit().expect("a name that is not too long");
            let (head, name) = again.split_first_chunk::<REQUEST_LEN>().expect("a head");
            assert_eq!(RequestHead::parse(head).and_then(|head| head.finish(name)), Ok(request));
        }
    }
});
