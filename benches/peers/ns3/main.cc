// The two plans on ns-3's own TCP. Prints one JSON object; README.md says what its members mean.

#include "arrivals.h"
#include "dumbbell.h"
#include "flow.h"
#include "settings.h"

#include "ns3/core-module.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <numeric>
#include <vector>

using namespace ns3;

namespace
{

/// Runs the simulation and returns the wall-clock seconds that `Simulator::Run` took.
double
TimedRun()
{
    const auto begin = std::chrono::steady_clock::now();
    Simulator::Run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double
Mean(const std::vector<double>& values)
{
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Nearest rank: the smallest value that at least `share` of all values do not exceed.
double
Quantile(const std::vector<double>& sorted, double share)
{
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::max<size_t>(rank, 1) - 1];
}

/// Opens the object, echoes the settings and leaves the object open for the results.
void
WriteHead(std::ostream& out, const Settings& settings)
{
    out << std::setprecision(10) << "{\n  \"simulator\": \"ns-3 " << PEER_NS3_VERSION << "\",\n"
        << "  \"settings\": {\n";
    settings.WriteJsonMembers(out, "    ");
    out << "  },\n  \"results\": {\n";
}

/// What both plans say about the bottleneck and about speed; closes the object.
void
WriteTail(std::ostream& out, const Dumbbell& network, double wallS)
{
    const ForwardCounts counts = network.Forward();
    out << "    \"loss\": " << counts.Loss() << ",\n"
        << "    \"packets_accepted\": " << counts.accepted << ",\n"
        << "    \"packets_dropped\": " << counts.dropped << ",\n"
        << "    \"dropped_syn\": " << counts.droppedSyn << ",\n"
        << "    \"dropped_data\": " << counts.droppedData << ",\n"
        << "    \"dropped_other\": " << counts.droppedOther << ",\n"
        << "    \"lost_elsewhere\": " << network.LostElsewhere() << ",\n"
        << "    \"packets_forwarded\": " << counts.forwarded << ",\n"
        << "    \"events\": " << Simulator::GetEventCount() << ",\n"
        << "    \"simulated_s\": " << Simulator::Now().GetSeconds() << ",\n"
        << "    \"wall_s\": " << wallS << ",\n"
        << "    \"packets_per_wall_s\": " << std::llround(static_cast<double>(counts.forwarded) / wallS)
        << "\n  }\n}\n";
}

/// Equal flows that arrive as a Poisson process, or as the arrivals file says.
void
RunShort(const Settings& settings)
{
    const std::vector<double> arrivals = MakeArrivals(settings);
    if (!settings.writeArrivals.empty())
    {
        WriteArrivals(arrivals, settings.writeArrivals);
        return;
    }

    const Dumbbell network(settings);
    Listener listener(settings, network);
    size_t open = arrivals.size();
    const auto onEnd = [&open]() {
        if (--open == 0)
        {
            Simulator::Stop();
        }
    };
    std::vector<std::unique_ptr<Flow>> flows;
    flows.reserve(arrivals.size());
    for (size_t n = 0; n < arrivals.size(); ++n)
    {
        flows.push_back(std::make_unique<Flow>(settings, settings.flowBytes, onEnd));
    }
    // One event at a time: each arrival schedules the next.
    std::function<void(size_t)> arrive;
    const auto schedule = [&arrive, &arrivals](size_t n) {
        const Time at = NanoSeconds(std::llround(arrivals[n] * 1e9));
        Simulator::Schedule(at - Simulator::Now(), [&arrive, n]() { arrive(n); });
    };
    arrive = [&](size_t n) {
        listener.Start(*flows[n], network, static_cast<uint32_t>(n % settings.hosts));
        if (n + 1 < arrivals.size())
        {
            schedule(n + 1);
        }
    };
    schedule(0);
    Simulator::Stop(Seconds(std::max(settings.durationS, arrivals.back()) + settings.drainS));
    const double wallS = TimedRun();

    // A flow that did not finish counts with its age at the end; how many did not is said beside it.
    const double endS = Simulator::Now().GetSeconds();
    std::vector<double> times;
    std::vector<double> timesWithoutHandshake;
    size_t finished = 0;
    size_t givenUp = 0;
    uint64_t recoveries = 0;
    uint64_t timeouts = 0;
    size_t flowsWithTimeout = 0;
    for (const auto& flow : flows)
    {
        times.push_back((flow->IsFinished() ? flow->FinishedS() : endS) - flow->StartS());
        if (flow->IsFinished())
        {
            ++finished;
            timesWithoutHandshake.push_back(flow->FinishedS() - flow->EstablishedS());
        }
        givenUp += flow->IsGivenUp();
        recoveries += flow->Recoveries();
        timeouts += flow->Timeouts();
        flowsWithTimeout += flow->Timeouts() > 0;
    }
    if (!settings.fctLog.empty())
    {
        std::ofstream log(settings.fctLog);
        log << "start_s,fct_s\n" << std::fixed;
        for (size_t n = 0; n < flows.size(); ++n)
        {
            log << std::setprecision(9) << flows[n]->StartS() << ',';
            if (flows[n]->IsFinished())
            {
                log << std::setprecision(6) << times[n];
            }
            log << '\n';
        }
        log.close();
        if (!log)
        {
            Refuse("--fct-log=" + settings.fctLog + ": cannot be written");
        }
    }

    std::sort(times.begin(), times.end());
    std::sort(timesWithoutHandshake.begin(), timesWithoutHandshake.end());
    std::ostream& out = std::cout;
    WriteHead(out, settings);
    out << "    \"flows\": " << flows.size() << ",\n"
        << "    \"finished\": " << finished << ",\n"
        << "    \"given_up\": " << givenUp << ",\n"
        << "    \"fct_mean_s\": " << Mean(times) << ",\n";
    for (const auto& [name, share] : {std::pair{"p10", 0.10},
                                      std::pair{"p25", 0.25},
                                      std::pair{"p50", 0.50},
                                      std::pair{"p75", 0.75},
                                      std::pair{"p90", 0.90},
                                      std::pair{"p95", 0.95},
                                      std::pair{"p99", 0.99},
                                      std::pair{"max", 1.00}})
    {
        out << "    \"fct_" << name << "_s\": " << Quantile(times, share) << ",\n";
    }
    if (finished > 0)
    {
        out << "    \"fct_without_handshake_mean_s\": " << Mean(timesWithoutHandshake) << ",\n"
            << "    \"fct_without_handshake_p50_s\": " << Quantile(timesWithoutHandshake, 0.5) << ",\n";
    }
    out << "    \"recoveries\": " << recoveries << ",\n"
        << "    \"timeouts\": " << timeouts << ",\n"
        << "    \"flows_with_timeout\": " << flowsWithTimeout << ",\n";
    WriteTail(out, network, wallS);
}

/// A few endless flows.
void
RunBulk(const Settings& settings)
{
    const Dumbbell network(settings);
    Listener listener(settings, network);
    std::vector<std::unique_ptr<Flow>> flows;
    for (uint32_t n = 0; n < settings.bulkFlows; ++n)
    {
        flows.push_back(std::make_unique<Flow>(settings, Flow::ENDLESS, []() {}));
        Flow& flow = *flows.back();
        Simulator::Schedule(Seconds(n * settings.staggerS), [&, n]() {
            listener.Start(flow, network, n % settings.hosts);
        });
    }
    std::vector<uint64_t> before(flows.size(), 0);
    Simulator::Schedule(Seconds(settings.measureFromS), [&]() {
        for (size_t n = 0; n < flows.size(); ++n)
        {
            before[n] = flows[n]->ReceivedBytes();
        }
    });
    Simulator::Stop(Seconds(settings.durationS));
    const double wallS = TimedRun();

    const double measuredS = settings.durationS - settings.measureFromS;
    double aggregate = 0.0;
    std::vector<double> goodputs;
    uint64_t recoveries = 0;
    uint64_t timeouts = 0;
    for (size_t n = 0; n < flows.size(); ++n)
    {
        const auto bytes = static_cast<double>(flows[n]->ReceivedBytes() - before[n]);
        goodputs.push_back(bytes * 8e-6 / measuredS);
        aggregate += goodputs.back();
        recoveries += flows[n]->Recoveries();
        timeouts += flows[n]->Timeouts();
    }
    std::ostream& out = std::cout;
    WriteHead(out, settings);
    out << "    \"flow_goodput_mbps\": [";
    const char* separator = "";
    for (const double goodput : goodputs)
    {
        out << separator << goodput;
        separator = ", ";
    }
    out << "],\n    \"goodput_mbps\": " << aggregate << ",\n"
        << "    \"recoveries\": " << recoveries << ",\n"
        << "    \"timeouts\": " << timeouts << ",\n";
    WriteTail(out, network, wallS);
}

} // namespace

int
main(int argc, char* argv[])
{
    const Settings settings = Settings::FromCommandLine(argc, argv);
    settings.Pin();
    if (settings.plan == "bulk")
    {
        RunBulk(settings);
    }
    else
    {
        RunShort(settings);
    }
    Simulator::Destroy();
    return 0;
}
