// Arrival times, made without ns-3's random numbers so that another simulator can make the same.

#pragma once

#include "settings.h"

#include <string>
#include <vector>

/// The arrival times in seconds, rising: read from `settings.arrivals` if that names a file, else a
/// Poisson process over [0, duration) with `load * rate / (8 * flow bytes)` flows per second.
std::vector<double> MakeArrivals(const Settings& settings);

/// One time per line, whole nanoseconds: what was written reads back as the same run.
void WriteArrivals(const std::vector<double>& arrivals, const std::string& path);
