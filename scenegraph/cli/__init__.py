"""The command line: one dataclass for each command, and nothing that computes.

Read `_main` first, then `_fit` with `_flags`, `_cluster` and `_time`. The other commands (`_eval`,
`_table`, `_render` with `_film`, `_convert`, `_poses`, `_data`, `_export`, `_presets`, `_check`)
stand alone; `_run_command`, `_console`, `_progress`, `_steps` and `_watchdog` serve several. Files
of commands import what needs JAX in their functions: flags are read without it.
"""

from ._main import main as main
