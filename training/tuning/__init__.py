"""`seqkeras train tune TASK`: the options of a task that its validation examples find best."""
