"""HallusionBench: yes/no questions in sets, with and without an edited figure."""
