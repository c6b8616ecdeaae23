//! What an open session may ask.

use netaware_units::Mono;
use netaware_wire::control::{ClientMessage, ErrorCode, ServerMessage};

use super::Session;

impl Session<'_> {
    pub(super) fn command(&mut self, now: Mono, message: ClientMessage) {
        match message {
            ClientMessage::Ping { seq } => self.say(ServerMessage::Pong { seq }),
            ClientMessage::Reserve { expected, join } => self.reserve(expected, join),
            ClientMessage::Release => self.release(),
            ClientMessage::Open { test, plan } => self.open(test, plan),
            ClientMessage::Start { test } => self.start(now, test),
            ClientMessage::Stop { test } => self.stop_test(test),
            ClientMessage::Hello { .. } | ClientMessage::Authenticate { .. } => {
                self.say_error(ErrorCode::State, "the session stands already", None);
            }
            // Handled in every state by the caller.
            ClientMessage::Bye => {}
        }
    }
}
