"""Commands that move and compare what metastores hold."""
