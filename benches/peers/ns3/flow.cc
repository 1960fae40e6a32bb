#include "flow.h"

using namespace ns3;

Flow::Flow(const Settings& settings, uint64_t bytes, std::function<void()> onEnd)
    : m_settings(settings),
      m_bytes(bytes),
      m_onEnd(std::move(onEnd))
{
}

void
Flow::Start(const Dumbbell& network, uint32_t pair)
{
    m_startS = Simulator::Now().GetSeconds();
    const Ptr<Socket> socket = Socket::CreateSocket(network.Sender(pair), TcpSocketFactory::GetTypeId());
    socket->Bind();
    socket->SetConnectCallback(MakeCallback(&Flow::OnConnected, this),
                               MakeCallback(&Flow::OnGivenUp, this));
    socket->SetCloseCallbacks(MakeNullCallback<void, Ptr<Socket>>(),
                              MakeCallback(&Flow::OnGivenUp, this));
    socket->SetSendCallback(MakeCallback(&Flow::OnSpace, this));
    socket->TraceConnectWithoutContext("CongState", MakeCallback(&Flow::OnState, this));
    socket->Connect(InetSocketAddress(network.ReceiverAddress(pair), Listener::PORT));

    Address local;
    socket->GetSockName(local);
    m_port = InetSocketAddress::ConvertFrom(local).GetPort();

    // Written before the handshake ends, so that data leaves with the handshake's last packet.
    Fill(socket);
    if (m_bytes != ENDLESS && m_settings.close == "eager")
    {
        m_closing = true;
        socket->Close();
    }
}

void
Flow::Fill(Ptr<Socket> socket)
{
    // A short flow is one write. An endless one is written a segment at a time, which spares ns-3 the
    // cutting and joining of buffered packets.
    while (m_written < m_bytes)
    {
        const uint64_t left = m_bytes - m_written;
        const uint32_t chunk = m_bytes == ENDLESS ? m_settings.segmentBytes : static_cast<uint32_t>(left);
        if (socket->GetTxAvailable() < chunk)
        {
            break;
        }
        const int sent = socket->Send(Create<Packet>(chunk));
        if (sent < 0)
        {
            break;
        }
        m_written += static_cast<uint64_t>(sent);
    }
}

void
Flow::OnConnected(Ptr<Socket>)
{
    m_establishedS = Simulator::Now().GetSeconds();
}

void
Flow::OnGivenUp(Ptr<Socket>)
{
    if (!m_finished && !m_givenUp)
    {
        m_givenUp = true;
        m_onEnd();
    }
}

void
Flow::OnSpace(Ptr<Socket> socket, uint32_t available)
{
    Fill(socket);
    if (m_written == m_bytes && !m_closing && available == m_settings.sendBufferBytes)
    {
        // Everything is acknowledged. Closed in an event of its own: ns-3 calls here from the middle
        // of its acknowledgement processing.
        m_closing = true;
        Simulator::ScheduleNow([socket]() { socket->Close(); });
    }
}

void
Flow::OnState(TcpSocketState::TcpCongState_t before, TcpSocketState::TcpCongState_t after)
{
    if (after == TcpSocketState::CA_RECOVERY && before != after)
    {
        ++m_recoveries;
    }
    if (after == TcpSocketState::CA_LOSS && before != after)
    {
        ++m_timeouts;
    }
}

void
Flow::Accept(Ptr<Socket> socket)
{
    socket->SetRecvCallback(MakeCallback(&Flow::OnData, this));
    socket->SetCloseCallbacks(MakeCallback(&Flow::OnPeerClosed, this),
                              MakeNullCallback<void, Ptr<Socket>>());
}

void
Flow::OnData(Ptr<Socket> socket)
{
    for (;;)
    {
        const Ptr<Packet> data = socket->Recv();
        if (!data || data->GetSize() == 0)
        {
            break;
        }
        m_received += data->GetSize();
    }
    if (!m_finished && m_received >= m_bytes)
    {
        m_finished = true;
        m_finishedS = Simulator::Now().GetSeconds();
        if (!m_givenUp)
        {
            m_onEnd();
        }
    }
}

void
Flow::OnPeerClosed(Ptr<Socket> socket)
{
    socket->Close();
}

bool
Flow::IsFinished() const
{
    return m_finished;
}

bool
Flow::IsGivenUp() const
{
    return m_givenUp;
}

double
Flow::StartS() const
{
    return m_startS;
}

double
Flow::EstablishedS() const
{
    return m_establishedS;
}

double
Flow::FinishedS() const
{
    return m_finishedS;
}

uint64_t
Flow::ReceivedBytes() const
{
    return m_received;
}

uint32_t
Flow::Recoveries() const
{
    return m_recoveries;
}

uint32_t
Flow::Timeouts() const
{
    return m_timeouts;
}

uint16_t
Flow::Port() const
{
    return m_port;
}

Listener::Listener(const Settings& settings, const Dumbbell& network)
{
    for (uint32_t pair = 0; pair < settings.hosts; ++pair)
    {
        const Ptr<Socket> socket =
            Socket::CreateSocket(network.Receiver(pair), TcpSocketFactory::GetTypeId());
        socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
        socket->Listen();
        socket->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                  MakeCallback(&Listener::OnConnection, this));
    }
}

void
Listener::Start(Flow& flow, const Dumbbell& network, uint32_t pair)
{
    flow.Start(network, pair);
    const Ptr<Ipv4> ipv4 = network.Sender(pair)->GetObject<Ipv4>();
    // Interface 0 is the loopback; a host has one link.
    const uint32_t address = ipv4->GetAddress(1, 0).GetLocal().Get();
    m_flows[{address, flow.Port()}] = &flow;
}

void
Listener::OnConnection(Ptr<Socket> socket, const Address& from)
{
    const InetSocketAddress peer = InetSocketAddress::ConvertFrom(from);
    const auto found = m_flows.find({peer.GetIpv4().Get(), peer.GetPort()});
    NS_ABORT_MSG_IF(found == m_flows.end(), "a connection that no flow opened");
    found->second->Accept(socket);
    m_flows.erase(found);
}
