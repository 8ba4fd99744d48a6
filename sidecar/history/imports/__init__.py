"""Other programs' readings of disks as a volume history: of Prometheus, of Grafana and CSV, of df.

Each form is read into points: a series with a name and labels, a time, and a size. The name tells
whether the size is of the total or of the available bytes. The operator's rules map the labels to a
broker and a log dir. Points of one volume and time become a reading.

Example: ``kubelet_volume_stats_capacity_bytes`` and ``kubelet_volume_stats_available_bytes`` have
the label ``persistentvolumeclaim="data-0-my-cluster-kafka-3"``. They become readings of broker 3.
"""
