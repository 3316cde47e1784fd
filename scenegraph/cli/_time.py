import os
import pathlib
import re
import time


_STARTED = time.monotonic()
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def seconds_of(text: str) -> float:
    """Reads a duration such as `90s`, `5m` or `2h`; a bare number is seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if not match or float(match[1]) <= 0:
        raise ValueError(f"`--max-time` is a duration such as 90s, 5m or 2h; got {text!r}.")
    return float(match[1]) * _UNITS[match[2] or "s"]


def process_age() -> float:
    """Returns the seconds since this process started, or else since this file was loaded."""
    try:
        fields = pathlib.Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
        uptime = float(pathlib.Path("/proc/uptime").read_text().split()[0])
        return uptime - float(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return time.monotonic() - _STARTED
