class FileError(ValueError):
    """A file that cannot be used; the message names it and says what to do."""
