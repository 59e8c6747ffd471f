"""`python -m coag`: the command line."""

from coag.cli import main

if __name__ == "__main__":
    main()
