"""Commands that move and compare the objects of metastores."""
