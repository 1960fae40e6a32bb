#include "settings.h"

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>

using namespace ns3;

void
Refuse(const std::string& message)
{
    std::cerr << "ns3-peer: " << message << std::endl;
    std::exit(2);
}

namespace
{

const std::map<std::string, std::string> CONGESTION_TYPES = {
    {"cubic", "ns3::TcpCubic"},
    {"newreno", "ns3::TcpNewReno"},
    {"linuxreno", "ns3::TcpLinuxReno"},
};

const std::map<std::string, std::string> SCHEDULER_TYPES = {
    {"map", "ns3::MapScheduler"},
    {"heap", "ns3::HeapScheduler"},
    {"priority-queue", "ns3::PriorityQueueScheduler"},
    {"calendar", "ns3::CalendarScheduler"},
    {"list", "ns3::ListScheduler"},
};

const std::string&
Choose(const std::map<std::string, std::string>& table,
       const std::string& option,
       const std::string& value)
{
    const auto found = table.find(value);
    if (found == table.end())
    {
        std::string names;
        for (const auto& entry : table)
        {
            names += (names.empty() ? "" : ", ") + entry.first;
        }
        Refuse("--" + option + "=" + value + ": expected one of " + names);
    }
    return found->second;
}

template <typename T>
void
Between(const std::string& option, T value, T low, T high)
{
    if (!(value >= low && value <= high))
    {
        std::ostringstream message;
        message << "--" << option << "=" << value << ": expected " << low << " to " << high;
        Refuse(message.str());
    }
}

/// The plan has to be known before the other options get their initial values.
std::string
FindPlan(int argc, char* argv[])
{
    const std::string prefix = "--plan=";
    std::string plan = "short";
    for (int n = 1; n < argc; ++n)
    {
        const std::string argument = argv[n];
        if (argument.compare(0, prefix.size(), prefix) == 0)
        {
            plan = argument.substr(prefix.size());
        }
    }
    return plan;
}

} // namespace

Settings
Settings::Bulk()
{
    Settings settings;
    settings.plan = "bulk";
    settings.rateMbps = 100.0;
    settings.delayMs = 20.0;
    settings.bufferBytes = 500'000;
    settings.hosts = 4;
    settings.durationS = 60.0;
    return settings;
}

