"""The folders of transactional tables: what lies in them, the files that a snapshot reads, the places of new ones."""
