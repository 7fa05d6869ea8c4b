"""`python -m clearhead` is the `clearhead` command."""

import sys

from clearhead.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
