"""Programs on Spark that tests start and kill."""
