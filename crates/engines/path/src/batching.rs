//! What interrupt coalescing and polling do to arrivals, found and taken out: shared by all methods.
