"""`python -m gridveil`: the command line where its script is not on the path."""

from gridveil.cli.main import run

if __name__ == "__main__":
    run()
