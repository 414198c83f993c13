"""Reads what unmodified schedulers write, and publishes it as schedulerlog's events.

A *source* yields lines with their positions, a *reader* turns them into events and counts every line by its outcome, a
*sink* sends the events to Kafka or explains them to a person. Readers are pure: they use no file, clock, network or
logging.

``sources``      files, standard input, a pod's log through the API server
``lines``        framing of lines, klog, the shape of unknown lines
``readers``      from lines and objects to events, for each kind of scheduler
``reading``      the way from a source through a reader to a sink: pump, checkpoint, Kafka
``cases``        what people have in files: objects and logs, and answers about the pods in them
``workloads``    what waits on a live cluster before it has pods
``commands``     the commands
``errors``       errors that end a command with one line
"""
