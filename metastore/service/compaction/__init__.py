"""The queue of compactions, its workers, the initiator and the cleaners."""
