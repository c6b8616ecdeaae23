//! Fields of the IP header that a prober asks its responder to set in what it sends.

use serde::{Deserialize, Serialize};

/// Flow labels have 20 bits (RFC 8200 §3); 0 means "no label" (RFC 6437 §2), so it cannot be asked
/// for.
pub const MAX_FLOW_LABEL: u32 = 0xf_ffff;

/// Asked for once per session, before its tests; absent fields are left to the responder's system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HeaderFields {
    /// DSCP of tests whose plan has none of its own, 0..=63.
    #[serde(default)]
    pub dscp: u8,
    /// TTL of IPv4, hop limit of IPv6, 1..=255.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u8>,
    /// Flow label of IPv6 (RFC 6437), 1..=[`MAX_FLOW_LABEL`]; without meaning over IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_label: Option<u32>,
}

impl HeaderFields {
    /// Whether anything is asked for that no plan carries.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The first field out of its range, as a sentence for the one who asked.
    pub fn fault(&self) -> Option<String> {
        if self.dscp > 63 {
            return Some(format!("dscp is {}; it must be between 0 and 63", self.dscp));
        }
        if self.ttl == Some(0) {
            return Some("ttl is 0; it must be between 1 and 255".to_owned());
        }
        let label = self.flow_label.filter(|label| !(1..=MAX_FLOW_LABEL).contains(label))?;
        Some(format!("flow_label is {label}; it must be between 1 and {MAX_FLOW_LABEL}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_out_of_range_are_named() {
        let none = HeaderFields::default();
        assert!(none.is_empty() && none.fault().is_none());
        let good = HeaderFields { dscp: 63, ttl: Some(255), flow_label: Some(MAX_FLOW_LABEL) };
        assert!(!good.is_empty() && good.fault().is_none());
        let rows = [
            ("dscp is 64", HeaderFields { dscp: 64, ..none }),
            ("ttl is 0", HeaderFields { ttl: Some(0), ..none }),
            ("flow_label is 0", HeaderFields { flow_label: Some(0), ..none }),
            ("flow_label is 1048576", HeaderFields { flow_label: Some(MAX_FLOW_LABEL + 1), ..none }),
        ];
        for (want, fields) in rows {
            let fault = fields.fault().unwrap();
            assert!(fault.starts_with(want), "{want}: {fault}");
        }
    }
}
