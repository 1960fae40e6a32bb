// One transfer: the sender opens the connection, sends, closes; the receiver counts what arrives.

#pragma once

#include "dumbbell.h"
#include "settings.h"

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"

#include <cstdint>
#include <functional>
#include <map>

/// A transfer between the hosts of one pair.
class Flow
{
  public:
    /// A flow that never ends.
    static constexpr uint64_t ENDLESS = UINT64_MAX;

    /// `onEnd` is told once: the last byte has arrived, or the connection was given up.
    Flow(const Settings& settings, uint64_t bytes, std::function<void()> onEnd);

    /// Sends the SYN now.
    void Start(const Dumbbell& network, uint32_t pair);

    /// The receiver's end of the connection; called by the listener.
    void Accept(ns3::Ptr<ns3::Socket> socket);

    bool IsFinished() const;
    bool IsGivenUp() const;
    double StartS() const;
    double EstablishedS() const; ///< When the sender had the SYN-ACK.
    double FinishedS() const;    ///< When the receiver had the last byte.
    uint64_t ReceivedBytes() const;
    uint32_t Recoveries() const; ///< Fast recoveries entered.
    uint32_t Timeouts() const;   ///< Times the loss state was entered from another state.
    uint16_t Port() const;       ///< The sender's.

  private:
    void OnConnected(ns3::Ptr<ns3::Socket> socket);
    void OnGivenUp(ns3::Ptr<ns3::Socket> socket);
    void OnSpace(ns3::Ptr<ns3::Socket> socket, uint32_t available);
    void OnState(ns3::TcpSocketState::TcpCongState_t before,
                 ns3::TcpSocketState::TcpCongState_t after);
    void OnData(ns3::Ptr<ns3::Socket> socket);
    void OnPeerClosed(ns3::Ptr<ns3::Socket> socket);
    void Fill(ns3::Ptr<ns3::Socket> socket);

    const Settings& m_settings;
    const uint64_t m_bytes;
    std::function<void()> m_onEnd;
    uint64_t m_written = 0;
    uint64_t m_received = 0;
    uint16_t m_port = 0;
    double m_startS = 0.0;
    double m_establishedS = 0.0;
    double m_finishedS = 0.0;
    bool m_finished = false;
    bool m_givenUp = false;
    bool m_closing = false;
    uint32_t m_recoveries = 0;
    uint32_t m_timeouts = 0;
};

/// Listens on every receiver and hands each new connection to the flow that opened it.
class Listener
{
  public:
    Listener(const Settings& settings, const Dumbbell& network);

    /// Starts the flow and remembers whose connection it is.
    void Start(Flow& flow, const Dumbbell& network, uint32_t pair);

    static constexpr uint16_t PORT = 80;

  private:
    void OnConnection(ns3::Ptr<ns3::Socket> socket, const ns3::Address& from);

    std::map<std::pair<uint32_t, uint16_t>, Flow*> m_flows; ///< By sender's address and port.
};