Settings
Settings::FromCommandLine(int argc, char* argv[])
{
    const std::string plan = FindPlan(argc, argv);
    if (plan != "short" && plan != "bulk")
    {
        Refuse("--plan=" + plan + ": expected short or bulk");
    }
    Settings s = plan == "bulk" ? Bulk() : Settings{};
    std::string hystart = s.hystart ? "on" : "off";

    CommandLine line;
    line.Usage("Runs one plan on ns-3's own TCP and prints one JSON object.");
    line.AddValue("plan", "short or bulk", s.plan);
    line.AddValue("rate-mbps", "bottleneck rate, both directions", s.rateMbps);
    line.AddValue("delay-ms", "bottleneck propagation delay, one way", s.delayMs);
    line.AddValue("buffer-bytes", "drop-tail limit in each direction", s.bufferBytes);
    line.AddValue("access-mbps", "rate of each host's own link", s.accessMbps);
    line.AddValue("hosts", "sender-receiver pairs", s.hosts);
    line.AddValue("duration-s", "arrivals fall in [0, duration); bulk: length of the run", s.durationS);
    line.AddValue("drain-s", "short: longest wait for open flows after the last arrival", s.drainS);
    line.AddValue("load", "short: payload bits offered / bottleneck rate", s.load);
    line.AddValue("seed", "short: seed of the arrivals", s.seed);
    line.AddValue("arrivals", "short: file with one arrival time in seconds per line", s.arrivals);
    line.AddValue("flow-bytes", "short: payload of one flow", s.flowBytes);
    line.AddValue("bulk-flows", "bulk: number of flows", s.bulkFlows);
    line.AddValue("stagger-s", "bulk: time between two starts", s.staggerS);
    line.AddValue("measure-from-s", "bulk: goodput is measured from here", s.measureFromS);
    line.AddValue("cc", "cubic, newreno or linuxreno", s.congestion);
    line.AddValue("hystart", "CUBIC's hybrid slow start: on or off", hystart);
    line.AddValue("initial-window", "segments", s.initialWindow);
    line.AddValue("segment-bytes", "payload of a full segment", s.segmentBytes);
    line.AddValue("min-rto-s", "lower bound of the retransmission timeout", s.minRtoS);
    line.AddValue("syn-timeout-s", "first SYN timeout", s.synTimeoutS);
    line.AddValue("ack-every", "segments per acknowledgement; 1 = immediate", s.ackEvery);
    line.AddValue("ack-delay-s", "longest delay of an acknowledgement", s.ackDelayS);
    line.AddValue("rwnd-bytes", "receive buffer", s.rwndBytes);
    line.AddValue("send-buffer-bytes", "send buffer", s.sendBufferBytes);
    line.AddValue("close", "acked or eager", s.close);
    line.AddValue("scheduler", "map, heap, priority-queue, calendar or list", s.scheduler);
    line.AddValue("fct-log", "write one line per flow: start, completion time", s.fctLog);
    line.AddValue("packet-log", "write one line per packet offered to the bottleneck", s.packetLog);
    line.AddValue("write-arrivals", "write the arrival times to this file and stop", s.writeArrivals);
    line.Parse(argc, argv);

    if (hystart != "on" && hystart != "off")
    {
        Refuse("--hystart=" + hystart + ": expected on or off");
    }
    s.hystart = hystart == "on";
    if (s.close != "acked" && s.close != "eager")
    {
        Refuse("--close=" + s.close + ": expected acked or eager");
    }
    Choose(CONGESTION_TYPES, "cc", s.congestion);
    Choose(SCHEDULER_TYPES, "scheduler", s.scheduler);
    Between("rate-mbps", s.rateMbps, 0.001, 100'000.0);
    Between("access-mbps", s.accessMbps, 0.001, 100'000.0);
    Between("delay-ms", s.delayMs, 0.0, 10'000.0);
    Between("buffer-bytes", s.bufferBytes, 1'502U, 1'000'000'000U);
    Between("hosts", s.hosts, 1U, 200U);
    Between("duration-s", s.durationS, 0.001, 100'000.0);
    Between("drain-s", s.drainS, 0.0, 100'000.0);
    Between("load", s.load, 0.001, 10.0);
    Between("flow-bytes", s.flowBytes, 1U, s.sendBufferBytes);
    Between("bulk-flows", s.bulkFlows, 1U, 1'000U);
    Between("stagger-s", s.staggerS, 0.0, s.durationS);
    Between("initial-window", s.initialWindow, 1U, 1'000U);
    Between("segment-bytes", s.segmentBytes, 1U, 1'448U);
    Between("min-rto-s", s.minRtoS, 0.001, 60.0);
    Between("syn-timeout-s", s.synTimeoutS, 0.001, 60.0);
    Between("ack-every", s.ackEvery, 1U, 100U);
    Between("ack-delay-s", s.ackDelayS, 0.001, 60.0);
    if (s.plan == "bulk")
    {
        Between("measure-from-s", s.measureFromS, 0.0, s.durationS);
        if (!s.arrivals.empty() || !s.fctLog.empty() || !s.writeArrivals.empty())
        {
            Refuse("--arrivals, --write-arrivals and --fct-log belong to the short plan");
        }
    }
    return s;
}

void
Settings::Pin() const
{
    // Machinery.
    GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::DefaultSimulatorImpl"));
    GlobalValue::Bind("SchedulerType", StringValue(Choose(SCHEDULER_TYPES, "scheduler", scheduler)));
    GlobalValue::Bind("ChecksumEnabled", BooleanValue(false));
    // Nothing here draws from ns-3's own random numbers; fixed all the same.
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(1);

    // Links. Rate, delay and queue are set per link where it is built.
    Config::SetDefault("ns3::PointToPointNetDevice::Mtu", UintegerValue(1'500));
    Config::SetDefault("ns3::PointToPointNetDevice::InterframeGap", TimeValue(Time(0)));
    Config::SetDefault("ns3::Ipv4L3Protocol::DefaultTtl", UintegerValue(64));

    // TCP: parts.
    const auto type = [](const std::string& name) { return TypeIdValue(TypeId::LookupByName(name)); };
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", type(Choose(CONGESTION_TYPES, "cc", congestion)));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", type("ns3::TcpPrrRecovery"));
    Config::SetDefault("ns3::TcpL4Protocol::RttEstimatorType", type("ns3::RttMeanDeviation"));

    // TCP: sizes and windows.
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segmentBytes));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(sendBufferBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(rwndBytes));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(initialWindow));
    Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold",
                       UintegerValue(std::numeric_limits<uint32_t>::max()));
    Config::SetDefault("ns3::TcpSocketBase::MaxWindowSize", UintegerValue(65'535));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));

    // TCP: options and acknowledgements.
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", EnumValue(TcpSocketState::Off));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(ackEvery));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(Seconds(ackDelayS)));
    Config::SetDefault("ns3::TcpSocket::TcpNoDelay", BooleanValue(true));

    // TCP: timers and retries. Retries are generous: a flow should be slow, not given up.
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(minRtoS)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(1)));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(synTimeoutS)));
    Config::SetDefault("ns3::TcpSocket::ConnCount", UintegerValue(6));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(15));
    Config::SetDefault("ns3::TcpSocket::PersistTimeout", TimeValue(Seconds(6)));
    // Short TIME-WAIT: ns-3 finds a packet's socket by walking a list of all sockets of the host.
    Config::SetDefault("ns3::TcpSocketBase::MaxSegLifetime", DoubleValue(1.0));
    Config::SetDefault("ns3::RttEstimator::InitialEstimation", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::RttMeanDeviation::Alpha", DoubleValue(0.125));
    Config::SetDefault("ns3::RttMeanDeviation::Beta", DoubleValue(0.25));

    // TCP: recovery and pacing.
    Config::SetDefault("ns3::TcpSocketBase::ReTxThreshold", UintegerValue(3));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(true));
    Config::SetDefault("ns3::TcpPrrRecovery::ReductionBound", EnumValue(TcpPrrRecovery::SSRB));
    Config::SetDefault("ns3::TcpSocketState::EnablePacing", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketState::PaceInitialWindow", BooleanValue(false));

    // CUBIC.
    Config::SetDefault("ns3::TcpCubic::Beta", DoubleValue(0.7));
    Config::SetDefault("ns3::TcpCubic::C", DoubleValue(0.4));
    Config::SetDefault("ns3::TcpCubic::FastConvergence", BooleanValue(true));
    Config::SetDefault("ns3::TcpCubic::CntClamp", UintegerValue(20));
    Config::SetDefault("ns3::TcpCubic::CubicDelta", TimeValue(MilliSeconds(10)));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(hystart));
    Config::SetDefault("ns3::TcpCubic::HyStartLowWindow", UintegerValue(16));
    Config::SetDefault("ns3::TcpCubic::HyStartDetect", IntegerValue(3));
    Config::SetDefault("ns3::TcpCubic::HyStartMinSamples", UintegerValue(8));
    Config::SetDefault("ns3::TcpCubic::HyStartAckDelta", TimeValue(MilliSeconds(2)));
    Config::SetDefault("ns3::TcpCubic::HyStartDelayMin", TimeValue(MilliSeconds(4)));
    Config::SetDefault("ns3::TcpCubic::HyStartDelayMax", TimeValue(MilliSeconds(1'000)));
}

void
Settings::WriteJsonMembers(std::ostream& out, const std::string& indent) const
{
    const auto number = [&](const char* name, auto value) {
        out << indent << '"' << name << "\": " << value << ",\n";
    };
    const auto text = [&](const char* name, const std::string& value) {
        out << indent << '"' << name << "\": \"" << value << "\",\n";
    };
    text("plan", plan);
    number("rate_mbps", rateMbps);
    number("one_way_delay_ms", delayMs);
    number("buffer_bytes", bufferBytes);
    number("access_mbps", accessMbps);
    number("hosts", hosts);
    number("duration_s", durationS);
    if (plan == "short")
    {
        number("drain_s", drainS);
        text("arrivals", arrivals.empty() ? "generated" : "file");
        if (arrivals.empty())
        {
            number("load", load);
            number("seed", seed);
        }
        number("flow_bytes", flowBytes);
    }
    else
    {
        number("bulk_flows", bulkFlows);
        number("stagger_s", staggerS);
        number("measure_from_s", measureFromS);
    }
    text("cc", congestion);
    text("hystart", congestion == "cubic" ? (hystart ? "on" : "off") : "none");
    number("initial_window_segments", initialWindow);
    number("segment_bytes", segmentBytes);
    number("min_rto_s", minRtoS);
    number("syn_timeout_s", synTimeoutS);
    number("ack_every_segments", ackEvery);
    number("ack_delay_s", ackDelayS);
    number("rwnd_bytes", rwndBytes);
    number("send_buffer_bytes", sendBufferBytes);
    text("recovery", "prr-ssrb");
    text("sack_timestamps_window_scaling", "on");
    text("close", close);
    out << indent << "\"scheduler\": \"" << scheduler << "\"\n";
}
