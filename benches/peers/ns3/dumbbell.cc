#include "dumbbell.h"

#include "ns3/core-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <iomanip>

using namespace ns3;

namespace
{

/// A link's two devices have no flow control: with it, ns-3 stops a device queue that is nearly full
/// and drops the packet in the traffic-control layer, where the queue's own counter does not see it.
PointToPointHelper
Link(double rateMbps, double delayMs, const std::string& queue)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(rateMbps * 1e6))));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(std::llround(delayMs * 1e6))));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(queue)));
    link.DisableFlowControl();
    return link;
}

Ptr<Queue<Packet>>
QueueOf(const Ptr<NetDevice>& device)
{
    return DynamicCast<PointToPointNetDevice>(device)->GetQueue();
}

/// The headers of a packet as it lies in a device queue.
struct Headers
{
    Ipv4Header ip;
    TcpHeader tcp;
    uint32_t payloadBytes;
};

Headers
Parse(const Ptr<const Packet>& packet)
{
    Headers headers;
    const Ptr<Packet> copy = packet->Copy();
    PppHeader ppp;
    copy->RemoveHeader(ppp);
    copy->RemoveHeader(headers.ip);
    copy->RemoveHeader(headers.tcp);
    headers.payloadBytes = copy->GetSize();
    return headers;
}

} // namespace

Dumbbell::Dumbbell(const Settings& settings)
{
    m_senders.Create(settings.hosts);
    m_receivers.Create(settings.hosts);
    NodeContainer routers(2);

    // Static routes only: the shortest work per packet that ns-3's IP offers.
    const Ipv4StaticRoutingHelper routing;
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(routing);
    stack.Install(NodeContainer(m_senders, m_receivers, routers));

    PointToPointHelper access = Link(settings.accessMbps, 0.0, "10000p");
    PointToPointHelper bottleneck =
        Link(settings.rateMbps, settings.delayMs, std::to_string(settings.bufferBytes) + "B");
    Ipv4AddressHelper addresses;
    TrafficControlHelper trafficControl;

    const NetDeviceContainer middle = bottleneck.Install(routers.Get(0), routers.Get(1));
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    const Ipv4InterfaceContainer middleAddresses = addresses.Assign(middle);
    m_forward = QueueOf(middle.Get(0));
    m_backward = QueueOf(middle.Get(1));
    for (uint32_t side = 0; side < 2; ++side)
    {
        routing.GetStaticRouting(routers.Get(side)->GetObject<Ipv4>())
            ->SetDefaultRoute(middleAddresses.GetAddress(1 - side), middleAddresses.Get(side).second);
    }

    for (uint32_t side = 0; side < 2; ++side)
    {
        const NodeContainer& hosts = side == 0 ? m_senders : m_receivers;
        addresses.SetBase(side == 0 ? "10.1.0.0" : "10.2.0.0", "255.255.255.0");
        for (uint32_t pair = 0; pair < settings.hosts; ++pair)
        {
            const NetDeviceContainer devices = access.Install(hosts.Get(pair), routers.Get(side));
            const Ipv4InterfaceContainer ends = addresses.Assign(devices);
            addresses.NewNetwork();
            routing.GetStaticRouting(hosts.Get(pair)->GetObject<Ipv4>())
                ->SetDefaultRoute(ends.GetAddress(1), ends.Get(0).second);
            m_otherQueues.push_back(QueueOf(devices.Get(0)));
            m_otherQueues.push_back(QueueOf(devices.Get(1)));
            if (side == 1)
            {
                m_receiverAddresses.push_back(ends.GetAddress(0));
            }
        }
    }

    m_forward->TraceConnectWithoutContext("Drop", MakeCallback(&Dumbbell::OnForwardDrop, this));
    for (auto node = NodeList::Begin(); node != NodeList::End(); ++node)
    {
        (*node)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
            "TcDrop",
            MakeCallback(&Dumbbell::OnTrafficControlDrop, this));
        (*node)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext(
            "Drop",
            MakeCallback(&Dumbbell::OnIpDrop, this));
    }
    if (!settings.packetLog.empty())
    {
        LogPackets(settings.packetLog);
    }
}

