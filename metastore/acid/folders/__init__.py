"""The folders of transactional tables: their content, the files that a snapshot reads, the places of new ones."""
