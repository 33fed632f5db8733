"""The pages: one module for each matter, whose functions make a dataclass of what a visitor asks. `table` lists them all."""
