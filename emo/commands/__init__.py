"""The subcommands of ``emo`` by what they work on: nothing but parsing and calling."""
