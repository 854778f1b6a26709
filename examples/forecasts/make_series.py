"""Two series of made numbers: a share's price by trading day, and the air of a town by hour.

    python examples/forecasts/make_series.py share > share.csv
    python examples/forecasts/make_series.py air > air.csv

share   log returns whose volatility comes in clusters, as GARCH(1, 1) makes them: nothing tells the
        next price, but a lot tells how far it may be from the last one
air     the logarithm of PM2.5 goes on from hour to hour; traffic raises it, wind and rain lower it
"""

import argparse
import csv
import sys

import numpy as np

MISSING = 0.01  # share of the hours whose dust was not measured


def share(days, random):
    """Yield the rows of a share: date, close, high, low, volume."""
    yield "date", "close", "high", "low", "volume"
    date, price, variance, change = np.datetime64("2018-01-01"), 100.0, 2e-4, 0.0
    for _ in range(days):
        date = np.busday_offset(date, 1, roll="forward")
        variance = 4e-6 + 0.12 * change**2 + 0.86 * variance
        change = np.sqrt(variance) * random.normal()
        before, price = price, price * np.exp(2e-4 + change)
        reach = price * np.sqrt(variance) * random.exponential(0.4, 2)
        high, low = max(before, price) + reach[0], min(before, price) - reach[1]
        volume = 1e6 * np.exp(30 * np.sqrt(variance) + 0.3 * random.normal())
        yield date, f"{price:.2f}", f"{high:.2f}", f"{low:.2f}", f"{volume:.0f}"


def air(days, random):
    """Yield the rows of the air: time, pm25, temperature, wind, rain."""
    yield "time", "pm25", "temperature", "wind", "rain"
    begin, dust, wind, rain = np.datetime64("2024-01-01T00"), 3.5, 0.0, 0.0
    for hour in range(24 * days):
        day, in_day = divmod(hour, 24)
        wind = 0.95 * wind + 0.3 * random.normal()
        rain = max(0.0, 0.8 * rain + (random.exponential(2.0) if random.random() < 0.02 else -0.1))
        traffic = np.exp(-((in_day - 8) ** 2) / 8) + np.exp(-((in_day - 18) ** 2) / 10)
        traffic *= 0.4 if day % 7 > 4 else 1.0
        cold = np.cos(2 * np.pi * (day - 15) / 365)
        rest = 3.2 + 0.5 * cold + 0.9 * traffic - 0.5 * wind - 0.3 * rain
        dust = 0.88 * dust + 0.12 * rest + 0.08 * random.normal()
        temperature = 12 - 11 * cold - 4 * np.cos(2 * np.pi * (in_day - 3) / 24) + random.normal()
        pm25 = "NA" if random.random() < MISSING else f"{np.exp(dust):.0f}"
        yield begin + hour, pm25, f"{temperature:.1f}", f"{2 * np.exp(wind / 2):.1f}", f"{rain:.1f}"


KINDS = {"share": (share, 1500), "air": (air, 270)}


def main():
    """Print a series as CSV."""
    parser = argparse.ArgumentParser(description="Made series of a share and of a town's air.")
    parser.add_argument("kind", choices=KINDS, help="Series to make.")
    parser.add_argument("--seed", type=int, default=1, help="Seed of the numbers. Default: 1.")
    options = parser.parse_args()
    make, days = KINDS[options.kind]
    csv.writer(sys.stdout).writerows(make(days, np.random.default_rng(options.seed)))


if __name__ == "__main__":
    main()
