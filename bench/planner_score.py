# SPDX-License-Identifier: MIT
"""How good the planner's estimates are, from what build/bench/mttkrp_bench measured in the same run."""


def ranks(values):
    """The rank of each value from 1 on; equal ones share their mean."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and values[order[end]] == values[order[begin]]:
            end += 1
        for k in range(begin, end):
            found[order[k]] = (begin + end + 1) / 2
        begin = end
    return found


def rank_correlation(results):
    """Spearman's, of estimated and measured seconds over all formats: 1 when the planner has them in the order measured."""
    estimated, measured = (ranks([r[key] for r in results]) for key in ("estimated_seconds", "seconds"))
    mean = (len(results) + 1) / 2
    covariance = sum((e - mean) * (m - mean) for e, m in zip(estimated, measured))
    spread = [sum((v - mean) ** 2 for v in values) ** 0.5 for values in (estimated, measured)]
    return covariance / (spread[0] * spread[1]) if all(spread) else 1.0


def over_the_best(found, precision):
    """The time of what auto takes over that of the fastest format that it may take: 1.5 times the coordinates at the most."""
    coordinates = 4 * found["order"] + (4 if precision == "f32" else 8)
    auto = next(r for r in found["results"] if r["auto"])
    best = min(r["seconds"] for r in found["results"] if r["auto"] or r["bytes_per_nonzero"] <= 1.5 * coordinates)
    return auto["seconds"] / best
