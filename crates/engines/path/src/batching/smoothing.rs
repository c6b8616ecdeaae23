//! Averages the gaps of sender and receiver over each buffering event.
//!
//! What it does: under coalescing the gaps of arrivals are one long gap (the spike) and then a run
//! of short ones. Both the sent and the received gaps from a spike to just before the next are
//! replaced by their means, which keeps the rates and takes out the noise. It assumes that the true
//! rate hardly changes within a batch; where it does (a chirp), the price is resolution. Gaps
//! before the first spike belong to a batch that was cut, and are averaged like one. Published:
//! Yin, Kaur, "Can machine learning benefit bandwidth estimation at ultra-high speeds?", PAM 2016,
//! and the same group's notes on buffering-aware spike smoothing (2014). Where we differ: a spike
//! is a gap longer than `spike`, not a rise above the gap before it, since two spikes in a row are
//! two events.

/// Smoothed gaps of sender and receiver; as many as the shorter of both has.
pub fn smooth(sent: &[f64], received: &[f64], spike: f64) -> (Vec<f64>, Vec<f64>) {
    let count = sent.len().min(received.len());
    let (mut smooth_sent, mut smooth_received) = (sent[..count].to_vec(), received[..count].to_vec());
    let mut begin = 0;
    for end in 1..=count {
        if end == count || received[end] > spike {
            level(&mut smooth_sent[begin..end]);
            level(&mut smooth_received[begin..end]);
            begin = end;
        }
    }
    (smooth_sent, smooth_received)
}

fn level(gaps: &mut [f64]) {
    if !gaps.is_empty() {
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        gaps.fill(mean);
    }
}
