"""Judges the reports of ci/prices.

usage: prices.py link RTT_MS ROUND_TRIPS REPORT
       prices.py noise REPORT
       prices.py keys REPORT SPEED REPORT SPEED…
"""
import itertools
import json
import os
import sys

# By hand the tolerances of times are those below. In CI other machines may disturb this one: what must be exact, the round trips,
# is exact there too.
SLACK = float(os.environ.get("PRICES_SLACK", "1"))


def report(name):
    with open(name) as f:
        return json.load(f)["reports"][0]


def within(what, got, want, tolerance):
    """Prints a comparison, and returns whether it is within the tolerance."""
    tolerance *= SLACK
    good = abs(got - want) <= tolerance * want
    print(f"{'ok  ' if good else 'FAIL'} {what}: {got:.3f}, expected {want:.3f} within {tolerance:.0%}")
    return good


def link(trip, trips, name):
    facts = report(name)["facts"]
    flight, timing = facts["flight"], facts["timing"]
    print(f"--- {trip} ms, a flight of {flight['bytes']} bytes, {report(name)['cost']['connections']} connections, "
          f"{report(name)['seconds']:.1f} s")
    good = within("round trips of the flight", flight["round_trips"], int(trips), 0)
    good &= within("TCP's round trip in ms", timing["round_trip_ms"]["median"], float(trip), .05)
    prices = [f["price"] for f in report(name)["findings"] if f["rule"] == "chain-flight"]
    if len(prices) != int(trips) - 1:
        print(f"FAIL {len(prices)} findings of the rule chain-flight")
        return False
    for price in prices:
        good &= within("the price of the large flight in round trips", price["round_trips"], int(trips) - 1, 0)
        good &= within("the price of the large flight in ms", price["ms"]["median"], float(trip), .05)
        if measured(timing):  # a wait within the flight isn't the server's work
            print(f"FAIL the server's work is said to take {measured(timing)}")
            good = False
    return good


def measured(timing):
    """Returns the keys whose time the report states."""
    return {key: value for key, value in timing["public_key_ms"].items() if value is not None}


def noise(name):
    """The server's work is a tenth of a millisecond, the noise some ten: there must be no number.

    The interval of 95 % lies above zero by chance once in forty reports or so, thus the caller may try again.
    """
    timing = report(name)["facts"]["timing"]
    good = not measured(timing) and timing["noise_ms"] > 1
    print(f"{'ok  ' if good else 'FAIL'} noise of ±{timing['noise_ms']:.2f} ms: the server's work is {timing['public_key_ms']}")
    return good


def keys(names):
    """Compares the differences between keys: what a handshake has beside the signature is in all, and cancels out."""
    work, sign = {}, {}
    for name, speed in zip(names[::2], names[1::2]):
        for key, value in report(name)["facts"]["timing"]["public_key_ms"].items():
            if value is None:
                print(f"FAIL {key}: the noise hides its price")
                continue
            with open(speed) as f:
                sign[key] = next(1000 / float(line.split(":")[-2]) for line in f if line.startswith(("+F2", "+F4")))
            work[key] = value["median"]
            print(f"     {key}: {value['median']:.3f} ms ({value['low']:.3f} to {value['high']:.3f}), "
                  f"openssl speed signs in {sign[key]:.3f} ms")
    if len(work) != 3:
        print("FAIL not all keys were measured")
        return False
    good = True
    for one, other in itertools.combinations(work, 2):
        good &= within(f"{other} instead of {one} in ms", work[other] - work[one], sign[other] - sign[one], .3)
    return good


command, *arguments = sys.argv[1:]
sys.exit(0 if {"link": link, "noise": noise, "keys": lambda *names: keys(names)}[command](*arguments) else 1)
