"""Put the methods of PySpark by which programs reach tables in order for transactional ones, until `disable`."""