Ptr<Node>
Dumbbell::Sender(uint32_t pair) const
{
    return m_senders.Get(pair);
}

Ptr<Node>
Dumbbell::Receiver(uint32_t pair) const
{
    return m_receivers.Get(pair);
}

Ipv4Address
Dumbbell::ReceiverAddress(uint32_t pair) const
{
    return m_receiverAddresses.at(pair);
}

ForwardCounts
Dumbbell::Forward() const
{
    ForwardCounts counts;
    counts.accepted = m_forward->GetTotalReceivedPackets();
    counts.forwarded = counts.accepted - m_forward->GetNPackets();
    counts.dropped = m_forward->GetTotalDroppedPackets();
    counts.droppedSyn = m_droppedSyn;
    counts.droppedData = m_droppedData;
    counts.droppedOther = m_droppedOther;
    NS_ABORT_MSG_IF(counts.dropped != m_droppedSyn + m_droppedData + m_droppedOther,
                    "the queue's drop counter and its drop trace disagree");
    return counts;
}

uint64_t
Dumbbell::LostElsewhere() const
{
    uint64_t lost = m_lostAboveQueues + m_backward->GetTotalDroppedPackets();
    for (const auto& queue : m_otherQueues)
    {
        lost += queue->GetTotalDroppedPackets();
    }
    return lost;
}

void
Dumbbell::OnForwardDrop(Ptr<const Packet> packet)
{
    const Headers headers = Parse(packet);
    if (headers.tcp.GetFlags() & TcpHeader::SYN)
    {
        ++m_droppedSyn;
    }
    else if (headers.payloadBytes > 0)
    {
        ++m_droppedData;
    }
    else
    {
        ++m_droppedOther;
    }
}

void
Dumbbell::OnTrafficControlDrop(Ptr<const Packet>)
{
    ++m_lostAboveQueues;
}

void
Dumbbell::OnIpDrop(const Ipv4Header&,
                   Ptr<const Packet>,
                   Ipv4L3Protocol::DropReason,
                   Ptr<Ipv4>,
                   uint32_t)
{
    ++m_lostAboveQueues;
}

void
Dumbbell::LogPackets(const std::string& path)
{
    m_packetLog.open(path);
    if (!m_packetLog)
    {
        Refuse("--packet-log=" + path + ": cannot be written");
    }
    m_packetLog << "time_s,direction,fate,pair,port,flags,seq,ack,payload_bytes,sack\n" << std::fixed;
    for (const auto& [direction, queue] :
         {std::pair{"forward", m_forward}, std::pair{"backward", m_backward}})
    {
        for (const auto& [source, fate] :
             {std::pair{"Enqueue", "accepted"}, std::pair{"Drop", "dropped"}})
        {
            queue->TraceConnectWithoutContext(
                source,
                MakeCallback(&Dumbbell::OnLogged, this, direction, fate));
        }
    }
}

void
Dumbbell::OnLogged(const char* direction, const char* fate, Ptr<const Packet> packet)
{
    const Headers headers = Parse(packet);
    const bool forward = direction[0] == 'f';
    // Senders are 10.1.<pair>.1.
    const Ipv4Address sender = forward ? headers.ip.GetSource() : headers.ip.GetDestination();
    const uint32_t pair = (sender.Get() >> 8) & 0xff;
    m_packetLog << std::setprecision(9) << Simulator::Now().GetSeconds() << ',' << direction << ','
                << fate << ',' << pair << ','
                << (forward ? headers.tcp.GetSourcePort() : headers.tcp.GetDestinationPort()) << ','
                << TcpHeader::FlagsToString(headers.tcp.GetFlags(), "+") << ','
                << headers.tcp.GetSequenceNumber() << ',' << headers.tcp.GetAckNumber() << ','
                << headers.payloadBytes << ',';
    if (const auto option = DynamicCast<const TcpOptionSack>(headers.tcp.GetOption(TcpOption::SACK)))
    {
        const char* separator = "";
        for (const auto& block : option->GetSackList())
        {
            m_packetLog << separator << block.first << '-' << block.second;
            separator = " ";
        }
    }
    m_packetLog << '\n';
}
