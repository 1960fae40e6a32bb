#include "arrivals.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

namespace
{

std::vector<double>
ReadArrivals(const std::string& path)
{
    std::ifstream file(path);
    if (!file)
    {
        Refuse("--arrivals=" + path + ": cannot be read");
    }
    std::vector<double> arrivals;
    std::string line;
    while (std::getline(file, line))
    {
        const std::string where = path + ":" + std::to_string(arrivals.size() + 1) + ": ";
        char* end = nullptr;
        const double time = std::strtod(line.c_str(), &end);
        if (line.empty() || *end != '\0' || !std::isfinite(time) || time < 0.0)
        {
            Refuse(where + "found '" + line + "', expected a time in seconds");
        }
        if (!arrivals.empty() && time < arrivals.back())
        {
            Refuse(where + "found a time before the one above, expected rising times");
        }
        arrivals.push_back(time);
    }
    if (arrivals.empty())
    {
        Refuse("--arrivals=" + path + ": holds no arrival");
    }
    return arrivals;
}

} // namespace

std::vector<double>
MakeArrivals(const Settings& settings)
{
    if (!settings.arrivals.empty())
    {
        return ReadArrivals(settings.arrivals);
    }
    const double perSecond = settings.load * settings.rateMbps * 1e6 / (8.0 * settings.flowBytes);
    std::mt19937_64 words(settings.seed);
    std::vector<double> arrivals;
    for (double time = 0.0;;)
    {
        const double uniform = static_cast<double>(words()) * 0x1p-64;
        time += -std::log(1.0 - uniform) / perSecond;
        // Written so that the (never seen) infinity of a uniform that rounds to 1 also ends the loop.
        if (!(time < settings.durationS))
        {
            break;
        }
        arrivals.push_back(time);
    }
    if (arrivals.empty())
    {
        Refuse("no arrival falls in the duration: raise --duration-s or --load");
    }
    return arrivals;
}

void
WriteArrivals(const std::vector<double>& arrivals, const std::string& path)
{
    std::ofstream file(path);
    for (const double time : arrivals)
    {
        char text[32];
        std::snprintf(text, sizeof(text), "%.9f\n", time);
        file << text;
    }
    file.close();
    if (!file)
    {
        Refuse("--write-arrivals=" + path + ": cannot be written");
    }
}
