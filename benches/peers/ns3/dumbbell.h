// The path: senders - router - bottleneck - router - receivers, and counts of all lost packets.

#pragma once

#include "settings.h"

#include "ns3/internet-module.h"
#include "ns3/network-module.h"

#include <cstdint>
#include <fstream>
#include <vector>

/// Counts of the packets offered to the bottleneck in the data direction.
struct ForwardCounts
{
    uint64_t accepted = 0;    ///< Taken by the queue, or sent at once.
    uint64_t forwarded = 0;   ///< Accepted, and no longer waiting.
    uint64_t dropped = 0;     ///< Refused by the full queue: the sum of the three below.
    uint64_t droppedSyn = 0;  ///< Of these, SYNs.
    uint64_t droppedData = 0; ///< Of these, segments with payload.
    uint64_t droppedOther = 0;

    /// Share of the offered packets that was dropped.
    double Loss() const
    {
        return static_cast<double>(dropped) / static_cast<double>(dropped + accepted);
    }
};

/// The network of one run.
class Dumbbell
{
  public:
    explicit Dumbbell(const Settings& settings);

    ns3::Ptr<ns3::Node> Sender(uint32_t pair) const;
    ns3::Ptr<ns3::Node> Receiver(uint32_t pair) const;
    ns3::Ipv4Address ReceiverAddress(uint32_t pair) const;

    ForwardCounts Forward() const;

    /// Packets lost anywhere else: other queues, traffic-control layer, IP. Expected to be zero.
    uint64_t LostElsewhere() const;

  private:
    void OnForwardDrop(ns3::Ptr<const ns3::Packet> packet);
    void OnTrafficControlDrop(ns3::Ptr<const ns3::Packet> packet);
    void OnIpDrop(const ns3::Ipv4Header& header,
                  ns3::Ptr<const ns3::Packet> packet,
                  ns3::Ipv4L3Protocol::DropReason reason,
                  ns3::Ptr<ns3::Ipv4> ipv4,
                  uint32_t interface);
    void LogPackets(const std::string& path);
    void OnLogged(const char* direction, const char* fate, ns3::Ptr<const ns3::Packet> packet);

    ns3::NodeContainer m_senders;
    ns3::NodeContainer m_receivers;
    std::vector<ns3::Ipv4Address> m_receiverAddresses;
    ns3::Ptr<ns3::Queue<ns3::Packet>> m_forward;
    ns3::Ptr<ns3::Queue<ns3::Packet>> m_backward;
    std::vector<ns3::Ptr<ns3::Queue<ns3::Packet>>> m_otherQueues;
    uint64_t m_droppedSyn = 0;
    uint64_t m_droppedData = 0;
    uint64_t m_droppedOther = 0;
    uint64_t m_lostAboveQueues = 0;
    std::ofstream m_packetLog;
};
