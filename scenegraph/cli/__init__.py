"""The command line: one dataclass for each command, and nothing that computes.

Read `_main` first, then `_fit` with `_flags`, `_cluster` and `_time`. The other commands (`_eval`,
`_table`, `_render`, `_convert`, `_data`, `_export`, `_presets`, `_inspect`, `_check`) stand alone;
`_console`, `_progress`, `_steps`, `_watchdog` and `_cache` serve several.
"""

from ._main import main as main
