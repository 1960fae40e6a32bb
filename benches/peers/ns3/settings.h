// Everything that can be chosen about a run, and everything ns-3 would otherwise choose by itself.

#pragma once

#include <cstdint>
#include <ostream>
#include <string>

/// One run. The initial values are those of the short plan; `Settings::Bulk` changes what differs.
struct Settings
{
    std::string plan = "short"; ///< `short`: Poisson arrivals of equal flows; `bulk`: four long flows.

    // Path.
    double rateMbps = 15.0;         ///< Bottleneck rate, both directions, Mbit/s.
    double delayMs = 30.0;          ///< Bottleneck propagation delay, one way, ms.
    uint32_t bufferBytes = 115'000; ///< Drop-tail limit in each direction, with link headers.
    double accessMbps = 1'000.0;    ///< Rate of each host's own link, Mbit/s.
    uint32_t hosts = 10;            ///< Sender-receiver pairs; flow `n` uses pair `n mod hosts`.

    // Workload.
    double durationS = 600.0;     ///< Short: arrivals fall in [0, duration). Bulk: length of the run.
    double drainS = 200.0;        ///< Short: longest wait for the flows still open after `durationS`.
    double load = 0.25;           ///< Short: payload bits offered / bottleneck rate.
    uint64_t seed = 1;            ///< Short: seed of the arrivals.
    std::string arrivals;         ///< Short: file of arrival times; empty = made from load and seed.
    uint32_t flowBytes = 100'000; ///< Short: payload of one flow.
    uint32_t bulkFlows = 4;       ///< Bulk: number of flows.
    double staggerS = 0.1;        ///< Bulk: time between two starts.
    double measureFromS = 10.0;   ///< Bulk: goodput is measured from here to the end.

    // TCP.
    std::string congestion = "cubic"; ///< `cubic`, `newreno`, `linuxreno`.
    bool hystart = false;             ///< CUBIC's hybrid slow start.
    uint32_t initialWindow = 10;      ///< Segments.
    uint32_t segmentBytes = 1'448;    ///< Payload of a full segment.
    double minRtoS = 1.0;             ///< Lower bound of the retransmission timeout.
    double synTimeoutS = 3.0;         ///< First SYN timeout; doubles with each attempt.
    uint32_t ackEvery = 2;            ///< Segments per acknowledgement; 1 = immediate.
    double ackDelayS = 0.2;           ///< Longest delay of an acknowledgement.
    uint32_t rwndBytes = 4'194'304;   ///< Receive buffer, hence the advertised window.
    uint32_t sendBufferBytes = 4'194'304;
    std::string close = "acked"; ///< When the sender closes: `acked` (a FIN of its own after the last
                                 ///< acknowledgement) or `eager` (FIN on the last data segment).

    // Machinery.
    std::string scheduler = "map"; ///< `map`, `heap`, `priority-queue`, `calendar`, `list`.

    // Files.
    std::string fctLog;        ///< One line per flow: start, completion time.
    std::string packetLog;     ///< One line per packet offered to the bottleneck.
    std::string writeArrivals; ///< Write the arrival times here and stop.

    /// The bulk plan's initial values.
    static Settings Bulk();

    /// Reads the command line; on a bad value prints one line and ends the process with status 2.
    static Settings FromCommandLine(int argc, char* argv[]);

    /// Sets every ns-3 default that the run can meet. Must come before any node is made.
    void Pin() const;

    /// The settings as the members of a JSON object, one per line, without the braces.
    void WriteJsonMembers(std::ostream& out, const std::string& indent) const;
};

/// Ends the process with status 2 and one line that says what was wrong.
[[noreturn]] void Refuse(const std::string& message);
