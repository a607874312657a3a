"""The entry point: turns errors into text and exit codes.

Little is imported at the top, so that Ctrl-C during start-up is handled too.
"""

from __future__ import annotations

import errno
import os
import sys
from itertools import pairwise
from typing import Any

from trtdeploy.cli.output import OutputFormat, sink
from trtdeploy.core.errors import InputError, TrtdeployError, UsageError
from trtdeploy.core.interruption import watch_interrupts

INTERRUPTED = 130
_OUTSIDE_CAUSES = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ELOOP,
        errno.EIO,
        errno.EEXIST,
        errno.ENOTEMPTY,
    }
)


def main() -> None:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; an unexpected exception is a bug and escapes."""
    sink.format = _find_format(arguments)  # errors may come before --output is read
    try:
        with watch_interrupts():
            return _dispatch(arguments)
    except KeyboardInterrupt:
        sink.note("interrupted; nothing was left half-written")
        return INTERRUPTED
    except TrtdeployError as error:
        sink.error(error)
        return error.exit_code
    except BrokenPipeError:
        # the reader of stdout has gone; keep Python from complaining about it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in _OUTSIDE_CAUSES:
            raise
        place = f": {error.filename}" if error.filename else ""
        sink.error(InputError(f"{error.strerror}{place}"))
        return InputError.exit_code


def _find_format(arguments: list[str]) -> OutputFormat:
    """Return what ``--output`` asks for, as far as arguments that nothing has parsed yet tell."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for option, following in pairwise([*options, ""]):
        if option == "--output=json" or (option == "--output" and following == "json"):
            return OutputFormat.JSON
    return OutputFormat.HUMAN


def _report_usage(error: Any) -> int:
    """Print what the parser of the command line says: its own way, or as the one JSON document."""
    if sink.format is OutputFormat.HUMAN:
        error.show()
    else:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "trtdeploy"
        hint = f"'{command} --help' lists arguments and options."
        sink.error(UsageError(error.format_message(), hint=hint))
    return int(error.exit_code)


def _dispatch(arguments: list[str]) -> int:
    import typer

    from trtdeploy.cli.app import app

    # newer typers carry their own click: its base exception is reached through what they export
    usage_error: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
    try:
        status = app(args=arguments, prog_name="trtdeploy", standalone_mode=False)
    except usage_error as error:
        return _report_usage(error)
    except typer.Abort:
        raise KeyboardInterrupt from None
    if status == INTERRUPTED:  # typer turns Ctrl-C into this status by itself
        raise KeyboardInterrupt
    return status if isinstance(status, int) else 0


if __name__ == "__main__":
    main()
