"""What a server shows of its work: metrics, traces, the access log."""
