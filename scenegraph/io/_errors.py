class FileError(ValueError):
    """A file that cannot be used; the message names it and says what to do."""


class DamagedFile(FileError):
    """A file that is not what was once written: cut, altered, or of another kind."""
