"""``python -m optalloc``."""

from optalloc.cli import main

if __name__ == "__main__":
    main()
