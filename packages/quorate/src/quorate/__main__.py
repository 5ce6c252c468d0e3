"""``python -m quorate``: the command line."""

from quorate.cli import main

if __name__ == "__main__":
    main()
