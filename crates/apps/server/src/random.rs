//! Bytes that nobody can predict, from the system.

use netaware_wire::{OwnerToken, Token};

/// Fresh tokens.
pub(crate) fn tokens<const N: usize>() -> Result<[Token; N], getrandom::Error> {
    let mut tokens = [Token::default(); N];
    for token in &mut tokens {
        getrandom::fill(&mut token.0)?;
    }
    Ok(tokens)
}

/// A fresh secret.
pub(crate) fn secret() -> Result<[u8; 32], getrandom::Error> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    Ok(secret)
}

/// A fresh token of the owner.
pub(crate) fn owner_token() -> Result<OwnerToken, getrandom::Error> {
    secret().map(OwnerToken)
}
