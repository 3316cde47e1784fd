"""The growth of time and memory over the number of spheres, from the figures of `many`."""

import json
import pathlib


# Lines by file, from the figures of nodes ("spheres") and of one `Instances` ("copies").
_OURS = ("picture", "gradient")
_MITSUBA = {"Mitsuba, 1 sample": "mitsuba_1", "Mitsuba, 16 samples": "mitsuba_16"}


def main(
    figures: pathlib.Path = pathlib.Path("docs/benchmarks/many.json"),
    out: pathlib.Path = pathlib.Path("docs/pictures/many.png"),
) -> None:
    """Draws both with logarithmic axes."""
    from matplotlib.figure import Figure

    known = json.loads(figures.read_text())
    picture = Figure((8, 3), layout="constrained")
    time, memory = picture.subplots(1, 2)
    for kind, suffix, style in (("spheres", "", "o-"), ("copies", ", one Instances", "o--")):
        for number, name in enumerate(_OURS):
            color = f"C{number}"
            counts, values = _series(known, kind, f"{name}_milliseconds")
            time.plot(counts, values, style, color=color, label=name + suffix, markersize=4)
            counts, values = _series(known, kind, f"{name}_peak_memory_mib")
            memory.plot(counts, values, style, color=color, label=name + suffix, markersize=4)
    for (label, name), color in zip(_MITSUBA.items(), ("0.6", "0.3"), strict=True):
        counts, values = _series(known, "spheres", f"{name}_milliseconds")
        time.plot(counts, values, "o-", color=color, label=label, markersize=4)
    for axes, title in ((time, "milliseconds"), (memory, "peak memory, MiB")):
        axes.set(xscale="log", yscale="log", xlabel="spheres", ylabel=title)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    picture.savefig(out, dpi=100)


def _series(known: dict, kind: str, name: str) -> tuple[list[int], list[float]]:
    """Returns numbers of things, in order, and one figure of each."""
    pairs = [key.split() for key in known if key.endswith(f" {kind}")]
    found = {int(n): known[f"{n} {kind}"].get(name) for n, _ in pairs}
    counts = sorted(n for n, value in found.items() if value is not None)
    return counts, [found[n] for n in counts]
