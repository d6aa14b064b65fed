"""``python -m emo``."""

from emo.cli import main

main()
