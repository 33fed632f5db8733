"""The pages: one module for each matter, whose functions make the dataclass that a visitor asks for. `table` lists them all."""
