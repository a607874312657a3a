"""``python -m trtdeploy``."""

from trtdeploy.cli.main import main

main()
