//! What an open session may ask.

use netaware_units::{Mono, Span};
use netaware_wire::control::{ClientMessage, ErrorCode, ServerMessage};
use netaware_wire::header::HeaderFields;

use super::Session;
use crate::plan::{self, Refusal};

impl Session<'_> {
    pub(super) fn command(&mut self, now: Mono, message: ClientMessage) {
        match message {
            ClientMessage::Ping { seq } => {
                self.note_ping(now);
                let stood_still = Some(self.stood_still).filter(|stood| *stood > Span::ZERO);
                self.say(ServerMessage::Pong { seq, stood_still });
            }
            ClientMessage::SetHeader { header } => self.set_header(header),
            ClientMessage::Reserve { expected, join } => self.reserve(expected, join),
            ClientMessage::Release => self.release(),
            ClientMessage::Open { test, plan } => self.open(test, plan),
            ClientMessage::Channel { test, end } => self.open_channel(test, end),
            ClientMessage::Start { test } => self.start(now, test),
            ClientMessage::Stop { test } => self.stop_test(test),
            ClientMessage::Volley { test, volley } => self.volley(test, volley),
            ClientMessage::Hello { .. } | ClientMessage::Authenticate { .. } => {
                self.say_error(ErrorCode::State, "the session stands already", None);
            }
            // Handled in every state by the caller.
            ClientMessage::Bye => {}
        }
    }

    /// Before the first test, so that no test sends with one header first and with another later.
    fn set_header(&mut self, header: HeaderFields) {
        if !self.tests.is_empty() {
            return self.say_error(ErrorCode::State, "tests are open: their header is settled", None);
        }
        match plan::check_header(&header) {
            Ok(()) => {
                self.header = header;
                self.say(ServerMessage::HeaderSet);
            }
            Err(Refusal { code, message }) => self.say_error(code, &message, None),
        }
    }
}
