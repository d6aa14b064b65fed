"""What `make bench` measures: what EMO costs beside the plain thing it is compared with."""
