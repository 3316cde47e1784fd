import os
import pathlib
import re
import time


_STARTED = time.monotonic()
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
# Ten years: more than any clock of a process counts to.
_LONGEST = 10 * 365.25 * 86400


def seconds_of(text: str) -> float:
    """Reads a duration such as `90s`, `5m` or `2h`; a bare number is seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    seconds = float(match[1]) * _UNITS[match[2] or "s"] if match else 0.0
    if not 0 < seconds <= _LONGEST:
        raise ValueError(
            f"--max-time is a duration such as 90s, 5m or 2h, of at most ten years; got {text!r}."
        )
    return seconds


def process_age() -> float:
    """Returns the seconds since this process started, or else since this file was loaded."""
    try:
        fields = pathlib.Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
        uptime = float(pathlib.Path("/proc/uptime").read_text().split()[0])
        return uptime - float(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return time.monotonic() - _STARTED
