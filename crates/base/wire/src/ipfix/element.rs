//! Numbers of information elements, as IANA lists them ("IPFIX Information Elements", read in July
//! 2026).
//!
//! RFC 5476's examples give some PSAMP elements numbers that were never assigned so
//! (selectorAlgorithm "302", hashInitialiserValue "329"); these are those of RFC 5477 and the
//! registry.

/// Elements without a number from IANA carry this private enterprise number, which is reserved for
/// documentation (RFC 5612): netaware has none of its own. A collector that knows no such number
/// skips the field (RFC 7011 §9).
pub const ENTERPRISE: u32 = 32473;

macro_rules! elements {
    ($($(#[$doc:meta])* $name:ident = $number:literal),* $(,)?) => {
        $($(#[$doc])* pub const $name: u16 = $number;)*
    };
}

elements! {
    /// octetDeltaCount: bytes from the IP header on, since the last report.
    OCTETS = 1,
    /// packetDeltaCount.
    PACKETS = 2,
    /// protocolIdentifier.
    PROTOCOL = 4,
    /// ipClassOfService: the whole octet, DSCP in its upper six bits.
    CLASS_OF_SERVICE = 5,
    /// sourceTransportPort.
    SOURCE_PORT = 7,
    /// sourceIPv4Address.
    SOURCE_V4 = 8,
    /// sourceIPv4PrefixLength.
    SOURCE_V4_PREFIX = 9,
    /// destinationTransportPort.
    DESTINATION_PORT = 11,
    /// destinationIPv4Address.
    DESTINATION_V4 = 12,
    /// destinationIPv4PrefixLength.
    DESTINATION_V4_PREFIX = 13,
    /// flowEndSysUpTime: ms since the exporter started.
    END_UPTIME = 21,
    /// flowStartSysUpTime: ms since the exporter started.
    START_UPTIME = 22,
    /// sourceIPv6Address.
    SOURCE_V6 = 27,
    /// destinationIPv6Address.
    DESTINATION_V6 = 28,
    /// sourceIPv6PrefixLength.
    SOURCE_V6_PREFIX = 29,
    /// destinationIPv6PrefixLength.
    DESTINATION_V6_PREFIX = 30,
    /// flowLabelIPv6.
    FLOW_LABEL = 31,
    /// icmpTypeCodeIPv4.
    ICMP_V4 = 32,
    /// samplingInterval (deprecated).
    SAMPLING_INTERVAL = 34,
    /// sourceIPv4Prefix.
    SOURCE_V4_NETWORK = 44,
    /// destinationIPv4Prefix.
    DESTINATION_V4_NETWORK = 45,
    /// ipVersion.
    VERSION = 60,
    /// interfaceName.
    INTERFACE_NAME = 82,
    /// octetTotalCount: since the flow began.
    OCTETS_TOTAL = 85,
    /// packetTotalCount.
    PACKETS_TOTAL = 86,
    /// droppedPacketDeltaCount.
    DROPPED = 133,
    /// flowEndReason.
    END_REASON = 136,
    /// icmpTypeCodeIPv6.
    ICMP_V6 = 139,
    /// meteringProcessId.
    METERING_PROCESS = 143,
    /// templateId.
    TEMPLATE_ID = 145,
    /// observationDomainId.
    OBSERVATION_DOMAIN = 149,
    /// flowStartSeconds.
    START_SECONDS = 150,
    /// flowEndSeconds.
    END_SECONDS = 151,
    /// flowStartMilliseconds.
    START_MILLIS = 152,
    /// flowEndMilliseconds.
    END_MILLIS = 153,
    /// flowStartMicroseconds.
    START_MICROS = 154,
    /// flowEndMicroseconds.
    END_MICROS = 155,
    /// flowStartNanoseconds.
    START_NANOS = 156,
    /// flowEndNanoseconds.
    END_NANOS = 157,
    /// flowStartDeltaMicroseconds: before the export time.
    START_DELTA = 158,
    /// flowEndDeltaMicroseconds: before the export time.
    END_DELTA = 159,
    /// systemInitTimeMilliseconds.
    SYSTEM_INIT = 160,
    /// flowDurationMilliseconds.
    DURATION_MILLIS = 161,
    /// flowDurationMicroseconds.
    DURATION_MICROS = 162,
    /// ignoredPacketTotalCount.
    IGNORED = 164,
    /// notSentPacketTotalCount.
    NOT_SENT = 167,
    /// destinationIPv6Prefix.
    DESTINATION_V6_NETWORK = 169,
    /// sourceIPv6Prefix.
    SOURCE_V6_NETWORK = 170,
    /// udpSourcePort.
    UDP_SOURCE_PORT = 180,
    /// udpDestinationPort.
    UDP_DESTINATION_PORT = 181,
    /// tcpSourcePort.
    TCP_SOURCE_PORT = 182,
    /// tcpDestinationPort.
    TCP_DESTINATION_PORT = 183,
    /// totalLengthIPv4.
    TOTAL_LENGTH_V4 = 190,
    /// ipTTL.
    TTL = 192,
    /// ipDiffServCodePoint.
    DSCP = 195,
    /// paddingOctets.
    PADDING = 210,
    /// ipTotalLength.
    TOTAL_LENGTH = 224,
    /// selectionSequenceId.
    SELECTION_SEQUENCE = 301,
    /// selectorId; 16 bits in RFC 5477, 64 in the registry today: both are read.
    SELECTOR_ID = 302,
    /// informationElementId.
    ELEMENT_ID = 303,
    /// selectorAlgorithm.
    ALGORITHM = 304,
    /// samplingPacketInterval.
    PACKET_INTERVAL = 305,
    /// samplingPacketSpace.
    PACKET_SPACE = 306,
    /// ipHeaderPacketSection.
    IP_SECTION = 313,
    /// dataLinkFrameSection.
    FRAME_SECTION = 315,
    /// selectorIdTotalPktsObserved.
    OBSERVED = 318,
    /// selectorIdTotalPktsSelected.
    SELECTED = 319,
    /// absoluteError, in the unit of the element that it is about.
    ABSOLUTE_ERROR = 320,
    /// observationTimeSeconds.
    SEEN_SECONDS = 322,
    /// observationTimeMilliseconds.
    SEEN_MILLIS = 323,
    /// observationTimeMicroseconds.
    SEEN_MICROS = 324,
    /// observationTimeNanoseconds.
    SEEN_NANOS = 325,
    /// digestHashValue.
    DIGEST = 326,
    /// hashIPPayloadOffset.
    HASH_OFFSET = 327,
    /// hashIPPayloadSize.
    HASH_SIZE = 328,
    /// hashOutputRangeMin.
    HASH_OUTPUT_MIN = 329,
    /// hashOutputRangeMax.
    HASH_OUTPUT_MAX = 330,
    /// hashSelectedRangeMin.
    HASH_SELECTED_MIN = 331,
    /// hashSelectedRangeMax.
    HASH_SELECTED_MAX = 332,
    /// hashDigestOutput.
    HASH_DIGEST = 333,
    /// selectorName.
    SELECTOR_NAME = 335,
    /// layer2OctetDeltaCount.
    LAYER2_OCTETS = 352,
    /// sectionExportedOctets.
    SECTION_OCTETS = 410,
    /// pathDelayMeanDeltaMicroseconds.
    DELAY_MEAN = 530,
    /// pathDelayMinDeltaMicroseconds.
    DELAY_MIN = 531,
    /// pathDelayMaxDeltaMicroseconds.
    DELAY_MAX = 532,
    /// pathDelaySumDeltaMicroseconds.
    DELAY_SUM = 533,
}

/// Ours, under [`ENTERPRISE`]: what IANA has nothing for.
pub mod own {
    elements! {
        /// At most so many packets of the flow may be missing (unsigned64).
        PACKETS_ERROR = 1,
        /// The record is all flows that had no room (boolean: 1 true, 2 false).
        REST = 2,
        /// Name of the first point of a delay (string).
        FROM = 3,
        /// Name of the second point of a delay (string).
        TO = 4,
        /// Packets seen at both points (unsigned64).
        MATCHED = 5,
        /// Packets lost between them (unsigned64).
        LOST = 6,
        /// Packets of which it is not known whether the second point watched (unsigned64).
        UNOBSERVED = 7,
        /// Every delay may be off by so much because of the clocks, ns (unsigned64).
        CLOCK_BOUND = 8,
        /// Packets that a digest could not be made of (unsigned64).
        UNUSABLE = 9,
        /// Reports that a probe gave up for want of room (unsigned64). notSentPacketTotalCount
        /// would be packets, which nobody counted in them.
        REPORTS_GIVEN_UP = 10,
        /// Frames that were several packets merged by offloads (unsigned64).
        MERGED = 11,
        /// Delays of those packets that are smaller than the clock bound (unsigned64).
        BELOW_BOUND = 12,
    }
}
